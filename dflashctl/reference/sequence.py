"""One request while it runs: its caches, its tokens so far, and when it must stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dflashctl.reference.request import Finish, TokenLogprob, Update
from dflashctl.reference.text import TextStream

if TYPE_CHECKING:
    from collections.abc import Sequence as Many

    from dflashctl.reference.cache import KeyValueCache
    from dflashctl.reference.request import Request
    from dflashctl.reference.tokenizer import Tokenizer


class Times:
    """When things happened to a request: wall-clock seconds, and None for what has not happened yet."""

    def __init__(self) -> None:
        self.received = time.time()
        self.started: float | None = None
        self.first_token: float | None = None
        self.last_token: float | None = None
        self.finished: float | None = None


class Sequence:
    """The engine's state of one request. Only the scheduler's thread changes it."""

    def __init__(
        self,
        request: Request,
        tokenizer: Tokenizer,
        context_length: int,
        cache: KeyValueCache,
        draft_cache: KeyValueCache | None,
    ) -> None:
        params = request.params
        self.request = request
        self.times = Times()
        self.cache = cache  # the target's
        self.draft_cache = draft_cache  # None without speculation
        self.output_ids: list[int] = []
        self.finish: Finish | None = None
        self.abort_reason: str | None = None
        self.verify_count = 0
        self.proposed_drafts = 0
        self.correct_drafts_histogram: list[int] = []
        self._limit = min(params.max_new_tokens, context_length - len(request.prompt_ids))
        self._stops = params.stop_token_ids | (frozenset() if params.ignore_eos else tokenizer.eos_token_ids)
        self._text = TextStream(
            lambda ids: tokenizer.decode(ids, skip_special_tokens=params.skip_special_tokens),
            params.stop,
            keep_stop=params.no_stop_trim,
        )

    @property
    def rid(self) -> str:
        """The request's name."""
        return self.request.rid

    @property
    def prefilling(self) -> bool:
        """Whether a part of the prompt has not been computed yet."""
        return self.cache.length < len(self.request.prompt_ids)

    @property
    def position(self) -> int:
        """The position of the newest token, which is known but not yet in the cache."""
        return len(self.request.prompt_ids) + len(self.output_ids) - 1

    @property
    def correct_drafts(self) -> int:
        """How many proposals the target agreed with, those beyond the end of the text included."""
        return sum(count * times for count, times in enumerate(self.correct_drafts_histogram))

    def count_verify(self, proposed: int, correct: int, block_size: int) -> None:
        """Note one verify step, in which ``correct`` of ``proposed`` drafts were right."""
        if not self.correct_drafts_histogram:
            self.correct_drafts_histogram = [0] * block_size
        self.verify_count += 1
        self.proposed_drafts += proposed
        self.correct_drafts_histogram[correct] += 1

    def add(self, tokens: Many[int], logprobs: Many[TokenLogprob]) -> Update:
        """Append ``tokens`` up to the first reason to stop, and return what the client gets to see."""
        now = time.time()
        self.times.first_token = self.times.first_token or now
        self.times.last_token = now
        begin = len(self.output_ids)
        if self.request.params.stop:
            for token in tokens:  # one by one, so that the count ends with the stop string
                self._append((token,))
                if self.finish:
                    break
        else:
            self._append(self._until_stop(tokens))
        added = tuple(self.output_ids[begin:])
        return self._update(added, tuple(logprobs[: len(added)]))

    def abort(self, reason: str) -> Update:
        """End the request without more tokens."""
        self.finish = Finish(kind="abort", matched=reason)
        return self._update((), ())

    def _until_stop(self, tokens: Many[int]) -> Many[int]:
        tokens = tokens[: self._limit - len(self.output_ids)]
        for index, token in enumerate(tokens):
            if token in self._stops:
                return tokens[: index + 1]
        return tokens

    def _append(self, tokens: Many[int]) -> None:
        self.output_ids.extend(tokens)
        matched = self._text.push(tokens)
        if tokens and tokens[-1] in self._stops:
            self.finish = Finish(kind="stop", matched=tokens[-1])
        elif matched is not None:
            self.finish = Finish(kind="stop", matched=matched)
        elif len(self.output_ids) >= self._limit:
            self.finish = Finish(kind="length")

    def _update(self, added: tuple[int, ...], logprobs: tuple[TokenLogprob, ...]) -> Update:
        final = self.finish is not None
        if final:
            self.times.finished = time.time()
        text = self._text.release(final=final)
        return Update(rid=self.rid, token_ids=added, text=text, logprobs=logprobs, finish=self.finish)
