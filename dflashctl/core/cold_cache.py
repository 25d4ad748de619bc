"""Whether a run whose prompts were meant to be new to the server was served from its prefix cache all the same."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_record import RequestRecord

_NEARLY_ALL = 0.8  # of the prompt tokens: more than a chat template's head and a question's first words
_BEYOND_HEAD = 0.1  # of the prompt tokens, beyond the head that all prompts have in common
_CURE = "--flush-cache empties it before each run"


def cache_warnings(
    records: Sequence[RequestRecord], texts: Sequence[str], *, repeated: bool, says_nothing: bool
) -> tuple[str, ...]:
    """What a reader must know: `records` are those of first turns, `texts` what their prompts say.

    `repeated`: this server has had the same prompts before and did not empty its cache. `says_nothing`: a server
    that counts no cached tokens leaves it open whether it had any (one without a cache is no such server).
    """
    done = [r for r in records if r.ok and r.prompt_tokens]
    known = [r for r in done if r.cached_tokens is not None]
    if not known:
        unknown = (
            "these prompts were sent to this server before, and it does not say what its prefix cache kept of them, "
            f"so TTFT may be that of known prompts: {_CURE}; SGLang tells with --enable-cache-report"
        )
        return (unknown,) if repeated and says_nothing and done else ()
    total = sum(r.prompt_tokens or 0 for r in done)
    share = sum(r.cached_tokens or 0 for r in known) / total
    head = min((r.cached_tokens for r in known if r.cached_tokens), default=0)
    beyond = sum(max(0, (r.cached_tokens or 0) - head) for r in known) / total
    in_common = shared_share(texts)
    if (share < _NEARLY_ALL and beyond < _BEYOND_HEAD) or share <= in_common + _BEYOND_HEAD:
        return ()
    told = (
        f"the server's prefix cache had {share:.0%} of the prompt tokens, though the prompts have only {in_common:.0%} "
        f"of their text in common: TTFT and rates are those of known prompts; {_CURE}"
    )
    return (told,)


def shared_share(texts: Sequence[str]) -> float:
    """Which share of all text lies in beginnings that a text has in common with another one."""
    ordered = sorted(texts)
    with_next = [_common(a, b) for a, b in pairwise(ordered)]
    shared = sum(max(pair) for pair in zip([0, *with_next], [*with_next, 0], strict=True)) if ordered else 0
    return shared / max(1, sum(map(len, texts)))


def _common(a: str, b: str) -> int:
    """The length of the common beginning, found by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
