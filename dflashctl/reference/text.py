"""Turn a growing list of tokens into text: whole characters only, and stop strings found and trimmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INCOMPLETE = "\ufffd"  # what a decoder shows for bytes that are not a whole character (yet)


class TextStream:
    """The text of one generation, released only when later tokens can no longer change it.

    ``decode`` must map byte-level tokens to text, so that decoding may start at any whole character.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stop: Sequence[str], *, keep_stop: bool
    ) -> None:
        self.text = ""
        self._decode = decode
        self._stop = tuple(stop)
        self._keep_stop = keep_stop
        self._pending: list[int] = []  # tokens since the last whole character
        self._shown = 0  # characters of their text that are already in `text`
        self._released = 0

    def push(self, tokens: Sequence[int]) -> str | None:
        """Add ``tokens``; return the stop string that they complete, after which the text is final."""
        self._pending.extend(tokens)
        decoded = self._decode(self._pending)
        return self._append(decoded, decoded.rstrip(_INCOMPLETE))

    def release(self, *, final: bool) -> str:
        """Return the text that is safe to show and was not returned before."""
        if final and self._pending:
            decoded = self._decode(self._pending)
            self._append(decoded, decoded)
        until = len(self.text) if final else len(self.text) - self._held_back()
        until = max(until, self._released)
        shown, self._released = self.text[self._released : until], until
        return shown

    def _append(self, decoded: str, whole: str) -> str | None:
        before = len(self.text)
        self.text += whole[self._shown :]
        if whole == decoded:
            self._pending, self._shown = [], 0
        else:
            self._shown = len(whole)
        return self._match(before)

    def _match(self, before: int) -> str | None:
        found: tuple[int, str] | None = None
        for stop in self._stop:
            at = self.text.find(stop, max(0, before - len(stop) + 1))
            if at >= 0 and (found is None or at < found[0]):
                found = (at, stop)
        if found is None:
            return None
        at, stop = found
        self.text = self.text[: at + len(stop) if self._keep_stop else at]
        self._pending, self._shown = [], 0
        return stop

    def _held_back(self) -> int:
        """Return how many last characters could be the beginning of a stop string."""
        longest = max((len(stop) for stop in self._stop), default=1) - 1
        for size in range(min(longest, len(self.text)), 0, -1):
            if any(stop.startswith(self.text[-size:]) for stop in self._stop):
                return size
        return 0
