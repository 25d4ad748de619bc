"""Reading an answer that was not streamed into a Tally."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.bench.seen import as_object
from dflashctl.bench.stream_event import error_text, first_choice

if TYPE_CHECKING:
    from dflashctl.bench.tally import Tally


def read_whole(tally: Tally, body: bytes) -> None:
    """An answer without stream, of either interface: counts only, no token times."""
    found = as_object(body)
    if found is None:
        tally.fail("protocol", f"answer is not a JSON object: {body[:80]!r}")
        return
    if found.get("error"):
        tally.fail("stream", error_text(found["error"]))
        return
    choice = first_choice(found)
    usage, meta = found.get("usage"), choice.get("meta_info") or found.get("meta_info")
    if isinstance(usage, dict):
        tally.usage(usage)
    if isinstance(choice.get("finish_reason"), str):
        tally.finish_reason = str(choice["finish_reason"])
    if isinstance(meta, dict):
        tally.meta_info(meta)
    _whole_text(tally, found, choice)


def _whole_text(tally: Tally, found: dict[str, object], choice: dict[str, object]) -> None:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content") or choice.get("text") or found.get("text")
    if tally.text is not None and isinstance(content, str):
        tally.text.replace(content)
    if tally.reasoning is not None and isinstance(message.get("reasoning_content"), str):
        tally.reasoning.replace(message["reasoning_content"])
