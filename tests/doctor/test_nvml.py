"""NVML through a replay of a real host: two H200 in a virtual machine, and drivers that refuse half of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.doctor_result import unknown_facts
from dflashctl.core.facts import Facts
from dflashctl.core.machine import Fabric, GpuAbsence, LinkKind, RowRemap
from dflashctl.edges.machine_probe import SystemMachineProbe
from dflashctl.edges.nvml_links import _troubles
from tests.doctor import DATA
from tests.fakes import fake_nvml
from tests.fakes.fake_nvml import FakeNvml
from tests.support.machines import topology

IDLE, BUSY = DATA / "nvml_2xh200_idle.json", DATA / "nvml_2xh200_busy.json"


def probe(lib, environ=None, log=None):
    """`log` is what the kernel's log says, None where it may not be read."""
    return SystemMachineProbe(environ=environ or {}, nvml=lib, log=lambda: log)


def snapshot(lib, environ=None):
    return probe(lib, environ).snapshot()


def test_the_real_host_as_the_saved_machine_has_it():
    """The topology 2x-h200 is what this edge reads from the dump."""
    machine = snapshot(FakeNvml(IDLE))
    saved = topology("2x-h200")
    assert machine.links == saved.links
    assert (machine.driver_library_version, machine.cuda_version) == ("580.159.04", "13.0")
    for read, kept in zip(machine.gpus, saved.gpus, strict=True):
        assert replace(read, unknown=(), numa_node=None) == replace(kept, unknown=())
    assert machine.gpu_absence is None


@pytest.mark.parametrize("log", [None, {}, {"0000:00:06": (31, 145)}])
def test_a_start_sees_the_same_gpus_as_doctor(log):
    """`up` plans by the quick look, doctor by the long one: a GPU with an Xid is to be avoided by both."""
    host = probe(FakeNvml(IDLE), log=log)
    quick = host.snapshot().gpus
    assert [(g.uuid, g.xids) for g in quick] == [(g.uuid, g.xids) for g in host.survey("/nowhere").gpus]
    if log:
        assert [gpu.xids for gpu in quick] == [(31, 145), ()]


def test_every_session_is_closed():
    lib = FakeNvml(IDLE)
    snapshot(lib)
    SystemMachineProbe(environ={}, nvml=lib).activity()
    assert lib.open == 0


def test_what_a_busy_host_holds_and_does():
    process = {"pid": 4242, "usedGpuMemory": 1_700_000_000}
    machine = snapshot(FakeNvml(BUSY, changes={0: {"Processes": [process]}}))
    gpu = machine.gpus[0]
    assert gpu.memory_used_bytes == 1708785664
    assert (gpu.clock_sm_mhz, gpu.throttle_reasons) == (1980, ())
    assert (gpu.processes[0].pid, gpu.processes[0].name) == (4242, "/usr/bin/program-4242")


def test_an_old_driver_is_survived_and_what_it_hides_is_named():
    newer = (
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetNumaNodeId",
    )
    gpu = snapshot(FakeNvml(IDLE, missing=newer)).gpus[0]
    assert gpu.name == "NVIDIA H200"
    assert (gpu.fabric, gpu.row_remap, gpu.throttle_reasons, gpu.recovery_action) == (None, None, None, None)
    assert {"fabric", "row_remap", "throttle_reasons", "recovery_action", "numa_node"} <= set(gpu.unknown)
    assert len(set(gpu.unknown)) == len(gpu.unknown)


def test_a_driver_that_refuses_half_never_answers_with_zero():
    refused = [
        "nvmlDeviceGetEccMode",
        "nvmlDeviceGetNvLinkState",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetPowerManagementDefaultLimit",
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetMigMode",
    ]
    gpu = snapshot(FakeNvml(IDLE, refused=refused)).gpus[0]
    silent = (
        gpu.ecc_enabled,
        gpu.ecc_uncorrected_volatile,
        gpu.nvlinks_active,
        gpu.power_w,
        gpu.temperature_c,
    )
    assert silent == (None,) * 5
    assert (gpu.clock_sm_mhz, gpu.clock_memory_max_mhz) == (None, None)
    assert gpu.mig_enabled is False
    assert {"ecc", "nvlink", "fabric", "power", "processes", "clocks", "temperature"} <= set(gpu.unknown)


