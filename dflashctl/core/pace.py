"""Pace: how often the supervisor looks, and how long a look may take; all in seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.server_state import Policy

if TYPE_CHECKING:
    from dflashctl.core.profile import Timing


@dataclass(frozen=True, kw_only=True)
class Pace:
    """`standstill_s` is a gap between two looks that means that the supervisor itself stood still.

    `canary_timeout_s` lies above the 20 s after which SGLang's own health check gives up.
    """

    tick_s: float = 0.25
    start_probe_s: float = 0.5
    metrics_s: float = 5.0
    probe_timeout_s: float = 25.0
    canary_timeout_s: float = 60.0
    canary_interval_s: float = 60.0
    tree_s: float = 2.0
    record_s: float = 1.0
    standstill_s: float = 5.0
    kill_after_s: float = 20.0
    backoff_s: tuple[float, ...] = (5.0, 15.0, 45.0)

    def within(self, hang_after_s: float) -> Pace:
        """The pace with test completions often and short enough to notice a hang of `hang_after_s` about then.

        An idle server is doubted by its canaries alone: a frozen scheduler reports no running request.
        """
        return replace(
            self,
            canary_interval_s=min(self.canary_interval_s, hang_after_s),
            canary_timeout_s=min(self.canary_timeout_s, max(self.probe_timeout_s, hang_after_s)),
        )


def policy(timing: Timing, pace: Pace, *, restarts: int, jitter: float) -> Policy:
    """The limits of a plan at that pace."""
    return Policy(
        progress_timeout_s=timing.progress_timeout_s,
        ready_timeout_s=timing.ready_timeout_s,
        drain_timeout_s=timing.drain_timeout_s,
        kill_after_s=pace.kill_after_s,
        hang_after_s=timing.hang_after_s,
        stable_after_s=timing.stable_after_s,
        canary_interval_s=pace.canary_interval_s,
        restarts=restarts,
        backoff_s=pace.backoff_s,
        jitter=jitter,
    )
