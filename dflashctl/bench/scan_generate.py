"""Reading the events of SGLang's /generate, which tell the tokens so far, into a Tally."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.bench.chunk_parts import COUNT_KEY, count_at
from dflashctl.bench.scan import DONE
from dflashctl.bench.seen import as_object
from dflashctl.bench.stream_event import error_text

if TYPE_CHECKING:
    from dflashctl.bench.kept_text import KeptText
    from dflashctl.bench.tally import Tally


class GenerateReader:
    """Events of SGLang's /generate; each tells the tokens so far, its text is all so far or only the new."""

    __slots__ = ("_last", "_tally", "done")

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._last = b""
        self.done = False

    def many(self, at_s: float, events: list[bytes]) -> bool:  # noqa: ARG002 - events repeat the text: seldom many in a read
        return False

    def event(self, at_s: float, payload: bytes) -> None:
        tally = self._tally
        count = count_at(payload, payload.rfind(COUNT_KEY))
        if count is None:
            self._without_count(payload)
            return
        if count > tally.seen_tokens:
            tally.chunk(at_s)
            tally.tokens_so_far(count)
        if tally.text is not None:
            self._keep_text(payload, tally.text)
        self._last = payload

    def end(self) -> None:
        """The stream is over: the last event has the engine's counts."""
        found = as_object(self._last) if self._last else None
        meta = found.get("meta_info") if found else None
        if isinstance(meta, dict):
            self._tally.meta_info(meta)

    def _keep_text(self, payload: bytes, kept: KeptText) -> None:
        """Keep the text so far: replaced by a cumulative event, extended by an incremental one."""
        found = as_object(payload) or {}
        text, ids = found.get("text"), found.get("output_ids")
        if not isinstance(text, str):
            return
        if not isinstance(ids, list) or len(ids) >= self._tally.seen_tokens:
            kept.replace(text)
        else:
            kept.add(text)

    def _without_count(self, payload: bytes) -> None:
        if payload == DONE:
            self.done = True
            return
        found = as_object(payload)
        if found is not None and found.get("error"):
            self._tally.fail("stream", error_text(found["error"]))
        else:
            self._tally.fail("protocol", f"event without completion_tokens: {payload[:80]!r}")
