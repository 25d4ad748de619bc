"""What a client asks for and what it gets: immutable values that cross between the HTTP and engine threads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """How to choose tokens and when to stop."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    no_stop_trim: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """One generation. ``top_logprobs`` is None when no log-probabilities are wanted."""

    rid: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    speculation: bool = True
    stream: bool = False
    top_logprobs: int | None = None
    probe: bool = False  # a health check: served at once and left out of the figures


@dataclass(frozen=True, kw_only=True)
class TokenLogprob:
    """The log-probability of a token, and the most probable tokens in its place."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True)
class Finish:
    """Why a generation ended: "stop" (with what matched), "length" or "abort"."""

    kind: str
    matched: int | str | None = None


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one step added to a request; ``finish`` is set on its last one."""

    rid: str
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[TokenLogprob, ...]
    finish: Finish | None
