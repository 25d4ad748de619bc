"""What OpenAI's two completion APIs share: common options, usage, and answers whole or in chunks."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.meta_info import WEIGHT_VERSION, meta_info, spec_details
from dflashctl.reference.parameters import choices
from dflashctl.reference.request import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from dflashctl.reference.engine import Engine
    from dflashctl.reference.fields import Fields
    from dflashctl.reference.request import Finish, SamplingParams, TokenLogprob, Update


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a choice's text, or all of it. ``offset`` is where it begins in that text."""

    text: str
    offset: int
    logprobs: tuple[TokenLogprob, ...]
    finish: Finish | None


class Shape(Protocol):
    """How one of the two APIs writes its objects."""

    whole: str
    chunk: str

    def choice(self, piece: Piece) -> dict[str, Any]:
        """Return the part of a finished choice that is this API's own."""

    def opening(self) -> dict[str, Any] | None:
        """Return what a choice's first chunk says before any text, if there is such a chunk."""

    def delta(self, piece: Piece) -> dict[str, Any]:
        """Return what a chunk says of a new piece of text."""


class Completion:
    """A request to either API that has begun."""

    def __init__(
        self,
        fields: Fields,
        engine: Engine,
        shape: Shape,
        prompts: Sequence[tuple[int, ...]],
        params: SamplingParams,
        top_logprobs: int | None,
    ) -> None:
        self.stream = fields.flag("stream")
        self._shape = shape
        options = fields.object("stream_options")
        self._wants_usage = options.flag("include_usage")
        self._wants_running_usage = options.flag("continuous_usage_stats")
        self._wants_meta = fields.flag("return_meta_info")
        self._wants_spec = fields.flag("return_spec_tokens_details")
        self._count = choices(fields)
        self._id, self._created = uuid.uuid4().hex, int(time.time())
        self._model = fields.string("model", engine.model_name)
        speculation = fields.flag(
            "speculation", default=fields.object("custom_params").flag("speculation", default=True)
        )
        many = len(prompts) * self._count > 1
        requests = [
            Request(
                rid=f"{self._id}_{index}_{copy}" if many else self._id,
                prompt_ids=prompt,
                params=replace(params, seed=params.seed + index * self._count + copy),
                speculation=speculation,
                stream=self.stream,
                top_logprobs=top_logprobs,
            )
            for index, prompt in enumerate(prompts)
            for copy in range(self._count)
        ]
        self.batch = engine.begin(requests)
        self._lengths = [0] * len(requests)
        self._tokens = [0] * len(requests)

    async def whole(self) -> dict[str, Any]:
        """Return the response when all is generated."""
        updates: list[list[Update]] = [[] for _ in self._lengths]
        async for index, update in self.batch:
            updates[index].append(update)
            self._tokens[index] += len(update.token_ids)
        body = self._frame(self._shape.whole)
        body["choices"] = [self._choice(index, parts) for index, parts in enumerate(updates)]
        body["usage"] = self._usage()
        body["metadata"] = {"weight_version": WEIGHT_VERSION}
        extension = self._extension()
        return {**body, "sglext": extension} if extension else body

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a stream, the figures and the usage after the text when they are wanted."""
        opened: set[int] = set()
        async for index, update in self.batch:
            opening = None if index in opened else self._shape.opening()
            if opening is not None:
                yield self._chunk([{"index": index, **opening, **_ending(None)}])
            opened.add(index)
            piece = self._piece(index, [update])
            self._tokens[index] += len(update.token_ids)
            if piece.text or piece.logprobs or piece.finish:
                chunk = self._chunk([{"index": index, **self._shape.delta(piece), **_ending(piece.finish)}])
                yield {**chunk, "usage": self._running_usage(index)} if self._wants_running_usage else chunk
        extension = self._extension()
        if extension:
            yield {**self._chunk([]), "sglext": extension}
        if self._wants_usage:
            yield {**self._chunk([]), "usage": self._usage()}

    def _choice(self, index: int, parts: Sequence[Update]) -> dict[str, Any]:
        piece = self._piece(index, parts)
        choice = {"index": index, **self._shape.choice(piece), **_ending(piece.finish)}
        if self._wants_meta:
            sequence = self.batch.sequences[index]
            choice["meta_info"] = meta_info(sequence, self._tokens[index], piece.finish)
        return choice

    def _piece(self, index: int, parts: Sequence[Update]) -> Piece:
        text, offset = "".join(part.text for part in parts), self._lengths[index]
        self._lengths[index] += len(text)
        logprobs = tuple(item for part in parts for item in part.logprobs)
        return Piece(text=text, offset=offset, logprobs=logprobs, finish=parts[-1].finish)

    def _frame(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _chunk(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._frame(self._shape.chunk), "choices": parts, "usage": None}

    def _usage(self) -> dict[str, Any]:
        """Count each prompt once, however many answers it gets."""
        prompt = sum(len(item.request.prompt_ids) for item in self.batch.sequences[:: self._count])
        return _counts(prompt, sum(self._tokens))

    def _running_usage(self, index: int) -> dict[str, Any]:
        """Count what that choice has so far."""
        return _counts(len(self.batch.sequences[index].request.prompt_ids), self._tokens[index])

    def _extension(self) -> dict[str, Any] | None:
        """Return ``sglext``; an array of figures when there are several choices."""
        details = [spec_details(sequence) for sequence in self.batch.sequences]
        if not self._wants_spec or not any(details):
            return None
        return {"spec_tokens_details": details if len(details) > 1 else details[0]}


def _counts(prompt: int, completion: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
    }


def refuse_stream_meta(fields: Fields) -> None:
    """Refuse ``return_meta_info`` in a stream, as SGLang does."""
    if fields.flag("stream") and fields.flag("return_meta_info"):
        raise BadRequestError(
            "return_meta_info is not supported with streaming. "
            "Please set stream=false when using return_meta_info=true.",
            "BadRequest",
        )


def _ending(finish: Finish | None) -> dict[str, Any]:
    if finish is None:
        return {"finish_reason": None, "matched_stop": None}
    return {
        "finish_reason": finish.kind,
        "matched_stop": finish.matched if finish.kind == "stop" else None,
    }
