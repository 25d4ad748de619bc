"""Which run of B stands beside which run of A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.bench_likeness import unlike, unlike_models

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.core.run_view import RunFile, RunView

_Groups = dict[str, list[int]]  # label -> places of its runs in the file, oldest first


@dataclass(frozen=True, kw_only=True)
class Match:
    """A run of A beside one of B; `notes` say which runs they are where a file has several with that label."""

    one: RunView
    other: RunView
    notes: tuple[str, ...] = ()


def paired(a: RunFile, b: RunFile) -> tuple[Match, ...]:
    """Every label of A beside the same one of B; then what is left, where only one pair of labels is possible.

    All labels are matched before anything else, so that a near match never takes the partner of a run with the same
    label. An appended file has several runs with one label: those that may be compared come first, then the newest.
    """
    mine, theirs = _by_label(a), _by_label(b)
    found = [pair for label in mine if label in theirs for pair in _best(a, mine[label], b, theirs[label])]
    left = {label: places for label, places in mine.items() if label not in theirs}
    free = {label: places for label, places in theirs.items() if label not in mine}
    for places in left.values():
        load = _load(a, places)
        rivals = [label for label, others in left.items() if _load(a, others) == load]
        near = [others for others in free.values() if _load(b, others) == load]
        if len(rivals) == len(near) == 1:
            found += _best(a, places, b, near[0])
    taken, others = {i for i, _ in found}, {k for _, k in found}
    return tuple(
        Match(
            one=a.runs[i],
            other=b.runs[k],
            notes=(*_told("A", a, i, taken), *_told("B", b, k, others)),
        )
        for i, k in sorted(found)
    )


def refusals(a: RunFile, one: RunView, b: RunFile, other: RunView) -> tuple[str, ...]:
    """Why the two cannot be compared; empty when they can."""
    return unlike(one.setting, other.setting) + unlike_models(a.provenance(one), b.provenance(other))


def left_over(runs: tuple[RunView, ...], taken: Iterable[RunView]) -> tuple[str, ...]:
    """Labels without a partner; a further run of a label that has one is no lack of the other file."""
    known = {run.label for run in taken}
    return tuple(dict.fromkeys(run.label for run in runs if run.label not in known))


def _by_label(file: RunFile) -> _Groups:
    groups: _Groups = {}
    for place, run in enumerate(file.runs):
        groups.setdefault(run.label, []).append(place)
    return groups


def _best(a: RunFile, mine: list[int], b: RunFile, theirs: list[int]) -> list[tuple[int, int]]:
    """Each run of A with the newest one of B that fits it, newest first; the newest of both where none fits."""
    found: dict[int, int] = {}
    for i in reversed(mine):
        free = (k for k in reversed(theirs) if k not in found.values())
        fitting = next((k for k in free if not refusals(a, a.runs[i], b, b.runs[k])), None)
        if fitting is not None:
            found[i] = fitting
    return list(found.items()) or [(mine[-1], theirs[-1])]


def _load(file: RunFile, places: list[int]) -> tuple[object, ...]:
    setting = file.runs[places[0]].setting
    return (setting.dataset, setting.concurrency, setting.request_rate)


def _told(side: str, file: RunFile, place: int, taken: set[int]) -> tuple[str, ...]:
    """Which run it is, where the file has several with its label."""
    label = file.runs[place].label
    same = [at for at, run in enumerate(file.runs) if run.label == label]
    if len(same) == 1:
        return ()
    newer = ", a newer one does not fit" if any(at > place and at not in taken for at in same) else ""
    return (f"{side} has {len(same)} runs with this label: run {place + 1} of the file is taken{newer}",)
