"""Placement: GPUs that are well, free and near each other, by UUID."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.commands.doctor import DoctorOptions, doctor
from dflashctl.commands.planned import planned
from dflashctl.core.assumed import KINDS, assumed_machine
from dflashctl.core.findings import Severity
from dflashctl.core.grouping import best_group
from dflashctl.core.machine import LinkKind
from dflashctl.core.options import PlanRequest
from dflashctl.core.placement import place
from dflashctl.core.profile import Engine, EngineName, ModelRef, Parallel, Profile, Requirements
from dflashctl.env import Env
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import topology


def profile(gpus, **needs: object):
    return Profile(
        name="p",
        summary="",
        engine=Engine(name=EngineName.SGLANG),
        target=ModelRef(repo="a/b"),
        parallel=Parallel(tensor=gpus),
        requirements=Requirements(gpus=gpus, **needs),
    )


def indices(machine, placement):
    return [machine.gpu(uuid).index for uuid in placement.gpus]


@pytest.mark.parametrize(
    ("change", "count", "expected"),
    [
        ({}, 1, [0]),
        ({}, 4, [0, 1, 2, 3]),
        ({"gpus[0].memory_free_bytes": 10**9}, 1, [1]),
        ({"gpus[0].memory_free_bytes": 10**9}, 4, [4, 5, 6, 7]),
        ({"gpus[0].row_remap": {"pending": True}}, 1, [1]),
        ({"gpus[0].fabric": {"state": "completed", "status": "Insufficient Resources"}}, 1, [1]),
        ({"gpus[0].recovery_action": "gpu_reset", "gpus[1].ecc_uncorrected_volatile": 1}, 2, [2, 3]),
        ({"gpus[0].nvlinks_active": 16, "gpus[0].nvlinks_down": [1, 2]}, 1, [1]),
        ({"gpus[0].xids": [145]}, 1, [1]),
        ({"gpus[0].xids": [145], "gpus[0].recovery_action": "none"}, 1, [1]),
        ({"gpus[0].xids": [79]}, 1, [1]),
        ({"gpus[0].xids": [79], "gpus[0].recovery_action": "none"}, 1, [1]),
        ({"gpus[0].xids": [13, 31, 43, 45]}, 1, [0]),
        ({"gpus[0].compute_mode": "prohibited"}, 1, [1]),
        ({"gpus[0].compute_mode": "exclusive_process"}, 1, [1]),
        ({"gpus[0].fabric.troubles": ["route_unhealthy"]}, 1, [1]),
        ({"gpus[0].fabric.troubles": ["degraded_bandwidth"]}, 1, [1]),
        ({"gpus[0].throttle_reasons": ["hw_thermal"]}, 1, [1]),
        ({"gpus[0].throttle_reasons": ["sw_power_cap", "gpu_idle"]}, 1, [0]),
        ({"gpus[0].retired_pages_pending": True}, 1, [1]),
        ({"gpus[0].row_remap": {"failed": True}}, 1, [1]),
        # What would be refused is left out first, then what others use, then what is only slower.
        ({"gpus[0].xids": [145], "gpus[1].throttle_reasons": ["hw_thermal"]}, 7, [1, 2, 3, 4, 5, 6, 7]),
        (
            {"gpus[0].memory_free_bytes": 10**9, "gpus[1].throttle_reasons": ["hw_thermal"]},
            7,
            [1, 2, 3, 4, 5, 6, 7],
        ),
        ({"gpus[0].xids": [145], "gpus[1].memory_free_bytes": 10**9}, 7, [1, 2, 3, 4, 5, 6, 7]),
        ({"gpus[0].visible": False}, 7, [1, 2, 3, 4, 5, 6, 7]),
        ({"gpus[2].mig_enabled": True}, 7, [0, 1, 3, 4, 5, 6, 7]),
        ({"gpus[3].memory_free_bytes": 10**9}, 8, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_the_best_of_eight(change, count, expected):
    machine = topology("8x-h200", change)
    assert indices(machine, place(profile(count), machine)) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"xids": [145]},
        {"xids": [79]},
        {"xids": [79], "recovery_action": "none"},
        {"compute_mode": "prohibited"},
        {"compute_mode": "exclusive_process"},
        {"recovery_action": "gpu_reset"},
        {"row_remap": {"failed": True}},
        {"row_remap": {"pending": True}},
        {"retired_pages_pending": True},
        {"ecc_uncorrected_volatile": 1},
        {"throttle_reasons": ["hw_thermal"]},
        {"throttle_reasons": ["hw_power_brake"]},
        {"fabric.troubles": ["route_unhealthy"]},
        {"fabric.troubles": ["degraded_bandwidth"]},
        {"fabric.state": "in_progress"},
        {"fabric.status": "Insufficient Resources"},
        {"memory_free_bytes": 10**9},
    ],
    ids=str,
)
def test_whatever_doctor_says_of_one_gpu_another_is_taken(change, tmp_path):
    """Seven healthy GPUs beside it: nothing is left to say, although the checks would speak of it."""
    name = "8x-b300"
    machine = topology(name, {f"gpus[0].{fact}": value for fact, value in change.items()})
    env = Env(environ={"HOME": str(tmp_path)}, cwd=tmp_path, machine=FakeMachine(machine))

    def said(gpus):
        request = PlanRequest(profile="qwen3-8b-h100", gpus=gpus, engine_version="0.5.23")
        report = doctor(env, DoctorOptions(plan=request))
        return {f.id for f in report.findings if f.severity in {Severity.WARNING, Severity.ERROR}}

    assert said("0") - said(None), "the checks see it"
    assert said(None) == said("1")
    assert planned(env, PlanRequest(profile="qwen3-8b-h100", dry_run=True)).plan.gpus == (
        machine.gpus[1].uuid,
    )


def test_pcie_cards_are_grouped_by_their_links():
    """Pairs 0-3 and 1-2 share a switch; the rest crosses sockets."""
    machine = topology("8x-h200")
    near = {(0, 3), (1, 2)}
    four = replace(
        machine,
        gpus=tuple(replace(g, fabric=None, numa_node=None) for g in machine.gpus[:4]),
        links=tuple(
            replace(link, kind=LinkKind.PIX if (link.a, link.b) in near else LinkKind.SYS)
            for link in machine.links
            if link.b < 4
        ),
    )
    assert indices(four, place(profile(2), four)) == [0, 3]
    busy = replace(four, gpus=(replace(four.gpus[0], memory_free_bytes=10**9), *four.gpus[1:]))
    assert indices(busy, place(profile(2), busy)) == [1, 2]


def test_one_gpu_outside_the_fabric_is_left_out():
    machine = topology("8x-b300-odd-gpu")
    assert indices(machine, place(profile(4), machine)) == [0, 1, 2, 3]
    assert 4 not in indices(machine, place(profile(7), machine))


def test_wanted_gpus_are_taken_as_they_are_named():
    machine = topology("8x-h200")
    assert indices(machine, place(profile(2), machine, ("5", machine.gpus[2].uuid))) == [5, 2]
    assert place(profile(2), machine, ("5", "5")).findings[0].id == "gpus_repeated"
    assert place(profile(2), machine, ("9", "5")).findings[0].id == "gpu_missing"
    assert place(profile(2), machine, ("1", "2", "3")).findings[0].id == "gpu_count"


def test_too_few_says_why():
    machine = topology("8x-h200")
    (finding,) = place(profile(8, gpu_kinds=("B300",)), machine).findings
    assert "it has 8x NVIDIA H200" in finding.summary
    hidden = topology("8x-h200-hidden")
    (finding,) = place(profile(1), hidden).findings
    assert "needs 1 GPU (any kind): CUDA_VISIBLE_DEVICES='' hides all 8 GPUs" in finding.summary


def test_a_large_machine_is_grouped_quickly():
    """16 GPUs: 16 seeds, no search through all 12870 groups of 8."""
    machine = assumed_machine(Requirements(gpus=16, gpu_kinds=("B300",)))
    assert [gpu.index for gpu in best_group(machine.gpus, machine, 8)] == list(range(8))


@pytest.mark.parametrize(
    ("needs", "name", "memory"),
    [
        ({"gpus": 8, "gpu_kinds": ("B300",)}, "NVIDIA B300 SXM6 AC", 275040 << 20),
        ({"gpus": 8, "gpu_kinds": ("B200", "B300")}, "NVIDIA B200", 183359 << 20),
        (
            {"gpus": 1, "gpu_memory_bytes": 79 * 10**9, "compute_capability": ("9.0",)},
            "NVIDIA H100 80GB HBM3",
            81559 << 20,
        ),
        ({"gpus": 2, "gpu_memory_bytes": 100 * 10**9}, "GPU of 100 GB or more", 100 * 10**9),
        ({"gpus": 1}, "GPU of any kind", 81559 << 20),
        (
            {"gpus": 1, "gpu_memory_bytes": 10**13, "compute_capability": ("9.0",)},
            "GPU of 10000 GB or more",
            10**13,
        ),
        ({"gpus": 1, "gpu_kinds": ("RTX 4090",)}, "RTX 4090", 81559 << 20),
        ({"gpus": 1, "gpu_memory_bytes": 10**10, "gpu_kinds": ("GH900",)}, "GH900 of 10 GB or more", 10**10),
    ],
)
def test_assumed_machine(needs, name, memory):
    requirements = Requirements(driver="580", **needs)
    machine = assumed_machine(requirements)
    assert machine.assumed
    assert [gpu.uuid for gpu in machine.gpus] == [f"assumed-{i}" for i in range(requirements.gpus)]
    assert {(gpu.name, gpu.memory_total_bytes) for gpu in machine.gpus} == {(name, memory)}
    assert len(machine.links) == requirements.gpus * (requirements.gpus - 1) // 2


@pytest.mark.parametrize(
    ("needs", "capability"),
    [
        ({"gpu_kinds": ("B300",)}, (10, 3)),
        ({"compute_capability": ("9.0",)}, (9, 0)),
        ({"compute_capability": ("12.1",)}, (12, 1)),
        ({"compute_capability": ("12.0", "12.1")}, None),
        ({"compute_capability": ("banana",)}, None),
        ({"gpu_memory_bytes": 10**11}, None),
        ({}, None),
    ],
)
def test_a_capability_is_assumed_only_where_one_is_required(needs, capability):
    machine = assumed_machine(Requirements(gpus=2, **needs))
    assert {gpu.compute_capability for gpu in machine.gpus} == {capability}
    assert place(profile(2, **needs), machine).findings == ()


def test_nothing_is_assumed_without_need():
    assert assumed_machine(Requirements()).gpus == ()


def test_kinds_are_told_apart_by_whole_words():
    assert len({kind.word for kind in KINDS}) == len(KINDS)


def test_memory_that_is_not_told_is_said_and_kept_for_last():
    needs = {"gpu_memory_bytes": 100 * 10**9}
    one = topology("8x-h200", {"gpus[0].memory_total_bytes": None})
    assert indices(one, place(profile(2, **needs), one)) == [1, 2]
    assert place(profile(2, **needs), one).findings == ()
    (finding,) = place(profile(8, **needs), one).findings
    assert (finding.id, finding.severity.value) == ("gpu_memory_unknown", "warning")
    assert finding.summary == "GPU 0 (NVIDIA H200) does not tell its memory, 100 GB needed"
    assert place(profile(1), one, ("0",)).findings == ()
    (named,) = place(profile(1, **needs), one, ("0",)).findings
    assert named.id == "gpu_memory_unknown"


@pytest.mark.parametrize(
    ("kind", "path", "group"),
    [("unknown", None, [1, 2]), ("unknown", "pix", [0, 1]), ("unknown", "sys", [1, 2])],
)
def test_a_link_that_is_not_told_counts_by_its_path(kind, path, group):
    """Three cards; 1 and 2 are near each other, and 0 is as far from 1 as the case says."""
    machine = topology("8x-h200")
    kinds = {(0, 1): LinkKind(kind), (0, 2): LinkKind.SYS, (1, 2): LinkKind.PXB}
    paths = {(0, 1): LinkKind(path) if path else None}
    three = replace(
        machine,
        gpus=tuple(replace(g, fabric=None, numa_node=None) for g in machine.gpus[:3]),
        links=tuple(
            replace(link, kind=kinds[link.a, link.b], path=paths.get((link.a, link.b)))
            for link in machine.links
            if link.b < 3
        ),
    )
    assert indices(three, place(profile(2), three)) == group
