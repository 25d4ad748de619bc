"""Which GPUs a planned server sees: the plan's and no others, in the form that the engine can read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.engine import EngineBuild
from dflashctl.core.plan import PlanOptions, make_plan
from dflashctl.core.profile import Parallel
from dflashctl.core.visibility import visibility
from dflashctl.engines import ENGINES
from tests.engines.asking import profile
from tests.support.machines import topology

UUID = "GPU-00000000-0000-0000-0000-00000000000{}"


def machine_seen_through(value, name="2x-h200"):
    """The saved machine as it is read where CUDA_VISIBLE_DEVICES has that value."""
    machine = topology(name)
    seen = visibility(value, machine.gpus).indices
    gpus = tuple(replace(gpu, visible=gpu.index in seen) for gpu in machine.gpus)
    return replace(machine, gpus=gpus, visible_devices=value)


def planned(machine, *, tensor=1, data=1, environment=None, raw=(), gpus=None, runtime="process"):
    mine = replace(
        profile("qwen3-8b-h100"),
        parallel=Parallel(tensor=tensor, data=data),
        environment=environment or {},
    )
    options = PlanOptions(raw_args=raw, gpus=gpus, runtime=runtime)
    return make_plan(mine, machine, ENGINES["sglang"], EngineBuild(release="0.5.22"), options)


@pytest.mark.parametrize(
    ("inherited", "tensor", "runtime", "shown"),
    [
        (None, 2, "process", None),
        ("0,1", 2, "process", None),
        (f"{UUID.format(0)},{UUID.format(1)}", 2, "process", "0,1"),
        (f"{UUID.format(0)},1", 2, "process", "0,1"),
        ("0, 1", 2, "process", "0,1"),
        (None, 1, "process", "0"),
        ("1", 1, "process", "1"),
        (UUID.format(1), 1, "process", "1"),
        ("1", 1, "docker", "0"),
        (UUID.format(1), 1, "docker", "0"),
        (f"{UUID.format(0)},{UUID.format(1)}", 2, "docker", "0,1"),
    ],
)
def test_the_engine_is_given_numbers_that_mean_the_plan_s_gpus(inherited, tensor, runtime, shown):
    plan = planned(machine_seen_through(inherited), tensor=tensor, runtime=runtime)
    assert not plan.refusals
    assert dict(plan.env).get("CUDA_VISIBLE_DEVICES") == shown
    assert dict(plan.env).get("CUDA_DEVICE_ORDER") == ("PCI_BUS_ID" if shown else None)


def test_replicas_have_gpus_of_their_own():
    machine = topology("2x-h200")
    assert len(planned(machine, data=2).gpus) == 2
    assert len(planned(machine, data=2, gpus=("0", "1")).gpus) == 2
    assert [f.id for f in planned(machine, data=4).refusals] == ["gpu_count"]
    assert [f.id for f in planned(machine, data=2, gpus=("0",)).refusals] == ["gpu_count"]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"tensor": 2, "raw": ("--base-gpu-id", "1")}, "gpu_number_beyond"),
        ({"gpus": ("1",), "raw": ("--base-gpu-id", "1")}, "gpu_number_beyond"),
        ({"raw": ("--base-gpu-id", "1")}, "gpu_number_beyond"),
        ({"tensor": 2, "raw": ("--gpu-id-step", "2")}, "gpu_number_beyond"),
        ({"tensor": 2, "environment": {"CUDA_VISIBLE_DEVICES": "1"}}, "gpus_in_environment"),
        ({"environment": {"NVIDIA_VISIBLE_DEVICES": "1"}}, "gpus_in_environment"),
    ],
)
def test_a_second_choice_of_gpus_is_refused(given, refusal):
    assert [f.id for f in planned(topology("2x-h200"), **given).refusals] == [refusal]
