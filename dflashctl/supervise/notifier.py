"""Notifier: tells systemd how it goes, in the words of the lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.instance import Phase

if TYPE_CHECKING:
    from dflashctl.core.server_state import Policy, State
    from dflashctl.edges.notify_systemd import SystemdNotify

_EXTEND_EVERY_S = 10.0
_MARGIN_S = 30.0


class Notifier:
    """Ready once, never taken back; more time is asked for only while the lifecycle's own limits still run."""

    def __init__(self, systemd: SystemdNotify) -> None:
        self._systemd = systemd
        self._extended_at = float("-inf")
        self._alive_at = float("-inf")

    def entered(self, state: State) -> None:
        """A new phase."""
        self._systemd.status(state.reason.text if state.reason else state.phase.value)
        if state.phase is Phase.READY:
            self._systemd.ready()
        elif state.phase is Phase.DRAINING:
            self._systemd.stopping()
            self._extended_at = float("-inf")

    def tick(self, state: State, now: float, policy: Policy) -> None:
        """A sign of life, and a wish for more time while starting or draining."""
        if self._systemd.watchdog_s is not None and now - self._alive_at >= self._systemd.watchdog_s / 3:
            self._alive_at = now
            self._systemd.alive()
        if now - self._extended_at < _EXTEND_EVERY_S:
            return
        if state.phase in {Phase.STARTING, Phase.LOADING, Phase.BACKOFF}:
            self._extended_at = now
            self._systemd.extend(policy.progress_timeout_s + _MARGIN_S)
        elif state.phase is Phase.DRAINING:
            self._extended_at = now
            self._systemd.extend(policy.drain_timeout_s + policy.kill_after_s + _MARGIN_S)