def test_old_memory_call_leaves_the_reserve_unknown():
    lib = FakeNvml(IDLE)
    lib.nvmlMemory_v2 = None
    gpu = snapshot(lib).gpus[0]
    assert (gpu.memory_total_bytes, gpu.memory_reserved_bytes) == (150754820096, None)


def test_a_lost_gpu_does_not_hide_the_others():
    machine = snapshot(FakeNvml(IDLE, lost=[1]))
    assert [gpu.index for gpu in machine.gpus] == [0]
    assert machine.gpus_unreadable == ("GPU 1: GPU is lost",)
    assert machine.links == ()


@pytest.mark.parametrize(
    ("error", "absences"),
    [
        (fake_nvml.LIB_RM_VERSION_MISMATCH, {GpuAbsence.VERSION_MISMATCH}),
        (fake_nvml.NO_PERMISSION, {GpuAbsence.NO_PERMISSION}),
        (fake_nvml.UNKNOWN, {GpuAbsence.OTHER, GpuAbsence.DEVICES_LOST}),
    ],
)
def test_a_refused_session_is_a_state_with_a_sentence(error, absences):
    machine = snapshot(FakeNvml(IDLE, init_error=error))
    assert machine.gpus == ()
    assert machine.gpu_absence in absences
    assert machine.gpu_problem


@pytest.mark.parametrize(
    ("value", "visible"),
    [(None, [0, 1]), ("1", [1]), ("GPU-00000000-0000-0000-0000-000000000001", [1]), ("", []), ("-1", [])],
)
def test_visible_devices(value, visible):
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    machine = snapshot(FakeNvml(IDLE), environ)
    assert [gpu.index for gpu in machine.visible_gpus] == visible
    assert len(machine.gpus) == 2
    assert (machine.gpu_absence is GpuAbsence.HIDDEN) == (not visible)


def test_health_that_needs_care():
    changes = {0: {"RemappedRows": [1, 2, 1, 0], "EccCounts": [3, 9], "RecoveryAction": 2}}
    gpu = snapshot(FakeNvml(IDLE, changes=changes)).gpus[0]
    assert gpu.row_remap == RowRemap(correctable=1, uncorrectable=2, pending=True)
    assert (gpu.ecc_uncorrected_volatile, gpu.ecc_uncorrected_lifetime) == (3, 9)
    assert gpu.recovery_action == "node_reboot"


def test_lanes_and_fabric():
    lanes = [{"state": int(lane not in (3, 9)), "version": 7} for lane in range(18)]
    fabric = {
        "state": 3,
        "status": 71,
        "cliqueId": 5,
        "clusterUuid": [1] * 16,
        "healthMask": 0b01,
        "version": 2,
    }
    changes = {0: {"NvLinks": lanes, "GpuFabricInfoV": fabric}, 1: {"GpuFabricInfoV": {**fabric, "state": 2}}}
    one, other = snapshot(FakeNvml(IDLE, changes=changes)).gpus
    assert (one.nvlinks_active, one.nvlinks_total, one.nvlinks_down, one.nvlink_version) == (
        16,
        18,
        (3, 9),
        "5.0",
    )
    assert one.fabric == Fabric(
        state="completed",
        status="NVML Error with code 71",
        clique_id=5,
        cluster_uuid="01010101-0101-0101-0101-010101010101",
        troubles=("degraded_bandwidth",),
    )
    assert other.fabric == Fabric(state="in_progress", troubles=("degraded_bandwidth",))


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (0, ()),
        (0b10_10_10_10, ()),
        (0b01 << 4, ("route_unhealthy",)),
        (5 << 8, ("insufficient_nvlinks",)),
        (1 << 8, ()),
    ],
)
def test_health_mask(mask, words):
    assert _troubles(mask) == words


@pytest.mark.parametrize(
    ("level", "kind"), [(10, LinkKind.PIX), (30, LinkKind.PHB), (40, LinkKind.NODE), (50, LinkKind.SYS)]
)
def test_links_without_nvlink(level, kind):
    peer = {"ancestor": level, "p2p_nvlink": 5, "p2p_read": 1, "p2p_write": 1, "p2p_atomics": 5}
    machine = snapshot(FakeNvml(IDLE, changes={0: {"Peers": {"1": peer}}}))
    assert (machine.links[0].kind, machine.links[0].p2p) == (kind, False)


