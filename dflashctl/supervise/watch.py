"""Watch: which question the server is asked next, and what its answer means for the lifecycle."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dflashctl.core.events import CanaryDone, Event, Metrics, PortTaken, Progressed, Proved, Refused
from dflashctl.core.instance import Phase, ProbeState, Reason
from dflashctl.core.metrics_text import LiveFigures
from dflashctl.supervise.prober import Prober
from dflashctl.supervise.proof import Denied, Proven

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.pace import Pace
    from dflashctl.core.server_state import State
    from dflashctl.supervise.life import Life
    from dflashctl.supervise.proof import ServerProbe


@dataclass(frozen=True, kw_only=True)
class _CanaryAnswer:
    """A canary, and the figures read right after one that failed: tokens may have come meanwhile."""

    ok: bool
    figures: LiveFigures | None = None


class Watch:
    """Asks through the prober, one question at a time, and keeps what the record shows of the answers."""

    def __init__(
        self, probe: ServerProbe, pace: Pace, *, port: int, proof_timeout_s: float, wake: Callable[[], None]
    ) -> None:
        self._probe = probe
        self._pace = pace
        self._port = port
        self._proof_timeout_s = proof_timeout_s
        self._wake = wake
        self._answers: deque[tuple[int, object]] = deque()
        self._prober = Prober(self._deliver)
        self._asked_at = float("-inf")
        self._tree_at = float("-inf")
        self._activity: int | None = None
        self.state = ProbeState()

    def answers(self, life: int) -> list[Event]:
        """What the answers of that life mean, oldest first."""
        if not self._prober.alive:
            raise RuntimeError("the prober's thread has ended")
        found: list[Event] = []
        while self._answers:
            number, answer = self._answers.popleft()
            if number == life:
                found += self._events(answer)
        return found

    def look(self, state: State, life: Life, now: float) -> list[Event]:
        """Look at ports and processes, and ask the next question when it is due and the last answer was heard."""
        if not self._prober.idle or self._answers:
            return self._look_around(state, life, now)
        if state.phase is Phase.LOADING and state.ending is None:
            return [*self._look_around(state, life, now), *self._look_loading(life, now)]
        if state.is_ready and state.canary_since is None and now - self._asked_at >= self._pace.metrics_s:
            self._ask(life, now, partial(self._probe.figures, self._pace.probe_timeout_s))
        return []

    def ask_canary(self, life: Life, now: float) -> None:
        """The next question is a canary; when another one hangs, that is an answer too."""
        if not self._ask(life, now, self._canary):
            self._deliver(life.number, _CanaryAnswer(ok=False))

    def abort_requests(self) -> None:
        self._probe.abort_requests(self._pace.probe_timeout_s)

    def _look_around(self, state: State, life: Life, now: float) -> list[Event]:
        """Whether a loading server reads or compiles, whatever it says."""
        if state.phase is not Phase.LOADING or now - self._tree_at < self._pace.tree_s:
            return []
        self._tree_at = now
        before, self._activity = self._activity, life.handle.activity()
        return [Progressed()] if before is not None and self._activity != before else []

    def _look_loading(self, life: Life, now: float) -> list[Event]:
        if now - self._asked_at < self._pace.start_probe_s:
            return []
        self._asked_at = now
        foreign = life.handle.foreign_listener(self._port)
        if foreign is not None:
            return [PortTaken(reason=port_taken(self._port, foreign))]
        if life.handle.listens(self._port):
            limits = {
                "probe_timeout_s": self._pace.probe_timeout_s,
                "generate_timeout_s": self._proof_timeout_s,
            }
            self._ask(life, now, partial(self._probe.prove, **limits))
        return []

    def _ask(self, life: Life, now: float, question: Callable[[], object]) -> bool:
        asked = self._prober.ask(life.number, question)
        if asked:
            self._asked_at = now
        return asked

    def _canary(self) -> _CanaryAnswer:
        if self._probe.canary(self._pace.canary_timeout_s):
            return _CanaryAnswer(ok=True)
        return _CanaryAnswer(ok=False, figures=self._probe.figures(self._pace.probe_timeout_s))

    def _deliver(self, life: int, answer: object) -> None:
        self._answers.append((life, answer))
        self._wake()

    def _events(self, answer: object) -> list[Event]:
        if isinstance(answer, Proven):
            self.state = ProbeState(
                last_ok_at_s=time.time(), latency_ms=answer.latency_ms, accept_length=answer.accept_length
            )
            return [Proved()]
        if isinstance(answer, Denied):
            return [Refused(reason=answer.reason)]
        if isinstance(answer, _CanaryAnswer):
            if answer.ok:
                self.state = replace(self.state, last_ok_at_s=time.time())
            seen = [self._metrics(answer.figures)] if answer.figures else []
            return [*seen, CanaryDone(ok=answer.ok)]
        if isinstance(answer, LiveFigures) or answer is None:
            return [self._metrics(answer)]
        return []

    def _metrics(self, figures: LiveFigures | None) -> Metrics:
        if figures is None:
            return Metrics(activity=None, working=None)
        self.state = replace(self.state, tokens_total=figures.tokens_total, last_ok_at_s=time.time())
        counts = [n for n in (figures.running, figures.queued) if n is not None]
        return Metrics(activity=figures.activity, working=sum(counts) > 0 if counts else None)


def port_taken(port: int, who: str) -> Reason:
    return Reason(code="port_taken", text=f"port {port} is taken by {who}")
