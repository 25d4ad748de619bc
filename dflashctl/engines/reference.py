"""The embedded reference engine: SGLang's names, a subset of its options, no GPU."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from dflashctl import __version__
from dflashctl.core.engine import (
    Argument,
    Endpoints,
    EngineBuild,
    EngineCommand,
    EngineRequest,
    LogMark,
    Translation,
)
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.gpu_use import GpuUse
from dflashctl.core.profile import Algorithm
from dflashctl.engines.reference_words import read_words, without_rivals
from dflashctl.engines.sglang import NEWEST_RELEASE as _SGLANG_RELEASE
from dflashctl.engines.sglang import differences as _sglang_differences
from dflashctl.engines.sglang import effective as _sglang_effective
from dflashctl.engines.sglang import read_log_line as _read_sglang_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dflashctl.core.profile import Profile

NAME = "reference"
NEWEST_RELEASE = __version__
RELEASES: tuple[str, ...] = (__version__,)
MODULE = ("-m", "dflashctl.reference")

# All else in these sections only makes sense on a GPU: it is left out and said, so that a copied profile still starts.
_USED = {
    "backends": (),
    "memory": ("context_length", "max_running_requests"),
    "server": ("host", "port", "served_model_name", "metrics"),
}


def command(request: EngineRequest, /) -> EngineCommand:
    """The command line; options that need a GPU engine are warnings, parallel sizes above 1 are refused."""
    read = (*read_words(request.profile.extra_args, "extra_args"), *read_words(request.raw_args, "after --"))
    given = tuple(one for one in read if isinstance(one, Argument))
    # Of two extra words for one option the later one wins, as it does in the engine.
    last = tuple(one for place, one in enumerate(given) if without_rivals((one,), given[place + 1 :]))
    arguments = (*without_rivals(tuple(_arguments(request)), given), *last)
    words = [word for argument in arguments for word in argument.words]
    real = replace(request, profile=effective(request.profile, request.raw_args, request.build))
    refused = tuple(one for one in read if isinstance(one, Finding))
    return EngineCommand(
        module_argv=(*MODULE, *words),
        env=tuple(sorted(request.profile.environment.items())),
        arguments=arguments,
        findings=(*refused, *_findings(request), *_block_findings(real)),
    )


def effective(profile: Profile, raw_args: tuple[str, ...], _build: EngineBuild, /) -> Profile:
    """Its options are SGLang's, so SGLang's reading of raw arguments serves."""
    return _sglang_effective(profile, raw_args, EngineBuild(release=_SGLANG_RELEASE))


def gpu_use(_profile: Profile, _raw_args: tuple[str, ...], _build: EngineBuild, /) -> GpuUse:
    """It computes on the CPU."""
    return GpuUse(count=0, highest=0)


def differences(
    facts: Mapping[str, str],
    arguments: Sequence[Argument],
    /,
    *,
    block_size: int | None,
    draft_window_size: int | None,
) -> tuple[Finding, ...]:
    """It logs SGLang's line about the draft runner; it has no attention backends to compare."""
    return _sglang_differences(facts, arguments, block_size=block_size, draft_window_size=draft_window_size)


def read_log_line(line: str, /) -> LogMark | None:
    """The reference engine writes SGLang's own lines."""
    return _read_sglang_line(line)


def endpoints(_release: str, /) -> Endpoints:
    return Endpoints(ready="/ready")


def published(_command: str, _release: str, /) -> tuple[Translation, ...]:
    """Nothing is published for it."""
    return ()


def install_hint(_release: str, /) -> str:
    return "python3 -m pip install --force-reinstall dflashctl"


def _arguments(request: EngineRequest) -> Iterator[Argument]:
    profile = request.profile
    yield _argument(request, "--model-path", request.target_model, "target")
    if profile.server.served_model_name:
        yield _argument(
            request, "--served-model-name", profile.server.served_model_name, "server.served_model_name"
        )
    if profile.speculative.algorithm is Algorithm.DFLASH and request.draft_model is not None:
        yield _argument(request, "--speculative-algorithm", "DFLASH", "speculative.algorithm")
        yield _argument(request, "--speculative-draft-model-path", request.draft_model, "draft")
        if profile.speculative.block_size is not None:
            block = str(profile.speculative.block_size)
            yield _argument(request, "--speculative-dflash-block-size", block, "speculative.block_size")
        if profile.speculative.draft_window_size is not None:
            window = str(profile.speculative.draft_window_size)
            yield _argument(
                request, "--speculative-draft-window-size", window, "speculative.draft_window_size"
            )
    for flag, value, path in _sizes(profile):
        if value is not None:
            yield _argument(request, flag, str(value), path)
    if profile.server.metrics:
        yield Argument(
            flag="--enable-metrics", origin="server.metrics", why="dflashctl reads live figures from /metrics"
        )
    yield _argument(request, "--host", profile.server.host, "server.host")
    yield _argument(request, "--port", str(profile.server.port), "server.port")


def _sizes(profile: Profile) -> tuple[tuple[str, int | None, str], ...]:
    return (
        ("--context-length", profile.memory.context_length, "memory.context_length"),
        ("--max-running-requests", profile.memory.max_running_requests, "memory.max_running_requests"),
    )


def _argument(request: EngineRequest, flag: str, value: str, path: str) -> Argument:
    return Argument(flag=flag, values=(value,), origin=request.origins.get(path, path))


def _findings(request: EngineRequest) -> Iterator[Finding]:
    profile = request.profile
    for path in _left_out(profile):
        yield Finding(
            id="reference_ignores",
            severity=Severity.WARNING,
            summary=f"the reference engine has no use for {path}; it is left out",
        )
    if max(getattr(profile.parallel, field.name) for field in fields(profile.parallel)) > 1:
        yield Finding(
            id="reference_parallel",
            severity=Severity.ERROR,
            summary="the reference engine runs in one process: parallel sizes must be 1",
            fix="--set parallel.tensor=1",
        )


def _left_out(profile: Profile) -> Iterator[str]:
    """The paths that are set to something in sections that the engine reads only a part of."""
    for name, used in _USED.items():
        section = getattr(profile, name)
        for field in fields(section):
            if field.name not in used and getattr(section, field.name) != field.default:
                yield f"{name}.{field.name}"


def _block_findings(request: EngineRequest) -> Iterator[Finding]:
    block = request.profile.speculative.block_size
    trained = request.draft_facts.block_size if request.draft_facts else None
    if block is not None and trained is not None and block > trained:
        yield Finding(
            id="block_size_above_trained",
            severity=Severity.ERROR,
            summary=f"block size {block}: the draft can do at most {trained}, for which it was trained",
            fix=f"--block-size {trained}",
        )
