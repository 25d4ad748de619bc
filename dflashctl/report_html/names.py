"""Names that tell runs apart which else go by the same one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.run_view import RunView

# What changes answers and their cost, and may not lie on one line.
KIND = (
    ("max_tokens", "max tokens"),
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("thinking", "thinking"),
    ("ignore_eos", "ignore_eos"),
    ("api", "api"),
)
WHOLE = (*KIND, ("prompts", "prompts"), ("seed", "seed"), ("cache_flushed", "cache emptied"))
_WORDS = {None: "default", True: "on", False: "off"}


def varied(
    named: Sequence[tuple[str, RunView]], fields: tuple[tuple[str, str], ...] = WHOLE
) -> tuple[str, ...]:
    """Each run's name, with those of the setting's `fields` that differ in runs of the same name and data set."""
    same: dict[tuple[str, str], list[RunView]] = {}
    for name, run in named:
        same.setdefault((name, run.setting.dataset), []).append(run)
    return tuple(
        ", ".join((name, *_differing(run, same[name, run.setting.dataset], fields))) for name, run in named
    )


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The second of equal names and those after it are passes with a number."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}, pass {seen[name]}")
    return tuple(found)


def _differing(run: RunView, others: Sequence[RunView], fields: tuple[tuple[str, str], ...]) -> list[str]:
    return [
        f"{word} {_text(getattr(run.setting, field))}"
        for field, word in fields
        if len({getattr(other.setting, field) for other in others}) > 1
    ]


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
