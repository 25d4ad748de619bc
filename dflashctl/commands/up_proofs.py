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

_ENDING = ("draining", "stopped", "failed", "backoff")
_MARKS = {ProofStatus.PASS: "pass", ProofStatus.FAIL: "FAIL", ProofStatus.SKIPPED: "skip"}


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


class Proving:
    """Starts the proofs when the first progress event says ready; a context manager around the supervision."""

    def __init__(self, env: Env, plan: Plan) -> None:
        self._env = env
        self._plan = plan
        self._inner = env.notify
        self._began = env.clock.monotonic()
        self._thread: threading.Thread | None = None
        self._over = False
        self.proofs: tuple[Proof, ...] = ()

    def __enter__(self) -> Proving:
        self._env.notify = self._notify
        return self

    def __exit__(self, *_: object) -> None:
        self._env.notify = self._inner
        if self._thread is not None:
            self._thread.join(timeout=0.5)

    def _notify(self, event: Progress) -> None:
        if event.step != "ready":
            self._over = self._over or event.step in _ENDING
            self._inner(event)
            return
        if self._thread is not None:
            return
        took = self._env.clock.monotonic() - self._began
        self._say(
            "ready",
            f"ready  {self._plan.name} at {local_url(self._plan.host, self._plan.port)}, {took:.1f} s after the start",
        )
        self._thread = threading.Thread(target=self._prove, name="proofs", daemon=True)
        self._thread.start()

    def _prove(self) -> None:
        proofs = prove_plan(self._env, self._plan)
        if self._over:  # the server was stopped under them: they prove nothing
            return
        self.proofs = proofs
        for proof in self.proofs:
            self._say("smoke", f"{_MARKS[proof.status]}   {proof.title}: {proof.why}")
        if any(proof.status is ProofStatus.FAIL for proof in self.proofs):
            self._say("smoke", f"the server runs on; look closer: dflashctl smoke {self._plan.name}")
        self._say("serving", "serving; Ctrl-C stops it")

    def _say(self, step: str, text: str) -> None:
        self._inner(Progress(step=step, text=text, final=True))
