"""Ranges: the numbers that an option takes, refused by name before anything is done with them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from dflashctl.core.errors import UsageProblem


@dataclass(frozen=True, kw_only=True)
class Range:
    """The finite numbers from `least` to `most` that `option` takes; `above` leaves `least` itself out."""

    option: str
    least: float
    most: float | None = None
    above: bool = False

    def require(self, value: float | None) -> None:
        """UsageProblem for a number outside; None was not given."""
        if value is not None and not self._holds(value):
            raise UsageProblem(f"{self.option} {value:g} is not {self}")

    def _holds(self, value: float) -> bool:
        low = value > self.least if self.above else value >= self.least
        return isfinite(value) and low and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        low = f"a number above {self.least:g}" if self.above else f"a number of at least {self.least:g}"
        return low if self.most is None else f"{low} and at most {self.most:g}"
