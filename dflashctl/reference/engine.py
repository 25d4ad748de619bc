"""Where the HTTP side meets the engine's thread: start generations, follow them, drop them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.request import Request, SamplingParams
from dflashctl.reference.scheduler import Scheduler
from dflashctl.reference.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from collections.abc import Sequence as Many

    from dflashctl.reference.arguments import Settings
    from dflashctl.reference.load import Models
    from dflashctl.reference.log import Log
    from dflashctl.reference.request import Update
    from dflashctl.reference.sequence import Sequence


class Batch:
    """The generations of one HTTP request. Iterate for (index, update); close() drops what still runs."""

    def __init__(self, engine: Engine, sequences: Many[Sequence]) -> None:
        self.sequences = tuple(sequences)
        self._engine = engine
        self._updates: asyncio.Queue[tuple[int, Update]] = asyncio.Queue()

    def put(self, index: int, update: Update) -> None:
        """Hand over an update of the generation ``index``; called in the event loop."""
        self._updates.put_nowait((index, update))

    async def __aiter__(self) -> AsyncIterator[tuple[int, Update]]:
        """Yield every update in the order of the steps, until all generations have ended."""
        left = len(self.sequences)
        while left:
            index, update = await self._updates.get()
            left -= update.finish is not None
            yield index, update

    async def finished(self) -> None:
        """Wait until all generations have ended."""
        async for _ in self:
            pass

    def close(self) -> None:
        """Abort the generations that have not ended; harmless when all have."""
        for sequence in self.sequences:
            self._engine.forget(sequence)


class Engine:
    """The models behind a scheduler, usable from an event loop."""

    def __init__(self, models: Models, settings: Settings, log: Log) -> None:
        self.models, self.tokenizer, self.model_name = models, models.tokenizer, settings.served_model_name
        self.statistics = Statistics(
            settings.served_model_name,
            models.capacity_tokens,
            models.block_size,
            settings.decode_log_interval,
        )
        self.scheduler = Scheduler(models.decoder, self.statistics, log, settings.max_running_requests)
        self.crashed = asyncio.Event()
        self._owners: dict[str, tuple[Batch, int]] = {}
        self._probes = 0

    def start(self) -> None:
        """Start the engine's thread; call this in the event loop that will use it."""
        loop = asyncio.get_running_loop()
        self.scheduler.start(
            lambda updates: _post(loop, self._dispatch, updates),
            lambda: _post(loop, self.crashed.set),
        )

    def begin(self, requests: Many[Request]) -> Batch:
        """Start ``requests``; raises BadRequestError, before any has begun, when one cannot be served."""
        for request in requests:
            self._check(request)
        sequences = [self.models.decoder.sequence(item, self.tokenizer) for item in requests]
        batch = Batch(self, sequences)
        for index, sequence in enumerate(sequences):
            self._owners[sequence.rid] = (batch, index)
        for sequence in sequences:
            self.scheduler.submit(sequence)
        return batch

    def forget(self, sequence: Sequence) -> None:
        """Stop following ``sequence``, and stop computing it."""
        if self._owners.pop(sequence.rid, None) is not None:
            self.scheduler.abort(sequence.rid)

    async def probe(self, timeout_s: float) -> bool:
        """Return whether the engine generates a token within ``timeout_s``; it takes part in the next step."""
        self._probes += 1
        params = SamplingParams(max_new_tokens=1, temperature=0)
        rid = f"HEALTH_CHECK_{self._probes}"
        batch = self.begin([Request(rid=rid, prompt_ids=(0,), params=params, probe=True)])
        try:
            await asyncio.wait_for(batch.finished(), timeout_s)
        except asyncio.TimeoutError:
            return False
        finally:
            batch.close()
        return True

    def _check(self, request: Request) -> None:
        size, context = len(request.prompt_ids), self.models.context_length
        vocabulary = self.models.decoder.target.stack.config.vocab_size
        if size >= context:
            raise BadRequestError(
                f"The input ({size} tokens) is longer than the model's context length ({context} tokens)."
            )
        if not size:
            raise BadRequestError("The prompt is empty.")
        if not all(0 <= token < vocabulary for token in request.prompt_ids):
            raise BadRequestError(f"The input_ids hold values outside the vocabulary of {vocabulary} tokens.")
        if request.rid in self._owners:
            raise BadRequestError(f"Duplicate request ID detected: {request.rid}")

    def _dispatch(self, updates: list[Update]) -> None:
        for update in updates:
            owner = self._owners.get(update.rid)
            if owner is not None:
                if update.finish is not None:
                    del self._owners[update.rid]
                owner[0].put(owner[1], update)


def _post(loop: asyncio.AbstractEventLoop, call: object, *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(call, *arguments)  # type: ignore[arg-type]
    except RuntimeError:  # the loop has closed: nobody is left to tell
        return
