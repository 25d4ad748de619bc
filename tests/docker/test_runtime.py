"""`--runtime docker`: the server in a container, under the same supervisor."""

import os
import signal
from dataclasses import replace

import pytest

from dflashctl.commands.down import down
from tests.docker.conftest import run
from tests.supervise.harness import FAKE, ROOT, Harness, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]


@pytest.fixture
def harness(tmp_path, image):
    made = Harness(tmp_path)
    made.image = image
    yield made
    made.end()
    left = run(
        "ps", "-aq", "--filter", f"label=dflashctl.instance={made.state}/v1/instances/tiny"
    ).stdout.split()
    for name in left:
        run("rm", "-f", name)
    assert not left


def plan(harness, *faults):
    """The fake server, whose file the container sees through the place of a model."""
    made = harness.plan()
    folder = replace(made.target, model=str(ROOT / "tests/fakes"))
    argv = ("python3", str(FAKE), "--port", str(harness.port), "--mark", harness.mark, *faults)
    return replace(made, runtime="docker", image=harness.image, argv=argv, target=folder)


def test_a_container_becomes_ready_and_is_stopped_in_order(harness):
    up = harness.start(plan(harness))
    record = harness.reach("ready")
    assert record.container
    assert record.served.runtime == "docker"
    assert record.probe.accept_length == 8
    assert "fired up and ready" in harness.log()
    harness.stop()
    assert harness.ended(up) == 0
    assert "Gracefully exiting" in harness.log()
    assert run("inspect", record.container, check=False).returncode != 0


def test_a_crash_in_a_container_is_classified_and_started_again(harness):
    harness.start(plan(harness))
    record = harness.reach("ready")
    first = record.container
    os.kill(record.server.pid, signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    assert harness.record().last_exit.signal == 9
    assert harness.reach("ready").container != first
    assert down(harness.env).exit_code == 0
    assert harness.ended() == 0


def test_fault_17_a_container_does_not_outlive_a_killed_supervisor(harness):
    up = harness.start(plan(harness))
    record = harness.reach("ready")
    wait_for(lambda: harness.record().sessions, "the session")
    up.kill()
    up.wait()
    harness.nothing_left(2.0)
    report = down(harness.env, "tiny")
    assert report.exit_code == 0
    assert run("inspect", record.container, check=False).returncode != 0


def test_an_image_that_is_not_here_is_permanent(harness):
    harness.start(replace(plan(harness), image="no-such-image:1"))
    assert harness.ended() == 78
    assert "docker pull no-such-image:1" in harness.result()["findings"][0]["summary"]


def test_no_engine_is_unavailable(harness):
    harness.start(plan(harness), environ={"DOCKER_HOST": "unix:///no/such/socket"})
    assert harness.ended() == 69
    assert "does not answer" in harness.stderr()


def test_a_refused_program_names_it(harness):
    harness.start(replace(plan(harness), argv=("/no/such/program",)))
    assert harness.ended() == 78
