"""The proofs that `up` makes once the server is ready, beside the supervision."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.instance import local_url
from dflashctl.core.progress import Progress
from dflashctl.core.smoke import Proof, ProofStatus
from dflashctl.proofs.client import Expected
from dflashctl.proofs.runner import ProofSettings, prove

if TYPE_CHECKING:
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env

_NOTICED_S = 1.0
_LOOK_S = 0.05
_ENDING = ("draining", "stopped", "failed", "backoff")
_MARKS = {
    ProofStatus.PASS: "pass",
    ProofStatus.FAIL: "FAIL",
    ProofStatus.SKIPPED: "skip",
    ProofStatus.BROKEN: "bug ",
}


def prove_plan(env: Env, plan: Plan) -> tuple[Proof, ...]:
    """The quick proofs on the plan's server; one failed proof when nothing answers there any more."""
    expected = Expected(
        model=plan.served_model_name, speculation=plan.speculation, block_size=plan.block_size
    )
    settings = ProofSettings(expected=expected, api_key=env.api_key(), quick=True)
    try:
        return prove(env.web, env.clock, local_url(plan.host, plan.port), settings)
    except DflashError as error:
        return (Proof(id="answers", title="answers", status=ProofStatus.FAIL, why=error.message),)


def any_failed(proofs: tuple[Proof, ...]) -> bool:
    return any(proof.status.bad for proof in proofs)


class Proving:
    """Makes the proofs each time the server becomes ready; a context manager around the supervision.

    What was asked of a server that has ended since proves nothing: such proofs are dropped.
    """

    def __init__(self, env: Env, plan: Plan) -> None:
        self._env = env
        self._plan = plan
        self._inner = env.notify
        self._began = env.clock.monotonic()
        self._thread: threading.Thread | None = None
        self._lives = 0
        self._is_ready = False
        self.proofs: tuple[Proof, ...] = ()

    def __enter__(self) -> Proving:
        self._env.notify = self._notify
        return self

    def __exit__(self, *_: object) -> None:
        self._env.notify = self._inner
        self._lives += 1
        if self._thread is not None:
            self._thread.join(timeout=0.5)

    def _notify(self, event: Progress) -> None:
        if event.step != "ready":
            if event.step in _ENDING and self._is_ready:
                self._is_ready = False
                self._lives += 1
            self._inner(event)
        elif not self._is_ready:
            self._is_ready = True
            self._say("ready", self._ready_line())
            self._thread = threading.Thread(
                target=self._prove, args=(self._lives,), name="proofs", daemon=True
            )
            self._thread.start()

    def _ready_line(self) -> str:
        url = local_url(self._plan.host, self._plan.port)
        if self._lives:
            return f"ready  {self._plan.name} at {url} again"
        took_s = self._env.clock.monotonic() - self._began
        return f"ready  {self._plan.name} at {url}, {took_s:.1f} s after the start"

    def _prove(self, life: int) -> None:
        proofs = prove_plan(self._env, self._plan)
        if (any_failed(proofs) and self._ends(life)) or life != self._lives:
            return
        self.proofs = proofs
        for proof in self.proofs:
            self._say("smoke", f"{_MARKS[proof.status]}   {proof.title}: {proof.why}")
        if any_failed(proofs):
            self._say("smoke", f"the server runs on; look closer: dflashctl smoke {self._plan.name}")
        self._say("serving", "serving; Ctrl-C stops it")

    def _ends(self, life: int) -> bool:
        """Whether the server is going, which is known a little later than its replies fail, or is being stopped."""
        end = self._env.clock.monotonic() + _NOTICED_S
        while life == self._lives:
            record = self._env.instances.read(self._plan.name).record
            if record is None or record.phase.value in _ENDING:
                return True
            if self._env.clock.monotonic() > end:
                return False
            self._env.clock.sleep(_LOOK_S)
        return True

    def _say(self, step: str, text: str) -> None:
        self._inner(Progress(step=step, text=text, final=True))
