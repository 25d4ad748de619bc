"""Client: the requests that proofs make of one server, with the settings that all of them share."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dflashctl.core.errors import Unavailable
from dflashctl.core.loads import running_requests
from dflashctl.core.lossless import NEAR_TIE_NATS
from dflashctl.core.replies import Completion, parse_chat, parse_chat_stream, parse_generate
from dflashctl.core.smoke import ProofFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dflashctl.core.lossless import Generation
    from dflashctl.core.smoke import ServerFacts
    from dflashctl.ports.clock import Clock
    from dflashctl.ports.web import Reply, StreamEvent, Web
    from dflashctl.proofs.prompts import Prompt

GREEDY_TOKENS = 128


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the plan promises of this server; None where nobody promised anything."""

    model: str | None = None
    speculation: bool | None = None
    block_size: int | None = None
    near_tie_nats: float = NEAR_TIE_NATS


class Reference(Protocol):
    """A source of greedy texts without speculation; `label` names it for people."""

    @property
    def label(self) -> str: ...

    def generations(self, prompt: Prompt, /) -> tuple[Generation, ...]:
        """At least one; a second one measures the noise. Empty when it does not know this prompt."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """One server under proof. `nonce` makes prompts new to the prefix cache; `timeout_s` bounds each request.

    `reference` gives greedy texts without speculation, where there is a source for them. `brief` asks proofs to
    make do with a few prompts, because someone waits for the server.
    """

    web: Web
    clock: Clock
    facts: ServerFacts
    nonce: str
    timeout_s: float = 120.0
    headers: Mapping[str, str] = field(default_factory=dict)
    max_tokens: int = GREEDY_TOKENS
    expected: Expected = field(default_factory=Expected)
    reference: Reference | None = None
    brief: bool = False

    def get(self, path: str, timeout_s: float = 10.0) -> Reply:
        return self.web.request("GET", self._url(path), headers=self.headers, timeout_s=timeout_s)

    def post(self, path: str, body: object) -> Reply:
        return self.web.request(
            "POST", self._url(path), body=body, headers=self.headers, timeout_s=self.timeout_s
        )

    def chat_reply(self, prompt: str, **options: object) -> Reply:
        """The raw reply of a greedy chat; `options` go into the body, None removes a key."""
        return self.post("/v1/chat/completions", self._chat_body(prompt, options))

    def chat(self, prompt: str, **options: object) -> Completion:
        """A greedy chat that must be answered with 200; ProofFailed says what came instead."""
        return parse_chat(answered(self.chat_reply(prompt, **options), "a chat request"))

    def chat_stream(self, prompt: str, **options: object) -> Completion:
        """The same, streamed, with usage."""
        return parse_chat_stream(event.data for event in self.open_stream(prompt, **options))

    def open_stream(self, prompt: str, **options: object) -> Iterator[StreamEvent]:
        """The events of a streamed chat; closing the iterator closes the connection."""
        extra = {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_meta_info": None,
            **options,
        }
        try:
            yield from self.web.stream(
                self._url("/v1/chat/completions"),
                body=self._chat_body(prompt, extra),
                headers=self.headers,
                timeout_s=self.timeout_s,
            )
        except Unavailable as error:
            raise ProofFailed(f"the stream broke: {error.message}") from error

    def generate(self, prompt: str, **sampling: object) -> Completion:
        """The native /generate, greedy; the prompt is sent without a chat template."""
        params = {"temperature": 0, "max_new_tokens": self.max_tokens, **sampling}
        reply = self.post("/generate", {"text": prompt, "sampling_params": params})
        return parse_generate(answered(reply, "/generate"))

    def at_once(self, prompts: Sequence[str], ask: Callable[[str], Completion]) -> tuple[Completion, ...]:
        """`ask` for each prompt, all at the same time, in order; the first failure is raised."""
        with ThreadPoolExecutor(max_workers=len(prompts)) as pool:
            return tuple(pool.map(ask, prompts))

    def running(self) -> int | None:
        """How many requests the server says it runs or queues, None when it does not say."""
        for path in ("/v1/loads", "/metrics"):
            reply = self.get(path)
            count = running_requests(path, reply.body) if reply.status == 200 else None  # noqa: PLR2004
            if count is not None:
                return count
        return None

    def wait_until(self, holds: Callable[[], bool], limit_s: float) -> bool:
        """Ask `holds` until it does; False when `limit_s` has passed."""
        end = self.clock.monotonic() + limit_s
        while not holds():
            if self.clock.monotonic() >= end:
                return False
            self.clock.sleep(0.1)
        return True

    def _url(self, path: str) -> str:
        return self.facts.base_url.rstrip("/") + path

    def _chat_body(self, prompt: str, options: Mapping[str, object]) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self.facts.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        if (
            self.facts.described
        ):  # only SGLang and its like know these; others may refuse what they do not know
            body |= {"return_meta_info": True, "return_spec_tokens_details": True}
        return {key: value for key, value in {**body, **options}.items() if value is not None}


def answered(reply: Reply, what: str) -> bytes:
    """The body of a 200; ProofFailed quotes anything else."""
    if reply.status == 200:  # noqa: PLR2004
        return reply.body
    if reply.status == 0:
        raise ProofFailed(f"{what} got no answer: {reply.problem}")
    raise ProofFailed(f"{what} was refused with status {reply.status}", evidence=(quote(reply.body),))


def quote(body: bytes, size: int = 200) -> str:
    words = " ".join(body.decode(errors="replace").split())
    return words if len(words) <= size else words[:size] + "…"


@contextlib.contextmanager
def closing_stream(events: Iterator[StreamEvent]) -> Iterator[Iterator[StreamEvent]]:
    """Close the stream at the end of the block, so that the server sees the client go away."""
    try:
        yield events
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
