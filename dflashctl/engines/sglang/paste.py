"""A pasted launch command: shell text, docker run, or a compose fragment becomes the engine's words and environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from dflashctl.core.errors import UsageProblem
from dflashctl.engines.sglang.shell import fill_in, read_shell

if TYPE_CHECKING:
    from collections.abc import Mapping

_OTHERS = {"vllm": "vLLM", "trtllm-serve": "TensorRT-LLM", "llama-server": "llama.cpp"}
_OTHER_MODULES = {"sgl_jax.launch_server": "SGLang-JAX", "vllm.entrypoints.openai.api_server": "vLLM"}
# docker run options without a value; every other one takes the next word.
_BARE = (
    "--rm",
    "--init",
    "--privileged",
    "--detach",
    "--interactive",
    "--tty",
    "--read-only",
    "--no-healthcheck",
)
_HINT = "paste the command that starts sglang.launch_server or `sglang serve`"


@dataclass(frozen=True, kw_only=True)
class Pasted:
    """`words` are the engine's arguments; `notes` say what of the text was left out and why."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    notes: tuple[str, ...] = ()


def read_pasted(text: str) -> Pasted:
    """What `text` starts; UsageProblem when it starts no SGLang, or needs a shell to know what it starts."""
    service = _compose_service(text)
    if service is not None:
        return _from_service(service)
    return _from_shell(text, {})


def _from_shell(text: str, known: Mapping[str, str]) -> Pasted:
    try:
        shell = read_shell(text, known)
    except ValueError as error:
        raise UsageProblem(
            f"the command cannot be read: {str(error).lower()}", hint="check its quotes"
        ) from error
    for command in shell.commands:
        pasted = _started(command, dict(shell.exported))
        if pasted is not None:
            _refuse_unknown(pasted, shell.unset, substitutions=shell.substitutions)
            return pasted
    words = tuple(word for command in shell.commands for word in command)
    if words and words[0].startswith("--") and any(word.startswith("--model") for word in words):
        return Pasted(words=words)
    raise UsageProblem("there is no SGLang command in the text", hint=_HINT)


def _refuse_unknown(pasted: Pasted, unset: tuple[str, ...], *, substitutions: bool) -> None:
    if substitutions and any(map(_is_substitution, pasted.words)):
        raise UsageProblem(
            "the command takes the output of another command, and nothing of it is run",
            hint="write the value instead of $(...)",
        )
    empty = [word for word in pasted.words if word == ""]
    if unset and empty:
        raise UsageProblem(
            f"variable {unset[0]!r} has no value in the text",
            hint=f"write its value: {unset[0]}=VALUE before the command",
        )


def _is_substitution(word: str) -> bool:
    """Whether the word is, or is a splinter of, $(...) or `...`."""
    return "$(" in word or "`" in word or word in ("(", ")") or word.endswith("$")


def _started(command: tuple[str, ...], environment: dict[str, str]) -> Pasted | None:
    """What one command starts, looking through prefixes, docker run and `bash -c`; None when it is not SGLang."""
    words = list(command)
    while words and (
        _is_assignment(words[0]) or words[0] in ("env", "nohup", "exec", "sudo", "time", "then", "do")
    ):
        if _is_assignment(words[0]):
            name, _, value = words[0].partition("=")
            environment[name] = value
        words.pop(0)
    if len(words) > 1 and words[0] in ("docker", "podman") and words[1] == "run":
        return _from_docker(words[2:], environment)
    if (
        len(words) > 1
        and words[0].rpartition("/")[2] in ("bash", "sh")
        and words[1].startswith("-")
        and "c" in words[1]
    ):
        inner = _from_shell(" ".join(words[2:3]), environment)
        return Pasted(words=inner.words, environment={**environment, **inner.environment}, notes=inner.notes)
    _refuse_other_engines(words)
    arguments = _engine_arguments(words)
    return None if arguments is None else Pasted(words=arguments, environment=environment)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _refuse_other_engines(words: list[str]) -> None:
    for name, engine in _OTHERS.items():
        if words and words[0].rpartition("/")[2] == name:
            raise UsageProblem(f"this command starts {engine}, not SGLang", hint=_HINT)
    for name, engine in _OTHER_MODULES.items():
        if name in words:
            raise UsageProblem(f"this command starts {engine}, not SGLang", hint=_HINT)


