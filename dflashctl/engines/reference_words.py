"""Raw arguments of the reference engine: read as its own parser would, and refused before it is started."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from dflashctl.core.engine import Argument
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def _above_zero(text: str) -> str | None:
    return None if _number(text, 1) else "is not a whole number from 1 on"


def _port(text: str) -> str | None:
    return None if _number(text, 0) else "is not a port"


def _whole(text: str) -> str | None:
    return None if _number(text, None) else "is not a whole number"


def _level(text: str) -> str | None:
    known = ("debug", "info", "warning", "error", "critical")
    return None if text in known else f"is not one of {', '.join(known)}"


def _algorithm(text: str) -> str | None:
    return None if text.upper() == "DFLASH" else "is not DFLASH, the only one it knows"


def _any(_text: str) -> str | None:
    return None


def _number(text: str, least: int | None) -> bool:
    try:
        return least is None or int(text) >= least
    except ValueError:
        return False


# Every option with the judge of its value, None for a switch; a test holds them equal to the engine's parser.
OPTIONS: dict[str, Callable[[str], str | None] | None] = {
    "--model-path": _any,
    "--model": _any,
    "--tokenizer-path": _any,
    "--served-model-name": _any,
    "--host": _any,
    "--port": _port,
    "--context-length": _above_zero,
    "--max-running-requests": _above_zero,
    "--chunked-prefill-size": _above_zero,
    "--random-seed": _whole,
    "--enable-metrics": None,
    "--decode-log-interval": _above_zero,
    "--log-level": _level,
    "--skip-server-warmup": None,
    "--trust-remote-code": None,
    "--config": _any,
    "--speculative-algorithm": _algorithm,
    "--speculative-draft-model-path": _any,
    "--speculative-draft-model": _any,
    "--speculative-dflash-block-size": _above_zero,
    "--speculative-num-draft-tokens": _above_zero,
    "--speculative-draft-window-size": _above_zero,
    "--no-speculation": None,
}
# Two spellings of one thing; the engine refuses them side by side when they differ.
_SAME = {"--speculative-num-draft-tokens": "--speculative-dflash-block-size"}
_MODELS = ("--model-path", "--model", "--speculative-draft-model-path", "--speculative-draft-model")


def read_words(words: Sequence[str], origin: str) -> Iterator[Argument | Finding]:
    """The arguments in `words`, and an error finding for each word that the engine would refuse."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, inline = word.partition("=")
        if not word.startswith("--"):
            yield _error("word_without_option", f"{word!r} is no option and belongs to none")
            continue
        judge = OPTIONS.get(flag, _any)
        values = (inline,) if equals else _value(rest) if judge is not None else ()
        yield _problem(flag, values) or Argument(flag=flag, values=values, origin=origin)


def without_rivals(own: Sequence[Argument], given: Sequence[Argument]) -> tuple[Argument, ...]:
    """The profile's arguments without those that a raw one replaces, under whatever name."""
    names = {_SAME.get(one.flag, one.flag) for one in given}
    return tuple(one for one in own if one.flag not in names)


def _value(rest: list[str]) -> tuple[str, ...]:
    negative = bool(rest) and rest[0].startswith("-") and rest[0][1:2].isdigit()
    return (rest.pop(0),) if rest and (negative or not rest[0].startswith("-")) else ()


def _problem(flag: str, values: tuple[str, ...]) -> Finding | None:
    if flag not in OPTIONS:
        near = get_close_matches(flag, OPTIONS, n=2, cutoff=0.5)
        near = [known for known in OPTIONS if known.startswith(flag)][:2] or near
        fix = f"did you mean {' or '.join(near)}?" if near else "leave it out"
        return _error("option_unknown", f"the reference engine has no option {flag!r}", fix)
    judge = OPTIONS[flag]
    if flag in _MODELS:
        return _error(
            "model_in_raw_arguments",
            f"{flag} cannot be given as a raw argument: fetching, planning and proofs go by the profile's models",
            "--set target.path=... or --set draft.path=..., or another profile",
        )
    if judge is None:
        said = f"{flag} is a switch and takes no value, not {values[0]!r}" if values else None
        return _error("option_takes_no_value", said) if said else None
    if not values:
        return _error("option_needs_value", f"{flag} needs a value")
    wrong = judge(values[0])
    return _error("value_not_allowed", f"{flag}: {values[0]!r} {wrong}") if wrong else None


def _error(id_: str, summary: str, fix: str | None = None) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary, fix=fix)
