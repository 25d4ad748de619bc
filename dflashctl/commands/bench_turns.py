"""The turns of one load's conversations: each sent when the answers before it are there, until the run ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.bench import RequestError, run_load
from dflashctl.commands.bench_prompts import limited, requests_of
from dflashctl.core.bench_runs import Unfinished
from dflashctl.core.bench_window import without_pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.bench import LoadProgress, LoadResult, LoadSpec, RequestRecord
    from dflashctl.commands.bench_prompts import Gathered
    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.workload import BenchPrompt, Message
    from dflashctl.ports.chat_template import ChatTemplate
    from dflashctl.proofs.client import Client

_Talk = tuple["BenchPrompt", tuple["Message", ...]]  # a prompt, and its conversation so far


@dataclass(frozen=True, kw_only=True)
class Turns:
    """One result a turn. `unfinished`: why not every request was sent and answered, None when all were.

    What was in flight when the user stopped is in `results` no more: it is neither done nor a fault of the server.
    """

    results: tuple[LoadResult, ...]
    unfinished: Unfinished | None = None

    @property
    def records(self) -> tuple[RequestRecord, ...]:
        """All of them on one clock that stands still between the turns."""
        return without_pauses([result.records for result in self.results])


def converse(
    spec: LoadSpec,
    client: Client,
    template: ChatTemplate | None,
    setting: Setting,
    gathered: Gathered,
    notify: Callable[[LoadProgress], None],
) -> Turns:
    """Turn after turn of all conversations: a follow-up goes out with the answer that came before it.

    Ctrl-C ends it with what was done. `spec.max_duration_s` is the limit of all turns together.
    """
    talks: list[_Talk] = [(limited(prompt, gathered), prompt.messages) for prompt in gathered.prompts]
    results: list[LoadResult] = []
    left_s = spec.max_duration_s
    while talks:
        if left_s is not None and left_s <= 0:
            return Turns(results=tuple(results), unfinished=Unfinished.MAX_DURATION)
        turn = len(results)
        names = [_turn_id(prompt, turn) for prompt, _ in talks]
        asked = [
            (name, talk, prompt.max_tokens or gathered.max_tokens)
            for name, (prompt, talk) in zip(names, talks, strict=True)
        ]
        requests = requests_of(asked, setting, client, template)
        try:
            result = run_load(_for_turn(spec, talks, turn, left_s), requests, notify)
        except KeyboardInterrupt:  # before the first request of this turn was sent
            if not results:
                raise
            return Turns(results=tuple(results), unfinished=Unfinished.INTERRUPTED)
        results.append(_without_aborted(result))
        if result.interrupted:
            return Turns(results=tuple(results), unfinished=Unfinished.INTERRUPTED)
        if len(result.records) < len(requests):
            return Turns(results=tuple(results), unfinished=Unfinished.MAX_DURATION)
        left_s = None if left_s is None else left_s - result.window.duration_s
        talks = _next_turn(talks, names, result.records, turn)
    return Turns(results=tuple(results))


def _for_turn(spec: LoadSpec, talks: Sequence[_Talk], turn: int, left_s: float | None) -> LoadSpec:
    """Whole answers are kept where a follow-up repeats them."""
    goes_on = any(turn < len(prompt.follow_ups) for prompt, _ in talks)
    return replace(spec, max_duration_s=left_s, text_end=None if goes_on else spec.text_end)


def _without_aborted(result: LoadResult) -> LoadResult:
    kept = tuple(record for record in result.records if record.error is not RequestError.ABORTED)
    return replace(result, records=kept)


def _turn_id(prompt: BenchPrompt, turn: int) -> str:
    return f"{prompt.id}#{turn + 1}" if prompt.follow_ups else prompt.id


def _next_turn(
    talks: Sequence[_Talk], names: Sequence[str], records: Sequence[RequestRecord], turn: int
) -> list[_Talk]:
    """The conversations that go on: those with a further turn whose last one was answered."""
    answers = {record.id: record.text or "" for record in records if record.ok}
    return [
        (prompt, (*talk, ("assistant", answers[name]), ("user", prompt.follow_ups[turn])))
        for name, (prompt, talk) in zip(names, talks, strict=True)
        if turn < len(prompt.follow_ups) and name in answers
    ]