def _engine_arguments(words: list[str]) -> tuple[str, ...] | None:
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if (word == "sglang.launch_server" and before == "-m") or word.endswith("sglang/launch_server.py"):
            return tuple(words[place + 1 :])
        if word == "serve" and before.rpartition("/")[2] == "sglang":
            return _served(words[place + 1 :])
    return None


def _served(words: list[str]) -> tuple[str, ...]:
    """`sglang serve MODEL ...` as launch_server takes it."""
    if words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    if "--model-type" in words:
        place = words.index("--model-type")
        words = words[:place] + words[place + 2 :]
    return tuple(words)


def _from_docker(words: list[str], environment: dict[str, str]) -> Pasted | None:
    """`docker run`: its -e, its image and what runs inside."""
    entrypoint: list[str] = []
    notes = []
    while words and words[0].startswith("-"):
        option = words.pop(0)
        name, equals, inline = option.partition("=")
        if not option.startswith("--"):
            name, inline, equals = option[:2], option[2:], option[2:]
        bare = name in _BARE or (not name.startswith("--") and set(option[1:]) <= set("dit"))
        value = inline if equals else "" if bare or not words else words.pop(0)
        if name in ("-e", "--env") and "=" in value:
            key, _, text = value.partition("=")
            environment[key] = text
        elif name == "--entrypoint":
            entrypoint = [value]
        elif name in ("-v", "--volume", "--mount"):
            notes.append(f"{name} {value}: paths in the command are those inside the container")
    if not words:
        return None
    image, inside = words[0], (*entrypoint, *words[1:])
    pasted = _started(tuple(inside), environment)
    if pasted is None:
        return None
    return Pasted(
        words=pasted.words, environment=pasted.environment, image=image, notes=(*notes, *pasted.notes)
    )


def _compose_service(text: str) -> Mapping[str, Any] | None:
    """The service that runs SGLang when `text` is a compose file or a fragment of one; None when it is neither."""
    try:
        root = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    if not isinstance(root, dict):
        return None
    services = root.get("services") or (
        root if any(_is_service(v) for v in root.values()) else {"service": root}
    )
    found = [service for service in services.values() if _is_service(service) and "sglang" in str(service)]
    return found[0] if found else None


def _is_service(value: object) -> bool:
    return isinstance(value, dict) and ("command" in value or "entrypoint" in value)


def _from_service(service: Mapping[str, Any]) -> Pasted:
    environment = _environment(service.get("environment") or {})
    unset: set[str] = set()
    words = [*_words(service.get("entrypoint"), unset), *_words(service.get("command"), unset)]
    image = service.get("image")
    pasted = _started(tuple(words), environment)
    if pasted is None and words and words[0].startswith("-"):
        pasted = Pasted(words=tuple(words), environment=environment)
    if pasted is None:
        raise UsageProblem("the service does not start SGLang", hint=_HINT)
    _refuse_unknown(pasted, tuple(sorted(unset)), substitutions=True)
    return Pasted(
        words=pasted.words,
        environment=pasted.environment,
        image=fill_in(str(image), {}, set()) if image else None,
        notes=pasted.notes,
    )


def _environment(given: Mapping[str, Any] | list[str]) -> dict[str, str]:
    if isinstance(given, dict):
        return {
            str(name): fill_in(str(value), {}, set()) for name, value in given.items() if value is not None
        }
    pairs = (str(item).partition("=") for item in given)
    return {name: fill_in(value, {}, set()) for name, equals, value in pairs if equals}


def _words(given: object, unset: set[str]) -> list[str]:
    if given is None:
        return []
    if isinstance(given, list):
        return [fill_in(str(item).replace("$$", "$"), {}, unset) for item in given]
    shell = read_shell(str(given).replace("$$", "$").replace("\n", " "))
    unset.update(shell.unset)
    return [word for command in shell.commands for word in command]
