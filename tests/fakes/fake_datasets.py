"""FakeDataSets: records from memory, by repository."""

from __future__ import annotations

from dflashctl.core.errors import Unavailable


class FakeDataSets:
    def __init__(self, **records: tuple[dict, ...]) -> None:
        """Keys are the last part of the repository's name, with '-' as '_'."""
        self.records_of = records
        self.asked: list[str] = []

    def records(self, source, *, offline: bool = False) -> tuple[dict, ...]:
        self.asked.append(source.label)
        found = self.records_of.get(source.repo.rpartition("/")[2].replace("-", "_"))
        if found is None:
            raise Unavailable(f"{source.label} is not in the fake")
        return found
