"""Loop: the resident part; turns what happens into events, and carries out what the lifecycle answers."""

from __future__ import annotations

import select
import signal
import threading
from typing import TYPE_CHECKING

from dflashctl.core import events as ev
from dflashctl.core.errors import StateError
from dflashctl.core.events import Action, Event
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.lifecycle import step
from dflashctl.core.progress import Progress
from dflashctl.core.server_state import Policy, State
from dflashctl.edges import sockets
from dflashctl.ports.server import StartRefused, is_passing
from dflashctl.supervise.life import Life, prepare
from dflashctl.supervise.log_reader import LogReader
from dflashctl.supervise.signals import OneStop, is_stop
from dflashctl.supervise.stacks import dump_stacks
from dflashctl.supervise.watch import port_taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.supervise.tools import Tools

_CLEANING_S = 0.02


class Loop:
    """One event at a time: the state it leads to is journalled first, then its actions are carried out."""

    def __init__(self, tools: Tools, policy: Policy) -> None:
        self._tools = tools
        self._policy = policy
        self._clock = tools.env.clock
        self.state = State(since=self._clock.monotonic())
        self._life: Life | None = None
        self._lives = 0
        self._reader = LogReader(tools.engine.read_log_line)
        self._looked_at = self._clock.monotonic()
        self._tree_at = self._held_at = self._looked_at
        self._one_stop = OneStop()
        self._do: dict[Action, Callable[[], None]] = {
            Action.SPAWN: self._spawn,
            Action.TERMINATE: self._terminate,
            Action.ABORT_REQUESTS: self._abort_requests,
            Action.DUMP_STACKS: self._dump_stacks,
            Action.KILL: self._kill,
            Action.CLEAN_UP: self._clean_up,
            Action.CANARY: self._canary,
            Action.FINISH: self._finish,
        }

    def run(self) -> State:
        """Until the lifecycle says that it is over."""
        self._apply(ev.Begin())
        while self.state.exit_code is None:
            self._wait()
            # Each source is asked only after the news of the one before has been acted on.
            for source in (self._news, self._look, self._ticks):
                for event in source(self._clock.monotonic()):
                    self._apply(event)
        return self.state

    def abandon(self) -> None:
        """Something of ours failed: nothing may be left all the same."""
        if self._life is not None:
            while not self._life.clean_up():
                self._clock.sleep(_CLEANING_S)

    def _wait(self) -> None:
        tools, life = self._tools, self._life
        watched = [tools.signals.descriptor]
        timeout_s = tools.pace.tick_s
        if life is not None and not life.ended:
            watched.append(life.handle.exit_descriptor)
        if life is not None and life.cleaning:
            timeout_s = min(timeout_s, _CLEANING_S)
        select.select(watched, [], [], timeout_s)

    def _news(self, now: float) -> list[Event]:
        """What has happened since the last time, in the order in which it counts."""
        found: list[Event] = []
        gap = now - self._looked_at
        if gap > self._tools.pace.standstill_s:
            found.append(ev.Slept(seconds=gap))
        self._looked_at = now
        found += self._stop_events()
        self._tools.reaper.reap()
        return found + (self._life_events(self._life) if self._life is not None else [])

    def _look(self, now: float) -> list[Event]:
        """What the server and its processes look like now."""
        life = self._life
        if life is None or life.ended:
            return []
        if self.state.killed_at is not None:
            life.handle.kill()
        return self._tools.watch.look(self.state, life, now)

    def _ticks(self, now: float) -> list[Event]:
        self._keep_house(now)
        return [*self._lock_events(now), ev.Tick()]

    def _lock_events(self, now: float) -> list[Event]:
        """A stop when somebody removed our lock and took the instance: two supervisors must not go on."""
        if now - self._held_at < self._tools.pace.tree_s or self.state.stopping is not None:
            return []
        self._held_at = now
        if self._tools.owned.still_held():
            return []
        text = "the instance's lock was removed and somebody else has taken it"
        self._say(text)
        return [ev.StopRequested(reason=Reason(code="lock_lost", text=text), interrupt=False)]

    def _stop_events(self) -> list[Event]:
        found: list[Event] = []
        for number in self._tools.signals.take():
            name = signal.Signals(number).name
            if is_stop(number):
                if number == signal.SIGHUP:
                    self._tools.screen.switch_off()
                if not self._one_stop.is_another(self._clock.monotonic()):
                    continue
                reason = Reason(code="stop", text=f"stop asked for by {name}")
                found.append(ev.StopRequested(reason=reason, interrupt=number == signal.SIGINT))
            else:
                self._say(
                    f"{name} is ignored: a suspended supervisor could not watch the server; Ctrl-C stops it"
                )
        return found

    def _life_events(self, life: Life) -> list[Event]:
        found: list[Event] = self._reader.events(self._tools.pump.take())
        found += self._tools.watch.answers(life.number)
        if life.cleaning:
            return [*found, self._end(life)] if life.clean_up() else found
        return [*found, ev.Exited()] if life.has_ended() else found

    def _end(self, life: Life) -> Event:
        verdict = life.verdict(self.state)
        self._tools.guard.clear()
        life.close()
        self._life = None
        self._tools.journal.sessions = ()
        return ev.Ended(last_exit=verdict.last_exit, reason=verdict.reason, permanent=verdict.permanent)

    def _keep_house(self, now: float) -> None:
        tools = self._tools
        if tools.guard.check():
            tools.journal.note("guard", "the guard had died and was replaced")
        if self._life is not None and not self._life.cleaning and now - self._tree_at >= tools.pace.tree_s:
            self._tree_at = now
            tools.journal.sessions = self._life.handle.sessions()
            tools.journal.server = self._life.handle.identity
            for session in tools.journal.sessions:
                tools.guard.watch(session)
        tools.notifier.tick(self.state, now, self._policy)

    def _apply(self, event: Event) -> None:
        before = self.state
        self.state, actions = step(before, event, self._clock.monotonic(), self._policy)
        tools = self._tools
        tools.labels.phase = self.state.phase
        tools.journal.probe = tools.watch.state
        if not self.state.is_ready:
            tools.journal.facts = dict(self._reader.facts)
        tools.journal.log_lost_lines = tools.log.lost_lines
        tools.journal.update(self.state)
        if self.state.phase is not before.phase:
            self._entered(before)
        for action in actions:
            self._do[action]()

    def _entered(self, before: State) -> None:
        self._tools.notifier.entered(self.state)
        if self.state.phase is Phase.READY and before.phase is Phase.LOADING and self._life is not None:
            self._life.forget_secret()
        if self.state.phase is Phase.DRAINING:
            limit = self._policy.drain_timeout_s + self._policy.kill_after_s
            self._say(f"stopping: running requests have {limit:g} s; once more Ctrl-C or TERM kills at once")

    def _spawn(self) -> None:
        try:
            self._check_port()
            self._life = self._prepare()
            tools = self._tools
            tools.journal.server = self._life.handle.identity
            tools.journal.container = self._life.handle.container
            tools.journal.sessions = self._life.handle.sessions()
            tools.journal.update(self.state, force=True)
            for session in tools.journal.sessions:
                tools.guard.watch(session)
            self._life.handle.go()
        except StartRefused as refused:
            self._refuse(Reason(code="cannot_start", text=str(refused)), permanent=refused.permanent)
        except OSError as error:
            reason = Reason(code="cannot_start", text=f"the start could not be prepared: {error}")
            self._refuse(reason, permanent=self.state.attempt == 1 and not is_passing(error))
        except StateError as error:
            if self.state.attempt == 1:
                raise
            self._refuse(Reason(code="cannot_start", text=error.message), permanent=False)
        except _PortInUse as taken:
            self._refuse(taken.reason)
        else:
            self._apply(ev.Spawned())

    def _check_port(self) -> None:
        plan = self._tools.plan
        if sockets.can_bind(plan.host, plan.port):
            return
        held = sockets.listeners(plan.port, plan.host)
        who = held[0].describe() if held else "a process that cannot be seen from here"
        raise _PortInUse(port_taken(plan.port, who))

    def _prepare(self) -> Life:
        tools = self._tools
        self._lives += 1
        tools.labels.begin()
        self._reader = LogReader(tools.engine.read_log_line)
        return prepare(
            self._lives,
            tools.plan,
            tools.env.environ,
            launcher=tools.launcher,
            pump=tools.pump,
            runtime=tools.owned.runtime_folder(),
            key=tools.key,
        )

    def _refuse(self, reason: Reason, *, permanent: bool = True) -> None:
        self.abandon()
        if self._life is not None:
            self._life.close()
            self._life = None
        self._tools.journal.sessions = ()
        self._apply(ev.SpawnFailed(reason=reason, permanent=permanent))

    def _terminate(self) -> None:
        if self._life is not None:
            self._life.handle.terminate()

    def _kill(self) -> None:
        if self._life is not None:
            self._life.handle.kill()

    def _clean_up(self) -> None:
        if self._life is not None:
            self._life.cleaning = True

    def _canary(self) -> None:
        if self._life is not None:
            self._tools.watch.ask_canary(self._life, self._clock.monotonic())

    def _abort_requests(self) -> None:
        threading.Thread(target=self._tools.watch.abort_requests, name="abort", daemon=True).start()

    def _dump_stacks(self) -> None:
        if self._life is not None:
            try:
                text = dump_stacks(self._life.handle.leftovers())
                said = f"written to {self._tools.owned.write('stacks.txt', text)}"
            except (OSError, StateError) as error:
                said = f"lost: {error}"
            self._tools.journal.note("stacks", said)

    def _finish(self) -> None:
        self._tools.journal.update(self.state, force=True)

    def _say(self, text: str) -> None:
        """Into the log, and to whoever looks: what the next Ctrl-C will do must be known where it is pressed."""
        tools = self._tools
        tools.pump.say(text)
        if tools.sink is not None:
            tools.show(text)
        else:
            told = Progress(step=self.state.phase.value, text=text, final=True)
            tools.screen.post(lambda: tools.env.notify(told))


class _PortInUse(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason
