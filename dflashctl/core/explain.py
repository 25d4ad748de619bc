"""Explain: for each engine argument where it comes from and why, and a profile against every release."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.engine import Argument, Translation
    from dflashctl.core.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Row:
    """One argument; `value` is None for a switch. `in_argv` is False for what the engine sets by itself."""

    flag: str
    value: str | None
    origin: str
    why: str | None
    in_argv: bool = True


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The plan's arguments, variables and changes as a table."""

    profile: str
    engine: str
    engine_version: str
    refused: bool
    rows: tuple[Row, ...]
    env: tuple[tuple[str, str], ...]
    translations: tuple[Translation, ...]


class Verdict(str, Enum):
    RUNS = "runs"
    RUNS_CHANGED = "runs with changes"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A profile on a release; `reasons` are the refusals, or what was changed."""

    profile: str
    release: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Every profile on every release, by profile, then release."""

    releases: tuple[str, ...]
    cells: tuple[Cell, ...]


def explained(plan: Plan) -> Explained:
    """The table of a plan: its arguments in order, then what the engine itself sets."""
    return Explained(
        profile=plan.profile,
        engine=plan.engine,
        engine_version=plan.engine_version,
        refused=bool(plan.refusals),
        rows=(
            *(_row(a, in_argv=True) for a in plan.arguments),
            *(_row(a, in_argv=False) for a in plan.resolved),
        ),
        env=plan.env,
        translations=plan.translations,
    )


def cell(profile: str, release: str, plan: Plan) -> Cell:
    """What becomes of the profile on that release."""
    if plan.refusals:
        return Cell(
            profile=profile,
            release=release,
            verdict=Verdict.REFUSED,
            reasons=tuple(finding.summary for finding in plan.refusals),
        )
    changes = tuple(_change(translation) for translation in plan.translations)
    verdict = Verdict.RUNS_CHANGED if changes else Verdict.RUNS
    return Cell(profile=profile, release=release, verdict=verdict, reasons=changes)


def _row(argument: Argument, *, in_argv: bool) -> Row:
    return Row(
        flag=argument.flag,
        value=" ".join(argument.values) if argument.values else None,
        origin=argument.origin,
        why=argument.why,
        in_argv=in_argv,
    )


def _change(translation: Translation) -> str:
    return f"{translation.from_} → {translation.to or 'left out'}"
