"""The meter: events of a transfer as progress, with rate and time left, at most twice a second."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflashctl.core.progress import Progress

if TYPE_CHECKING:
    from dflashctl.env import Env
    from dflashctl.ports.hub import TransferEvent

_EVERY_S = 0.5
_WINDOW = 40


@dataclass(kw_only=True)
class Meter:
    """`wanted` are (repository, number of files); `files` reports each finished file on its own as well."""

    env: Env
    total_bytes: int
    step: str = "fetch"
    wanted: tuple[tuple[str, int], ...] = ()
    files: bool = False
    _base_bytes: int | None = None
    _finished: dict[str, int] = field(default_factory=dict)
    _seen: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _said_s: float = -1.0

    def heard(self, event: TransferEvent) -> None:
        """Turn one event of the transfer into progress."""
        if event.note is not None:
            self.env.notify(Progress(step=self.step, text=event.note, final=True))
        if event.finished is not None:
            repo, path = event.finished
            self._finished[repo] = self._finished.get(repo, 0) + 1
            if self.files:
                self.env.notify(Progress(step="file", text=f"{repo}/{path}", final=True))
        if event.written_bytes is not None:
            if self._base_bytes is None:
                self._base_bytes = event.written_bytes
            self._tell(f"fetching {self._counts()},", max(0, event.written_bytes - self._base_bytes))

    def hashed(self, done_bytes: int) -> None:
        self._tell("verifying", done_bytes)

    def finish(self, text: str) -> None:
        done = float(self.total_bytes)
        self.env.notify(
            Progress(
                step=self.step,
                text=text,
                done=done,
                total=done,
                unit="bytes",
                final=True,
                rate_per_s=self._rate(),
            )
        )

    def _tell(self, text: str, done_bytes: int) -> None:
        now = self.env.clock.monotonic()
        if self._said_s >= 0 and now - self._said_s < _EVERY_S:
            return
        self._said_s = now
        self._seen.append((now, done_bytes))
        rate = self._rate()
        done = min(done_bytes, self.total_bytes)
        left = (self.total_bytes - done) / rate if rate else None
        self.env.notify(
            Progress(
                step=self.step,
                text=text,
                done=float(done),
                total=float(self.total_bytes),
                unit="bytes",
                rate_per_s=rate,
                left_s=left,
            )
        )

    def _rate(self) -> float | None:
        if len(self._seen) < 2:  # noqa: PLR2004 - a rate needs two looks
            return None
        (t0, b0), (t1, b1) = self._seen[0], self._seen[-1]
        return (b1 - b0) / (t1 - t0) if t1 > t0 and b1 > b0 else None

    def _counts(self) -> str:
        parts = (
            f"{repo.rsplit('/', 1)[-1]} {self._finished.get(repo, 0)}/{of} files" for repo, of in self.wanted
        )
        return ", ".join(parts)
