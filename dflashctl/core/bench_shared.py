"""Which turns of two runs are the same ones, so that one may be set against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.run_view import RunView

Positions = tuple[tuple[int, int], ...]

# Built-in workloads whose texts are made anew in each run, under the same ids and the same hash, for cold caches.
MADE_ANEW = frozenset({"humaneval-long", "random", "shared-prefix"})
# Those of them that ask nothing, so that their accept length is the made text's, not the server's.
FOR_CAPACITY = frozenset({"random", "shared-prefix"})


def shared_turns(one: RunView, other: RunView) -> Positions:
    """Positions in A and in B of the turns that both runs have; none where equal ids may stand for other prompts.

    An unfinished run has only some of its turns, and a conversation whose answer failed has no further ones.
    """
    mine, theirs = one.setting, other.setting
    if mine.prompts_hash != theirs.prompts_hash or {mine.dataset, theirs.dataset} & MADE_ANEW:
        return ()
    ids, others = one.samples.ids, other.samples.ids
    if ids == others:
        return tuple((at, at) for at in range(len(ids)))
    places = {name: at for at, name in enumerate(others)}
    if len(set(ids)) < len(ids) or len(places) < len(others):
        return ()  # which of two equal ids is missing, nobody knows
    return tuple((at, places[name]) for at, name in enumerate(ids) if name in places)


def other_work(one: RunView, other: RunView) -> bool:
    """Whether a rate of all turns of a run is of others than the other run's, as one of the two is unfinished."""
    return bool(one.unfinished or other.unfinished) and sorted(one.samples.ids) != sorted(other.samples.ids)


def shared_notes(one: RunView, other: RunView, shared: Positions) -> tuple[str, ...]:
    """How many turns the figures are of, when that is not all of both."""
    mine, theirs = len(one.samples.ids), len(other.samples.ids)
    if not shared or len(shared) == mine == theirs:
        return ()
    return (f"figures are of the {len(shared)} turns that both runs have, of {mine} in A and {theirs} in B",)
