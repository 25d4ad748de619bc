"""DataSets: records of data sets at a pinned commit, from the hub's cache or the hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dflashctl.core.workload import DataSource, Record


class DataSets(Protocol):
    def records(self, source: DataSource, *, offline: bool = False) -> tuple[Record, ...]:
        """All records of `source` in the file's order.

        Unavailable when it cannot be had, Permanent when a reader for its format is missing or the file is not
        the pinned one.
        """
