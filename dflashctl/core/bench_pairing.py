"""Which run of B stands beside which run of A."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.run_view import RunView

Pairs = tuple[tuple["RunView", "RunView"], ...]


def paired(a: tuple[RunView, ...], b: tuple[RunView, ...]) -> Pairs:
    """Every run of A beside the run of B with its label; then what is left, where only one pair is possible.

    All labels are matched before anything else, so that a near match never takes the partner of a run with the same
    label. Runs with the same label, as an appended file has them, are matched in their order.
    """
    found: dict[int, int] = {}
    for i, run in enumerate(a):
        same = (k for k in _free(b, found) if b[k].label == run.label)
        if (partner := next(same, None)) is not None:
            found[i] = partner
    for i in [i for i in range(len(a)) if i not in found]:
        rivals = [k for k in range(len(a)) if k not in found and _load(a[k].setting) == _load(a[i].setting)]
        near = [k for k in _free(b, found) if _load(b[k].setting) == _load(a[i].setting)]
        if len(rivals) == len(near) == 1:
            found[i] = near[0]
    return tuple((a[i], b[k]) for i, k in sorted(found.items()))


def _free(b: tuple[RunView, ...], found: dict[int, int]) -> Iterable[int]:
    return [k for k in range(len(b)) if k not in found.values()]


def _load(setting: Setting) -> tuple[object, ...]:
    return (setting.dataset, setting.concurrency, setting.request_rate)


def left_over(runs: tuple[RunView, ...], taken: Iterable[RunView]) -> tuple[str, ...]:
    """Labels of the runs without a partner."""
    known = {id(run) for run in taken}
    return tuple(run.label for run in runs if id(run) not in known)
