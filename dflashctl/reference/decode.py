"""One engine step for all running sequences: draft blocks, run the target once, keep what it agrees with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dflashctl.reference.cache import KeyValueCache
from dflashctl.reference.layers import Span
from dflashctl.reference.request import TokenLogprob
from dflashctl.reference.sampling import log_softmax, verify
from dflashctl.reference.sequence import Sequence

if TYPE_CHECKING:
    from collections.abc import Sequence as Many

    from dflashctl.reference.draft import Draft
    from dflashctl.reference.qwen3 import Target
    from dflashctl.reference.request import Request
    from dflashctl.reference.tokenizer import Tokenizer
    from dflashctl.reference.weights import Array


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """The drafter and how to use it."""

    draft: Draft
    block_size: int
    window: int | None


@dataclass(kw_only=True)
class _Work:
    """What one sequence runs in this step: prompt tokens, a block, or its newest token alone."""

    sequence: Sequence
    tokens: list[int]
    drafted: int = 0  # how many of `tokens` are proposals
    samples: bool = True  # False for a part of a prompt that is not its end


@dataclass(frozen=True, kw_only=True)
class Yield:
    """The tokens that a step found for a sequence."""

    sequence: Sequence
    drafted: int  # how many proposals were verified; 0 for a plain token
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...]


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """The models, and how much of a prompt one step takes (``chunk`` tokens over all sequences)."""

    target: Target
    speculation: Speculation | None
    context_length: int
    chunk: int

    def sequence(self, request: Request, tokenizer: Tokenizer) -> Sequence:
        """Return the state in which ``request`` begins."""
        draft_cache = None
        if self.speculation is not None and request.speculation:
            draft_cache = KeyValueCache(self.speculation.draft.stack.config)
        cache = KeyValueCache(self.target.stack.config)
        return Sequence(request, tokenizer, self.context_length, cache, draft_cache)

    def step(self, sequences: Many[Sequence]) -> list[Yield]:
        """Advance every sequence once: a part of its prompt, or one verify step, or one plain token."""
        with np.errstate(over="ignore"):  # an exponential may be infinite: a gate is shut then, and stays so
            return self._step(self._plan(sequences))

    def _step(self, works: Many[_Work]) -> list[Yield]:
        self._propose(works)
        hidden, features, spans = self._forward(works)
        logits = iter(self._logits(hidden, works, spans))
        yields, kept = [], []
        for work in works:
            if not work.samples:
                kept.append(len(work.tokens))
                continue
            found = self._sample(work, next(logits))
            yields.append(found)
            kept.append(len(work.tokens) - work.drafted + len(found.tokens) - 1)
        self._commit(works, spans, kept, features)
        return yields

    def _plan(self, sequences: Many[Sequence]) -> list[_Work]:
        works, room = [], self.chunk
        for sequence in sequences:
            if not sequence.prefilling:
                drafted = self._drafts(sequence)
                tokens = [sequence.output_ids[-1], *[0] * drafted]
                works.append(_Work(sequence=sequence, tokens=tokens, drafted=drafted))
            elif room > 0:
                done, prompt = sequence.cache.length, sequence.request.prompt_ids
                part = list(prompt[done : done + room])
                room -= len(part)
                last = done + len(part) == len(prompt)
                works.append(_Work(sequence=sequence, tokens=part, samples=last))
        return works

    def _drafts(self, sequence: Sequence) -> int:
        if self.speculation is None or sequence.draft_cache is None:
            return 0
        return min(self.speculation.block_size, self.context_length - sequence.position) - 1

    def _propose(self, works: Many[_Work]) -> None:
        """Replace the drafted tokens of ``works`` by the drafter's proposals."""
        caches = [(work, work.sequence.draft_cache) for work in works if work.drafted]
        drafting = [(work, cache) for work, cache in caches if cache is not None]
        if self.speculation is None or not drafting:
            return
        mask = self.speculation.draft.config.mask_token_id
        spans = _spans([(cache, len(work.tokens)) for work, cache in drafting])
        tokens = np.concatenate([[work.tokens[0]] + [mask] * work.drafted for work, _ in drafting])
        positions = _positions(spans)
        filled = self.speculation.draft.propose(
            self.target, tokens, positions, spans, self.speculation.window
        ).tolist()
        for (work, _), span in zip(drafting, spans, strict=True):
            work.tokens[1:] = filled[span.begin + 1 : span.end]

    def _forward(self, works: Many[_Work]) -> tuple[Array, Array, list[Span]]:
        spans = _spans([(work.sequence.cache, len(work.tokens)) for work in works])
        tokens = np.concatenate([work.tokens for work in works])
        wanted = self.speculation.draft.config.target_layer_ids if self.speculation else ()
        hidden, features = self.target.forward(tokens, _positions(spans), spans, wanted)
        return hidden, features, spans

    def _logits(self, hidden: Array, works: Many[_Work], spans: Many[Span]) -> list[Array]:
        sampled = [(work, span) for work, span in zip(works, spans, strict=True) if work.samples]
        rows = [hidden[span.end - work.drafted - 1 : span.end] for work, span in sampled]
        if not rows:
            return []
        ends = np.cumsum([len(part) for part in rows])[:-1]
        return np.split(self.target.logits(np.concatenate(rows)), ends)

    def _sample(self, work: _Work, logits: Array) -> Yield:
        sequence = work.sequence
        drafts = np.array(work.tokens[len(work.tokens) - work.drafted :], dtype=np.int64)
        tokens = verify(logits, drafts, sequence.request.params, len(sequence.output_ids))
        if work.drafted and self.speculation is not None:
            sequence.count_verify(work.drafted, len(tokens) - 1, self.speculation.block_size)
        wanted = sequence.request.top_logprobs
        logprobs = () if wanted is None else _logprobs(logits, tokens, wanted)
        return Yield(sequence=sequence, drafted=work.drafted, tokens=tuple(tokens), logprobs=logprobs)

    def _commit(self, works: Many[_Work], spans: Many[Span], kept: Many[int], features: Array) -> None:
        """Lengthen the caches by the rows that turned out right, and tell the drafter about them."""
        rows, sources = [], []
        for work, span, count in zip(works, spans, kept, strict=True):
            span.cache.length += count
            if work.sequence.draft_cache is not None:
                sources.append((work.sequence.draft_cache, count))
                rows.append(np.arange(span.begin, span.begin + count))
        if self.speculation is not None and rows:
            grown = _spans(sources)
            self.speculation.draft.extend(features[np.concatenate(rows)], _positions(grown), grown)


def _spans(sources: Many[tuple[KeyValueCache, int]]) -> list[Span]:
    spans, begin = [], 0
    for cache, count in sources:
        spans.append(Span(cache=cache, begin=begin, end=begin + count))
        begin += count
    return spans


def _positions(spans: Many[Span]) -> np.ndarray:
    starts = [(span.cache.length, span.cache.length + span.end - span.begin) for span in spans]
    return np.concatenate([np.arange(start, stop) for start, stop in starts])


def _logprobs(logits: Array, tokens: Many[int], count: int) -> tuple[TokenLogprob, ...]:
    found = []
    for token, logs in zip(tokens, log_softmax(logits[: len(tokens)]), strict=True):
        best = np.argsort(-logs, kind="stable")[:count]
        top = tuple((int(index), float(logs[index])) for index in best)
        found.append(TokenLogprob(token_id=token, logprob=float(logs[token]), top=top))
    return tuple(found)
