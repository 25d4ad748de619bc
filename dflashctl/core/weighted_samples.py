"""Exact percentiles of very many samples at 8 bytes each, however often each of them counts."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_right
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING

from dflashctl.core import stats
from dflashctl.core.stats import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCK = 16384  # sorting needs objects, which are four times as large: never more than these at a time
_SIGN = 1 << 63


class WeightedSamples:
    """`len` is the number of samples, each counted as often as it was added.

    Samples of one weight lie in sorted blocks of numbers. The sample of a rank is found by halving the range of
    all numbers and counting in each block what lies below: no sample is ever held once more, and none is rounded.
    """

    def __init__(self) -> None:
        self._open: dict[int, array[float]] = {}
        self._sorted: list[tuple[int, array[float]]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, sample: float, times: int = 1) -> None:
        """`sample`, not NaN, counts `times` times, which is at least once."""
        block = self._open.get(times)
        if block is None:
            block = self._open[times] = array("d")
        block.append(sample)
        self._count += times
        if len(block) >= _BLOCK:
            self._close(times)

    def add_all(self, samples: Iterable[float]) -> None:
        """Each of `samples` counts once."""
        rest = iter(samples)
        while True:
            block = self._open.setdefault(1, array("d"))
            before = len(block)
            block.extend(islice(rest, _BLOCK - before))
            self._count += len(block) - before
            if len(block) < _BLOCK:
                return
            self._close(1)

    def ranked(self, rank: int) -> float:
        """The sample at `rank` (from 0) of all in order; IndexError where there is none."""
        if not 0 <= rank < self._count:
            raise IndexError(rank)
        blocks = self._blocks()
        low = min(_ordinal(block[0]) for _, block in blocks)
        high = max(_ordinal(block[-1]) for _, block in blocks)
        while low < high:
            middle = (low + high) // 2
            value = _number(middle)
            if sum(times * bisect_right(block, value) for times, block in blocks) > rank:
                high = middle
            else:
                low = middle + 1
        return _number(low)

    def distribution(self, *, scale: float = 1.0) -> Distribution | None:
        """As stats.distribution of the samples, each repeated as often as it counts; None for no samples."""
        if not self._count:
            return None
        p50, p90, p95, p99 = (stats.percentile_of(self.ranked, self._count, s) for s in stats.SHARES)
        written_out = chain.from_iterable(
            map(repeat, block, repeat(times)) for times, block in self._blocks()
        )
        mean = math.fsum(chain.from_iterable(written_out)) / self._count
        return Distribution(
            mean=mean * scale, p50=p50 * scale, p90=p90 * scale, p95=p95 * scale, p99=p99 * scale
        )

    def _blocks(self) -> list[tuple[int, array[float]]]:
        for times in tuple(self._open):
            self._close(times)
        return self._sorted

    def _close(self, times: int) -> None:
        block = self._open.pop(times)
        if block:
            self._sorted.append((times, array("d", sorted(block))))


def _ordinal(number: float) -> int:
    """Neighbouring numbers have neighbouring ordinals (IEEE 754 was made so)."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits if bits >= 0 else -(bits + _SIGN)


def _number(ordinal: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0]
    return number if ordinal >= 0 else -number