def test_activity_is_only_what_changes():
    gpus = SystemMachineProbe(environ={}, nvml=FakeNvml(BUSY)).activity().gpus
    assert [gpu.clock_sm_mhz for gpu in gpus] == [1980, 1980]
    assert gpus[0].fabric is None


@pytest.mark.parametrize("how", ["refused", "missing"])
def test_memory_that_is_not_told_is_unknown_and_never_zero(how):
    lib = FakeNvml(IDLE, **{how: ["nvmlDeviceGetMemoryInfo"]})
    gpu = snapshot(lib).gpus[0]
    sizes = (gpu.memory_total_bytes, gpu.memory_free_bytes, gpu.memory_usable_bytes, gpu.memory_used_bytes)
    assert sizes == (None,) * 4
    assert "memory" in gpu.unknown
    assert SystemMachineProbe(environ={}, nvml=lib).activity().gpus[0].memory_total_bytes is None


PHB = {"ancestor": 30, "p2p_nvlink": 5, "p2p_read": 0, "p2p_write": 0, "p2p_atomics": 5}
REFUSES = {"error": "Not Supported"}


@pytest.mark.parametrize(
    ("answers", "kind", "path", "p2p", "unknown"),
    [
        ({}, LinkKind.PHB, LinkKind.PHB, True, ()),
        ({"p2p_nvlink": 0}, LinkKind.NVLINK, LinkKind.PHB, True, ()),
        ({"ancestor": REFUSES}, LinkKind.UNKNOWN, None, True, ("links",)),
        ({"ancestor": 77}, LinkKind.UNKNOWN, None, True, ("links",)),
        ({"ancestor": REFUSES, "p2p_nvlink": 0}, LinkKind.NVLINK, None, True, ("links",)),
        ({"p2p_nvlink": REFUSES}, LinkKind.UNKNOWN, LinkKind.PHB, True, ("links",)),
        ({"p2p_write": REFUSES}, LinkKind.PHB, LinkKind.PHB, None, ("p2p",)),
        (dict.fromkeys(PHB, REFUSES), LinkKind.UNKNOWN, None, None, ("links", "p2p")),
    ],
)
def test_a_link_that_is_not_told_is_unknown_and_no_distance(answers, kind, path, p2p, unknown):
    machine = snapshot(FakeNvml(IDLE, changes={0: {"Peers": {"1": {**PHB, **answers}}}}))
    (link,) = machine.links
    assert (link.kind, link.path, link.p2p) == (kind, path, p2p)
    assert machine.unknown == unknown
    assert {"links", "p2p"} & set(unknown_facts(Facts(machine=machine))) == set(unknown)


# How a GPU or the whole library fails while somebody looks, and what the look still has.
LOSSES = {
    "no handle": ({"lost": [1]}, [(0, "NVIDIA H200")], ("GPU 1: GPU is lost",)),
    "a handle and nothing else": ({"silent": [1]}, [(0, "NVIDIA H200"), (1, "NVIDIA GPU")], ()),
    "no handles at all": ({"lost": [0, 1]}, [], ("GPU 0: GPU is lost", "GPU 1: GPU is lost")),
    "no count": ({"refused": ["nvmlDeviceGetCount"]}, [], ()),
    "no shutdown": (
        {"refused": ["nvmlShutdown"]},
        [(0, "NVIDIA H200"), (1, "NVIDIA H200")],
        (),
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_hides_nothing_else_from_any_look(loss):
    given, gpus, unreadable = LOSSES[loss]
    probe = SystemMachineProbe(environ={}, nvml=FakeNvml(IDLE, **given))
    now, machine = probe.activity(), probe.snapshot()
    assert [(gpu.index, gpu.name) for gpu in now.gpus] == gpus
    assert [(gpu.index, gpu.name) for gpu in machine.gpus] == gpus
    assert now.unreadable == machine.gpus_unreadable == unreadable
    assert {gpu.uuid for gpu in now.gpus} == {gpu.uuid for gpu in machine.gpus}
    assert (machine.gpu_absence is None) == bool(gpus or unreadable)
