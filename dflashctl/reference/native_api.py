"""SGLang's native /generate: prompts as text or tokens, one or many, whole or streamed."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.fields import Fields, is_integers
from dflashctl.reference.meta_info import meta_info
from dflashctl.reference.parameters import choices, sampling_params
from dflashctl.reference.request import Request, SamplingParams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dflashctl.reference.engine import Batch, Engine
    from dflashctl.reference.request import Finish, TokenLogprob, Update

_DEFAULT_LENGTH = 128


class Answer:
    """One generation as it grows. Each chunk repeats all of it, as SGLang's do."""

    def __init__(self, batch: Batch, index: int, engine: Engine, *, names: bool) -> None:
        self.sequence = batch.sequences[index]
        self._engine, self._names = engine, names
        self._text = ""
        self._ids: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._finish: Finish | None = None

    def add(self, update: Update) -> None:
        """Take over what a step brought."""
        self._text += update.text
        self._ids += update.token_ids
        self._logprobs += update.logprobs
        self._finish = update.finish

    def body(self) -> dict[str, Any]:
        """Return the response object."""
        info = meta_info(self.sequence, len(self._ids), self._finish)
        top = self.sequence.request.top_logprobs
        if top is not None:
            info["input_token_logprobs"] = []
            info["output_token_logprobs"] = [
                self._entry(item.logprob, item.token_id) for item in self._logprobs
            ]
            if top:
                info["output_top_logprobs"] = [
                    [self._entry(logprob, token) for token, logprob in item.top] for item in self._logprobs
                ]
        return {"text": self._text, "output_ids": list(self._ids), "meta_info": info}

    def _entry(self, logprob: float, token: int) -> tuple[float, int, str | None]:
        name = self._engine.tokenizer.decode([token], skip_special_tokens=False) if self._names else None
        return (logprob, token, name)


class Generate:
    """A /generate request, read from its body."""

    def __init__(self, fields: Fields, engine: Engine, seed: int) -> None:
        self.stream = fields.flag("stream")
        prompts, self.many = _prompts(fields, engine)
        count = 1 if _is_list(fields, "sampling_params") else choices(fields.object("sampling_params"))
        self.many = self.many or count > 1
        self._names = fields.flag("return_text_in_logprobs")
        requests = []
        for index, prompt in enumerate(prompts):
            params = _params(fields, index, seed)
            for copy in range(count):
                chosen = replace(params, seed=params.seed + copy)
                requests.append(_request(fields, _rid(fields, index, copy), prompt, chosen))
        self._engine = engine
        self.batch = engine.begin(requests)
        self._answers = [
            Answer(self.batch, index, engine, names=self._names) for index in range(len(requests))
        ]

    async def whole(self) -> Any:
        """Return the response when all is generated."""
        async for index, update in self.batch:
            self._answers[index].add(update)
        bodies = [answer.body() for answer in self._answers]
        return bodies if self.many else bodies[0]

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the response of each step; of several prompts, with its index."""
        async for index, update in self.batch:
            self._answers[index].add(update)
            body = self._answers[index].body()
            yield {**body, "index": index} if self.many else body


def _prompts(fields: Fields, engine: Engine) -> tuple[list[tuple[int, ...]], bool]:
    text, ids = fields.any("text"), fields.any("input_ids")
    if (text is None) == (ids is None):
        raise BadRequestError("Either text or input_ids should be provided, and not both.")
    if isinstance(text, str):
        return [engine.tokenizer.encode(text)], False
    if text is not None:
        return [engine.tokenizer.encode(item) for item in fields.strings("text")], True
    if is_integers(ids):
        return [tuple(ids)], False
    if isinstance(ids, list) and ids and all(is_integers(item) for item in ids):
        return [tuple(item) for item in ids], True
    raise fields.wrong("input_ids", "list_type", "Input should be a list of integers, or a list of those")


def _is_list(fields: Fields, name: str) -> bool:
    return isinstance(fields.any(name), list)


def _params(fields: Fields, index: int, seed: int) -> SamplingParams:
    own = fields
    if _is_list(fields, "sampling_params"):
        each = fields.list("sampling_params")
        if index >= len(each) or not isinstance(each[index], dict):
            raise BadRequestError("sampling_params must be an object for each prompt.")
        own = Fields({"sampling_params": each[index]})
    return sampling_params(
        own.object("sampling_params"),
        length="max_new_tokens",
        default_length=_DEFAULT_LENGTH,
        seed="sampling_seed",
        fallback=seed + index,
    )


def _rid(fields: Fields, index: int, copy: int) -> str:
    named = fields.any("rid")
    if isinstance(named, list) and index < len(named):
        named = named[index]
    if not isinstance(named, str):
        return uuid.uuid4().hex
    return f"{named}_{copy}" if copy else named


def _request(fields: Fields, rid: str, prompt: tuple[int, ...], params: SamplingParams) -> Request:
    if fields.integer("logprob_start_len", -1) != -1:
        raise BadRequestError("Log-probabilities of the prompt are not supported by the reference engine.")
    custom = fields.object("custom_params")
    return Request(
        rid=rid,
        prompt_ids=prompt,
        params=params,
        speculation=fields.flag("speculation", default=custom.flag("speculation", default=True)),
        stream=fields.flag("stream"),
        top_logprobs=fields.integer("top_logprobs_num", 0) if fields.flag("return_logprob") else None,
    )
