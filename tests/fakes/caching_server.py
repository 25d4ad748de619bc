"""CachingServer: a mock server with a prefix cache that really remembers, and a tokenizer that really counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tests.fakes.mock_sse import MockServer, Wish

_TOKEN = re.compile(r"\w{1,6}|\s+|[^\w\s]")  # code has more of them for its length than prose
_HEAD = "<system>You are a model.</system>"  # what a chat template puts before every prompt


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


class CachingServer(MockServer):
    """`reports`: whether it tells what was cached. `prompts` are all that were asked, in order."""

    def __init__(self, *, reports: bool = True) -> None:
        super().__init__(Wish(chunks=3, gap_ms=1, ttft_ms=2))
        self.reports = reports
        self.flushes = 0
        self.prompts: list[str] = []
        self._cache: list[list[str]] = []

    def _begin(self, connection, now, wish, body, api) -> None:
        asked = "".join(f"<{m['role']}>{m['content']}" for m in body["messages"])
        prompt = tokens(_HEAD + asked)
        known = max((_common(prompt[:-1], other) for other in self._cache), default=0)
        self._cache.append(prompt)
        self.prompts.append(asked)
        wish = replace(wish, prompt_tokens=len(prompt), cached_tokens=known if self.reports else 0)
        super()._begin(connection, now, wish, body, api)

    def _get(self, path: str) -> tuple[str, str]:
        if path.endswith("flush_cache"):
            self.flushes += 1
            self._cache.clear()
            return json.dumps({}), "application/json"
        return super()._get(path)


def _common(a: list[str], b: list[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
