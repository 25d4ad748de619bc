"""The figures of the running server: for /metrics, /server_info and the ``Decode batch`` log line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dflashctl.reference.metrics import Family, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.reference.sequence import Sequence

_LATENCY_S = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
_E2E_S = (*_LATENCY_S, 600, 1200, 1800, 2400)
_SHORT_S = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1)
_ITL_S = (*_SHORT_S, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8)


class Totals:
    """Figures of finished requests that were asked for one way, streaming or not."""

    def __init__(self) -> None:
        self.requests = self.prompt_tokens = self.generation_tokens = 0
        self.time_to_first_token = Histogram(_LATENCY_S)
        self.e2e_latency = Histogram(_E2E_S)


class Statistics:
    """Written by the scheduler's thread, read by any."""

    def __init__(self, model_name: str, capacity_tokens: int, block_size: int | None, interval: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.block_size = block_size
        self.running = self.queued = self.tokens_in_use = 0
        self.gen_throughput = 0.0
        self.spec_accept_length = self.spec_accept_rate = 0.0
        self.avg_spec_accept_length: float | None = None  # over the server's life; refreshed with the log
        self.verify_calls = 0
        self._interval = interval
        self._steps = self._tokens = 0
        self._since = time.monotonic()
        self._verifies = self._correct = self._proposed = 0  # of this interval
        self._life_verifies = self._life_correct = 0
        self._totals = {"false": Totals(), "true": Totals()}
        self._inter_token = Histogram(_ITL_S)
        self._labels = {"engine_type": "unified", "model_name": model_name}

    @property
    def token_usage(self) -> float:
        """The share of the KV capacity that running requests fill."""
        return self.tokens_in_use / self.capacity_tokens

    def count_tokens(self, tokens: int) -> None:
        """Note tokens that clients get."""
        self._tokens += tokens

    def count_gap(self, seconds: float, tokens: int) -> None:
        """Note the time since a request's previous step, which brought ``tokens`` tokens."""
        self._inter_token.observe(seconds / tokens, tokens)

    def count_verify(self, proposed: int, correct: int) -> None:
        """Note one verify step of one request."""
        self._verifies += 1
        self._proposed += proposed
        self._correct += correct

    def count_finished(self, sequence: Sequence) -> None:
        """Note a request that has ended."""
        totals, times = self._totals[str(sequence.request.stream).lower()], sequence.times
        totals.requests += 1
        totals.prompt_tokens += len(sequence.request.prompt_ids)
        totals.generation_tokens += len(sequence.output_ids)
        self.verify_calls += sequence.verify_count
        if times.first_token is not None:
            totals.time_to_first_token.observe(times.first_token - times.received)
        if times.finished is not None:
            totals.e2e_latency.observe(times.finished - times.received)

    def idle(self) -> None:
        """Note that nothing runs, so that the next throughput does not count the pause."""
        self.gen_throughput = 0.0
        self._since, self._tokens = time.monotonic(), 0

    def decode_step(self) -> str | None:
        """Note one decode step; return the log line when one is due."""
        self._steps += 1
        if self._steps % self._interval:
            return None
        now = time.monotonic()
        self.gen_throughput = self._tokens / max(now - self._since, 1e-9)
        self._since, self._tokens = now, 0
        return (
            f"Decode batch, #running-req: {self.running}, #token: {self.tokens_in_use}, "
            f"token usage: {self.token_usage:.2f}, {self._accepted()}cuda graph: False, "
            f"gen throughput (token/s): {self.gen_throughput:.2f}, #queue-req: {self.queued}"
        )

    def _accepted(self) -> str:
        if not self._verifies:
            return ""
        self._life_verifies += self._verifies
        self._life_correct += self._correct
        self.spec_accept_length = 1 + self._correct / self._verifies
        self.spec_accept_rate = self._correct / self._proposed if self._proposed else 0.0
        self.avg_spec_accept_length = 1 + self._life_correct / self._life_verifies
        self._verifies = self._correct = self._proposed = 0
        return f"accept len: {self.spec_accept_length:.2f}, accept rate: {self.spec_accept_rate:.2f}, "

    def families(self) -> Iterable[Family]:
        """Return the metrics, named and labelled as SGLang's."""
        ranked = {**self._labels, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
        for name, (text, value) in self._gauges().items():
            yield Family(name=f"sglang:{name}", kind="gauge", help=text, samples=[(ranked, value)])
        by_stream = [
            ({**self._labels, "is_streaming": stream}, totals) for stream, totals in self._totals.items()
        ]
        for name, text in _COUNTERS.items():
            values = [(labels, getattr(totals, name)) for labels, totals in by_stream]
            prefix = "num_requests" if name == "requests" else name
            yield Family(name=f"sglang:{prefix}_total", kind="counter", help=text, samples=values)
        if self.block_size is not None:
            yield Family(
                name="sglang:spec_verify_calls_total",
                kind="counter",
                help="Number of speculative decoding verification calls.",
                samples=[(self._labels, self.verify_calls)],
            )
        yield Family(
            name="sglang:time_to_first_token_seconds",
            kind="histogram",
            help="Histogram of time to first token in seconds.",
            samples=[(labels, totals.time_to_first_token) for labels, totals in by_stream],
        )
        yield Family(
            name="sglang:e2e_request_latency_seconds",
            kind="histogram",
            help="Histogram of End-to-end request latency in seconds",
            samples=[(labels, totals.e2e_latency) for labels, totals in by_stream],
        )
        yield Family(
            name="sglang:inter_token_latency_seconds",
            kind="histogram",
            help="Histogram of inter-token latency in seconds.",
            samples=[(self._labels, self._inter_token)],
        )

    def _gauges(self) -> dict[str, tuple[str, float]]:
        gauges: dict[str, tuple[str, float]] = {
            "max_total_num_tokens": (
                "Maximum total number of tokens in the KV cache pool.",
                self.capacity_tokens,
            ),
            "num_running_reqs": ("The number of running requests.", self.running),
            "num_queue_reqs": ("The number of requests in the waiting queue.", self.queued),
            "num_used_tokens": ("The number of used tokens.", self.tokens_in_use),
            "token_usage": ("The token usage.", self.token_usage),
            "gen_throughput": ("The generation throughput (token/s).", self.gen_throughput),
            "cache_hit_rate": ("The prefix cache hit rate.", 0.0),  # there is no prefix cache
        }
        if self.block_size is not None:
            gauges["spec_accept_length"] = (
                "Mean acceptance length of speculative decoding (accepted drafts + bonus token per forward).",
                self.spec_accept_length,
            )
            gauges["spec_accept_rate"] = (
                "Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).",
                self.spec_accept_rate,
            )
            gauges["spec_num_draft_tokens"] = (
                "Currently active speculative_num_draft_tokens.",
                self.block_size,
            )
        return gauges


_COUNTERS = {
    "prompt_tokens": "Number of prefill tokens processed.",
    "generation_tokens": "Number of generation tokens processed.",
    "requests": "Number of requests processed.",
}
