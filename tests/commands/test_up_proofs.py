"""Which proofs of a start count: those of a server that has not ended since."""

from __future__ import annotations

import threading

import pytest

from dflashctl.commands.up_proofs import Proving
from dflashctl.core.instance import Phase
from dflashctl.core.progress import Progress
from dflashctl.core.smoke import ProofStatus
from tests.supervise.harness import Harness, wait_for


@pytest.fixture
def harness(tmp_path):
    made = Harness(tmp_path)
    yield made
    made.end()


@pytest.fixture
def owned(harness):
    """The instance; nothing listens on its port, so that its proofs fail at once."""
    with harness.env.instances.own("tiny") as owned:
        owned.enter(Phase.READY, "ready")
        yield owned


def tell(proving, *steps):
    for name in steps:
        proving._notify(Progress(step=name, text=name))


def test_proofs_that_fail_on_a_server_that_stays_up_count(harness, owned):
    said = []
    harness.env.notify = said.append
    with Proving(harness.env, harness.plan()) as proving:
        tell(proving, "loading", "ready", "ready", "unhealthy", "ready")
        wait_for(lambda: proving.proofs, "the proofs")
    assert [proof.status for proof in proving.proofs] == [ProofStatus.FAIL]
    assert [event.text.split()[0] for event in said if event.step == "ready"] == ["ready"]


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.STOPPED, Phase.FAILED, Phase.BACKOFF])
@pytest.mark.parametrize("told", [True, False])
def test_proofs_that_fail_as_the_server_goes_do_not_count(harness, owned, phase, told):
    """Its end is in the record before it is felt, and on the screen some time after."""
    if not told:
        owned.enter(phase, "going")
    with Proving(harness.env, harness.plan()) as proving:
        tell(proving, "ready", *([phase.value] if told else []))
        wait_for(lambda: not proving._thread.is_alive(), "the end of the proofs")
    assert proving.proofs == ()


def test_a_server_that_is_ready_again_is_proven_again(harness, owned):
    said, started = [], threading.active_count()
    harness.env.notify = said.append
    with Proving(harness.env, harness.plan()) as proving:
        tell(proving, "ready", "backoff", "starting", "ready")
        wait_for(lambda: proving.proofs, "the proofs")
    wait_for(lambda: threading.active_count() <= started, "the end of the proofs")
    assert [event.text for event in said if event.step == "ready"][1].endswith("again")
    assert sum(event.text.startswith("FAIL") for event in said) == 1
