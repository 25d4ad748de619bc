"""A state folder whose disk is full: the server goes on, and whoever looks is told that the record does not."""

from __future__ import annotations

import io
import os
import subprocess

import pytest

from dflashctl.commands.diagnose import diagnose
from dflashctl.commands.down import down
from dflashctl.commands.status import status
from dflashctl.core.errors import StateError
from dflashctl.edges.room import has_room
from dflashctl.supervise.detached_start import DetachedStart
from dflashctl.ui.text import show
from tests.supervise.harness import quiet, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")


@pytest.fixture
def small(harness):
    """The harness' state folder on a disk of its own, which can be filled."""
    harness.state.mkdir(mode=0o700)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(harness.state)], check=True
    )
    yield harness
    down(harness.env, "tiny")
    wait_for(  # its supervisor gives the lock up just before it ends
        lambda: (
            subprocess.run(["umount", str(harness.state)], check=False, capture_output=True).returncode == 0
        ),
        "the end of all that had files there",
    )


def fill(folder):
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return filler


def said(report):
    out, err = io.StringIO(), io.StringIO()
    show(report, out=out, err=err)
    return out.getvalue() + err.getvalue()


def test_a_start_that_cannot_be_followed_ends_and_the_server_goes_on(small):
    with DetachedStart(small.env, small.plan("--step-s", "0.3")) as start:
        start.begin()
        wait_for(small.record, "the first record")
        filler = fill(small.state)
        with pytest.raises(StateError, match="full: no space left on device") as caught:
            start.wait()
        assert str(small.state) in caught.value.message
        assert "goes on in the background" in caught.value.message
        assert "dflashctl status tiny" in caught.value.hint
    wait_for(lambda: quiet(lambda: small.ask("/v1/models")), "the server")
    for report in (status(small.env, "tiny"), status(small.env), diagnose(small.env, "tiny")):
        assert [f.id for f in report.findings] == ["state_full"]
        assert "is full: no space left on device" in said(report)
    filler.unlink()
    small.reach("ready")
    assert status(small.env, "tiny").findings == ()
    assert "state_full" not in [f.id for f in diagnose(small.env, "tiny").findings]


def test_room_is_that_of_the_nearest_folder(small):
    below = str(small.state / "not" / "yet")
    assert has_room(below)
    filler = fill(small.state)
    assert not has_room(below)
    filler.unlink()
    assert has_room(below)
