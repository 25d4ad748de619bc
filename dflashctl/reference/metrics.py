"""The Prometheus text format: counters, gauges and histograms with labels, written out by hand."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Family:
    """One metric: its name, type ("counter", "gauge", "histogram"), help, and its samples by labels."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[Labels, float | Histogram]]


class Histogram:
    """Counts of observations at or below each of ``bounds`` and above the last."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value``, ``times`` over."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


def exposition(families: Iterable[Family]) -> str:
    """Return the page that a Prometheus scraper reads."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.help}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples:
            if isinstance(value, Histogram):
                lines.extend(_histogram(family.name, labels, value))
            else:
                lines.append(_sample(family.name, labels, value))
    return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, histogram: Histogram) -> Iterable[str]:
    yield _sample(f"{name}_sum", labels, histogram.total)
    below = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        below += count
        yield _sample(f"{name}_bucket", {**labels, "le": _number(bound)}, below)
    yield _sample(f"{name}_count", labels, below)


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escape(labels[key])}"' for key in sorted(labels))
    return f"{name}{{{inside}}} {_number(value)}"


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
