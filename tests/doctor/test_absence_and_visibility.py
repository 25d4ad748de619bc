"""Why there is no GPU, and what CUDA_VISIBLE_DEVICES leaves."""

from __future__ import annotations

import pytest

from dflashctl.core.absence import NvmlRefusal, Signs, absence
from dflashctl.core.machine import GpuAbsence
from dflashctl.core.visibility import visibility
from tests.support.machines import topology

LIBRARY, LOADED, NONE = NvmlRefusal.LIBRARY_NOT_FOUND, NvmlRefusal.DRIVER_NOT_LOADED, NvmlRefusal.NO_DEVICES
MODULE = "580.105.08"


@pytest.mark.parametrize(
    ("refusal", "signs", "cause", "words"),
    [
        (LIBRARY, {}, GpuAbsence.NO_HARDWARE, "no NVIDIA GPU and no NVIDIA driver"),
        (
            LIBRARY,
            {"pci_gpus": 8},
            GpuAbsence.NO_DRIVER,
            "8 NVIDIA GPUs on the PCI bus, but the NVIDIA driver is not loaded",
        ),
        (LIBRARY, {"pci_gpus": 1, "module_version": MODULE}, GpuAbsence.NO_LIBRARY, "libnvidia-ml.so.1"),
        (LOADED, {}, GpuAbsence.NO_HARDWARE, "driver is installed, but there is no NVIDIA GPU"),
        (LOADED, {"pci_gpus": 1}, GpuAbsence.NO_DRIVER, "1 NVIDIA GPU on the PCI bus"),
        (NONE, {"pci_gpus": 2, "module_version": MODULE}, GpuAbsence.OTHER, "offers none"),
        (
            LIBRARY,
            {"module_version": MODULE, "in_container": True, "pci_gpus": 8},
            GpuAbsence.NO_DEVICES_IN_CONTAINER,
            "without GPUs",
        ),
        (
            NONE,
            {"module_version": MODULE, "in_container": True},
            GpuAbsence.NO_DEVICES_IN_CONTAINER,
            "without GPUs",
        ),
        (
            NvmlRefusal.UNKNOWN,
            {"module_version": MODULE, "in_container": True},
            GpuAbsence.DEVICES_LOST,
            "has lost its GPU devices",
        ),
        (NvmlRefusal.UNKNOWN, {"module_version": MODULE}, GpuAbsence.OTHER, "does not answer"),
        (NvmlRefusal.VERSION_MISMATCH, {"module_version": MODULE}, GpuAbsence.VERSION_MISMATCH, MODULE),
        (NvmlRefusal.NO_PERMISSION, {}, GpuAbsence.NO_PERMISSION, "may not open"),
        (NvmlRefusal.NO_BINDING, {}, GpuAbsence.NO_LIBRARY, "nvidia-ml-py"),
        (LIBRARY, {"in_container": True}, GpuAbsence.NO_HARDWARE, "no NVIDIA GPU"),
    ],
)
def test_absence(refusal, signs, cause, words):
    found, sentence = absence(refusal, Signs(**signs))
    assert found is cause
    assert words in sentence
    assert sentence[0].islower() or sentence[0].isdigit()


GPUS = topology("8x-h200", {"gpus[0].mig_slices": [{"uuid": "MIG-aaaa-1"}, {"uuid": "MIG-bbbb-2"}]}).gpus
UUID = "GPU-00000000-0000-0000-0000-00000000000"


@pytest.mark.parametrize(
    ("value", "indices"),
    [
        (None, tuple(range(8))),
        ("0", (0,)),
        ("3,1", (3, 1)),
        (" 2 , 4 ", (2, 4)),
        (f"{UUID}6,{UUID}2", (6, 2)),
        (f"1,{UUID}5", (1, 5)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("0,8,1", (0,)),
        ("0,-1,1", (0,)),
        ("1,1", ()),
        ("GPU-0000", ()),
    ],
)
def test_visible_indices(value, indices):
    assert visibility(value, GPUS).indices == indices


def test_what_is_ignored_and_repeated_and_mig():
    assert visibility("0,9,1", GPUS).ignored == "9,1"
    assert visibility("", GPUS).ignored is None
    assert visibility("2,3,2", GPUS).repeated == "2"
    assert visibility("MIG-aaaa", GPUS).mig == ("MIG-aaaa-1",)
    assert visibility("MIG-", GPUS).mig == ()
    assert visibility(f"MIG-{UUID}3/1/0", GPUS).mig == (f"MIG-{UUID}3/1/0",)
    assert visibility("0", GPUS).by_index
    assert not visibility(f"{UUID}0", GPUS).by_index
