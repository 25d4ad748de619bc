"""The command line: a subset of SGLang's arguments under SGLang's names, resolved to frozen settings."""

from __future__ import annotations

import argparse
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.reference.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_MAX_RUNNING = 48  # SGLang's own when it speculates
_KEYS = ("api-key", "admin-api-key")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the server was asked to do. The API keys are never shown, logged or served."""

    model_path: str
    tokenizer_path: str
    served_model_name: str
    speculative_algorithm: str | None
    speculative_draft_model_path: str | None
    speculative_dflash_block_size: int | None
    speculative_draft_window_size: int | None
    host: str
    port: int
    context_length: int | None
    max_running_requests: int
    chunked_prefill_size: int
    random_seed: int
    enable_metrics: bool
    decode_log_interval: int
    log_level: str
    skip_server_warmup: bool
    trust_remote_code: bool
    api_keys: tuple[str, ...] = field(default=(), repr=False)

    def shown(self) -> dict[str, Any]:
        """Return the settings without the keys, for the log and /server_info."""
        values = asdict(self)
        del values["api_keys"]
        return {**values, "speculative_num_draft_tokens": self.speculative_dflash_block_size}


def parse(argv: Sequence[str]) -> Settings:
    """Return the settings of ``argv``; argparse ends the process with code 2 when it cannot be read."""
    parser = _parser()
    extra, keys = _config_arguments(parser, argv)
    arguments = parser.parse_args([*extra, *argv])
    if arguments.no_speculation:
        arguments.speculative_algorithm = None
    if arguments.speculative_algorithm is None:
        arguments.speculative_draft_model_path = arguments.speculative_draft_window_size = None
        block_size = None
    else:
        _check_algorithm(parser, arguments)
        block_size = _block_size(parser, arguments)
    return Settings(
        model_path=arguments.model_path,
        tokenizer_path=arguments.tokenizer_path or arguments.model_path,
        served_model_name=arguments.served_model_name or arguments.model_path,
        speculative_algorithm=arguments.speculative_algorithm,
        speculative_draft_model_path=arguments.speculative_draft_model_path,
        speculative_dflash_block_size=block_size,
        speculative_draft_window_size=arguments.speculative_draft_window_size,
        host=arguments.host,
        port=arguments.port,
        context_length=arguments.context_length,
        max_running_requests=arguments.max_running_requests,
        chunked_prefill_size=arguments.chunked_prefill_size,
        random_seed=secrets.randbits(30) if arguments.random_seed is None else arguments.random_seed,
        enable_metrics=arguments.enable_metrics,
        decode_log_interval=arguments.decode_log_interval,
        log_level=arguments.log_level,
        skip_server_warmup=arguments.skip_server_warmup,
        trust_remote_code=arguments.trust_remote_code,
        api_keys=keys,
    )


def resolve_block_size(asked: int | None, trained: int, window: int | None) -> int:
    """Return the block size to run: the one asked for, else the draft's.

    Raises StartError for a block longer than the drafter was trained on, and for a window that it overflows.
    """
    size = trained if asked is None else asked
    if size > trained:
        raise StartError(
            f"DFLASH block size {size} is above the {trained} that the draft was trained for; "
            f"use --speculative-dflash-block-size {trained} or less"
        )
    if window is not None and window < size:
        raise StartError(f"--speculative-draft-window-size {window} is smaller than the block size {size}")
    return size


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dflashctl.reference",
        description="Serve a Qwen3 target with its DFlash drafter on the CPU, under SGLang's HTTP interface.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model-path", "--model", required=True, help="folder of the target")
    add("--tokenizer-path", help="folder of the tokenizer (default: the target's)")
    add("--served-model-name", help="name in the API (default: the model path)")
    add("--host", default="127.0.0.1")
    add("--port", type=_port, default=30000)
    add("--context-length", type=_positive, help="tokens of prompt and answer (default: the target's)")
    add("--max-running-requests", type=_positive, default=DEFAULT_MAX_RUNNING)
    add("--chunked-prefill-size", type=_positive, default=512, help="prompt tokens computed in one step")
    add("--random-seed", type=int, help="makes requests without a seed of their own repeatable")
    add("--enable-metrics", action="store_true", help="serve /metrics")
    add("--decode-log-interval", type=_positive, default=40, help="decode steps between two log lines")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error", "critical"])
    add("--skip-server-warmup", action="store_true")
    add("--trust-remote-code", action="store_true", help="accepted; no model code is ever run")
    add("--config", metavar="FILE", help="YAML of more arguments; the only place for api-key")
    _add_speculation(parser)
    return parser


def _add_speculation(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--speculative-algorithm", help="DFLASH; without it the target decodes alone")
    add("--speculative-draft-model-path", "--speculative-draft-model", help="folder of the drafter")
    add("--speculative-dflash-block-size", type=_positive, help="1..the draft's own (its default)")
    add("--speculative-num-draft-tokens", type=_positive, help="the block size under its general name")
    add("--speculative-draft-window-size", type=_positive, help="context tokens that the drafter sees")
    add("--no-speculation", action="store_true", help="ignore the speculative arguments")


def _check_algorithm(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    arguments.speculative_algorithm = arguments.speculative_algorithm.upper()
    if arguments.speculative_algorithm != "DFLASH":
        parser.error(f"unknown speculative algorithm name: {arguments.speculative_algorithm} (only DFLASH)")
    if arguments.speculative_draft_model_path is None:
        parser.error("DFLASH needs --speculative-draft-model-path")


def _block_size(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int | None:
    block, tokens = arguments.speculative_dflash_block_size, arguments.speculative_num_draft_tokens
    if block and tokens and block != tokens:
        parser.error(
            f"--speculative-dflash-block-size {block} and --speculative-num-draft-tokens {tokens} must match"
        )
    size: int | None = block or tokens
    return size


def _config_arguments(
    parser: argparse.ArgumentParser, argv: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments and the API keys of the file after ``--config``."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path = finder.parse_known_args(argv)[0].config
    if path is None:
        return [], ()
    values = _read_yaml(parser, Path(path))
    keys = tuple(str(values.pop(key)) for key in _KEYS if values.get(key) is not None)
    flags: list[str] = []
    for name, value in values.items():
        if value is not False and value is not None:
            flags += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return flags, keys


def _read_yaml(parser: argparse.ArgumentParser, path: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"--config {str(path)!r}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError):  # the reason could quote a key
        parser.error(f"--config {str(path)!r} is not YAML")
    if not isinstance(values, dict):
        parser.error(f"--config {str(path)!r} does not hold a mapping")
    return {str(name): value for name, value in values.items()}


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:  # noqa: PLR2004 - the range of ports
        raise argparse.ArgumentTypeError(f"must be 0..65535, not {value}")
    return value
