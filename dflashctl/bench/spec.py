"""What to send and how: the types that callers hand to run_load and get back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflashctl.core.accept import CountSource
from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dflashctl.core.bench_record import RequestRecord, Window
    from dflashctl.core.client_health import ClientHealth

CHAT = "chat"
GENERATE = "generate"
PATHS = {CHAT: "/v1/chat/completions", GENERATE: "/generate"}


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """`body` is the request as the interface takes it, sampling and template options included.

    chat: OpenAI `messages`, `max_tokens`, ... generate: `text` or `input_ids`, `sampling_params`.
    run_load adds what the measurement needs (stream, usage, counts) and nothing else.
    """

    id: str
    body: Mapping[str, object]
    api: str = CHAT


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """How to load a server.

    Closed loop: `concurrency` requests in flight, the next one sent when one ends. Open loop: `rate` requests
    a second at Poisson times drawn from `seed`, at most `concurrency` in flight when that is given too;
    latencies count from the planned time, so that waiting in the client is not hidden.
    counts: where exact accept counts come from (probe_counts finds out); None asks for none.
    chunk_usage: ask the server for its running token count in every chat chunk, so that the tokens of the first
    chunk and ITL are exact. keep_text: keep what was answered, of each text only the last text_end characters
    unless that is None. timeout_s ends a request that is not done. stall_s ends one that has begun
    to answer and then sends no byte for so long; None leaves it to timeout_s, as a server may well be silent in
    mid-stream (a long prefill of others, a preemption).
    max_duration_s: send nothing after that; what is in flight may finish within timeout_s.
    key_env, key_file: where the API key is read; it goes to the workers through a pipe.
    """

    url: str
    concurrency: int | None = None
    rate: float | None = None
    seed: int = 0
    counts: CountSource | None = CountSource.STREAM
    chunk_usage: bool = True
    keep_text: bool = False
    text_end: int | None = None
    max_duration_s: float | None = None
    timeout_s: float = 600.0
    stall_s: float | None = None
    connect_timeout_s: float = 10.0
    processes: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)
    key_env: str | None = None
    key_file: Path | None = None
    ca_file: Path | None = None
    verify_tls: bool = True

    def __post_init__(self) -> None:
        if self.concurrency is None and self.rate is None:
            raise UsageProblem("a load needs a concurrency or a request rate")
        if self.concurrency is not None and self.concurrency < 1:
            raise UsageProblem(f"concurrency {self.concurrency} is below 1")
        if self.rate is not None and self.rate <= 0:
            raise UsageProblem(f"request rate {self.rate:g} is not above 0")
        if self.processes < 1:
            raise UsageProblem(f"{self.processes} processes are below 1")
        if self.processes > (self.concurrency or self.processes):
            raise UsageProblem(f"{self.processes} processes for {self.concurrency} requests in flight")


@dataclass(frozen=True, kw_only=True)
class LoadProgress:
    """The state of a running load; accept length and tokens are of finished requests.

    last_send_s: when an open loop plans to send its last request, in seconds from the start.
    """

    done: int
    errors: int
    total: int
    in_flight: int
    elapsed_s: float
    completion_tokens: int
    verify_steps: int
    warming_up: bool = False
    last_send_s: float | None = None

    @property
    def accept_length_pooled(self) -> float | None:
        return self.completion_tokens / self.verify_steps if self.verify_steps else None

    @property
    def left_s(self) -> float | None:
        """A guess of the time left, from the requests done so far.

        An open loop sends at times that are known; what waits by then takes as long as such requests took so far.
        """
        a_request_s = self.elapsed_s / self.done if self.done else None
        if self.last_send_s is not None and self.last_send_s > self.elapsed_s:
            return max(self.last_send_s - self.elapsed_s, self.in_flight * (a_request_s or 0.0))
        return None if a_request_s is None else a_request_s * (self.total - self.done)

    @property
    def requests_per_s(self) -> float | None:
        """Requests that ended, a second; None before the first one did."""
        return self.done / self.elapsed_s if self.done and self.elapsed_s > 0 else None


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """Records of the measured requests in the order of the plan (warm-up left out); `window` spans them."""

    records: tuple[RequestRecord, ...]
    client: ClientHealth
    window: Window
    warmup_requests: int = 0
    warmup_errors: int = 0
    interrupted: bool = False
    scan_mismatches: int = 0
