"""`up` of what runs already: the same plan, whatever the machine's GPUs look like by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.commands.planned import planned
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from tests.fakes.fake_instances import FakeInstances
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import topology

FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{number}" for number in range(2))
PROFILE = "tiny-gpu"


def plan_of(home, change=None, *, instance=None, **asked):
    env = Env(
        environ={"HOME": str(home)},
        cwd=home,
        machine=FakeMachine(topology("2x-h200", change)),
        **({"instances": instance} if instance else {}),
    )
    return planned(env, PlanRequest(profile=PROFILE, dry_run=True, **asked)).plan


def up(*gpus):
    return FakeInstances(PROFILE, phase="ready", port=30000, pids=[77], gpus=gpus)


def full(number, pid):
    held = {"pid": pid, "name": "sglang::scheduler", "memory_bytes": 130_000_000_000}
    return {f"gpus[{number}].memory_free_bytes": 2_000_000_000, f"gpus[{number}].processes": [held]}


@pytest.mark.parametrize(
    ("change", "gpus"),
    [
        (full(0, 77), (FIRST,)),
        (full(1, 77), (SECOND,)),
        ({**full(0, 77), "gpus[0].xids": [79]}, (FIRST,)),
        ({**full(0, 5), **full(1, 77)}, (SECOND,)),
    ],
)
def test_what_runs_is_planned_for_the_gpus_that_it_has(tmp_path, change, gpus):
    """Its own memory makes its GPU no busy one, and a GPU that has become free since is no reason to move."""
    again = plan_of(tmp_path, change, instance=up(*gpus))
    assert again.gpus == gpus
    assert again.fingerprint == plan_of(tmp_path, gpus=gpus[0]).fingerprint
    assert again.findings == plan_of(tmp_path, gpus=gpus[0]).findings


def test_another_instance_of_it_takes_a_free_gpu(tmp_path):
    assert plan_of(tmp_path, full(0, 77), instance=up(FIRST), name="second").gpus == (SECOND,)


def test_gpus_that_are_asked_for_count_more_than_those_that_it_has(tmp_path):
    assert plan_of(tmp_path, full(0, 77), instance=up(FIRST), gpus="1").gpus == (SECOND,)


@pytest.mark.parametrize("had", [(FIRST, SECOND), ("GPU-gone",), ()])
def test_gpus_that_no_longer_do_are_not_kept(tmp_path, had):
    assert plan_of(tmp_path, instance=up(*had)).gpus == (FIRST,)


def test_an_owner_that_has_no_server_yet_keeps_no_gpu(tmp_path):
    """Its record still tells of the start before it."""
    starting = up(SECOND)
    starting.record = replace(starting.record, server=None)
    assert plan_of(tmp_path, instance=starting).gpus == (FIRST,)
