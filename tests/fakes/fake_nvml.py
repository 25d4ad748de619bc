# ruff: noqa: N802, N815 - the names are those of the library
"""FakeNvml: a stand-in for the pynvml module that replays a recorded dump of a real host, or refuses at will.

`refused` names functions that answer "Not Supported", `missing` those that this binding does not have at all. GPUs in
`lost` have no handle; those in `silent` have one and answer nothing.
"""

from __future__ import annotations

import ctypes
import json
from types import SimpleNamespace

NOT_SUPPORTED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 3, 9, 12
NO_PERMISSION, LIB_RM_VERSION_MISMATCH, GPU_IS_LOST, UNKNOWN = 4, 18, 15, 999
_ABOUT_NO_DEVICE = {"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"}
_TEXTS = {3: "Not Supported", 15: "GPU is lost", 999: "Unknown Error"}


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


class _FabricInfo(ctypes.Structure):
    """The structure of nvml.h (version 2), filled by reference as the library does."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint32),
        ("state", ctypes.c_uint8),
        ("healthMask", ctypes.c_uint32),
    )


class FakeNvml:
    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_LIBRARY_NOT_FOUND = LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = DRIVER_NOT_LOADED
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = LIB_RM_VERSION_MISMATCH
    NVML_ERROR_NO_PERMISSION = NO_PERMISSION
    NVML_NVLINK_MAX_LINKS = 36
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    nvmlMemory_v2 = 33554472

    def __init__(self, path, *, refused=(), missing=(), init_error=None, lost=(), silent=(), changes=None):
        self.dump = json.loads(path.read_text(encoding="utf-8"))
        for place, device in enumerate(self.dump["devices"]):
            device["UUID"] = f"GPU-00000000-0000-0000-0000-{place:012d}"
            device.update((changes or {}).get(place, {}))
        self._refused = set(refused)
        self._missing = set(missing)
        self._init_error = init_error
        self._lost = set(lost)
        self._silent = set(silent)
        self.open = 0

    def __getattribute__(self, name):
        if name.startswith(("nvml", "c_nvml")):
            if name in object.__getattribute__(self, "_missing"):
                raise AttributeError(name)
            if name in object.__getattribute__(self, "_refused"):
                return _refuse
        value = object.__getattribute__(self, name)
        if name.startswith("nvmlDeviceGet") and name not in _ABOUT_NO_DEVICE:
            return lambda handle, *arguments: value(self._answering(handle), *arguments)
        return value

    def _answering(self, handle):
        if handle in self._silent:
            raise NVMLError(GPU_IS_LOST)
        return handle

    def nvmlInit(self):
        if self._init_error is not None:
            raise NVMLError(self._init_error)
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlSystemGetDriverVersion(self):
        return self.dump["system"]["nvmlSystemGetDriverVersion"]

    def nvmlSystemGetCudaDriverVersion_v2(self):
        return self.dump["system"]["nvmlSystemGetCudaDriverVersion_v2"]

    def nvmlDeviceGetCount(self):
        return len(self.dump["devices"])

    def nvmlDeviceGetHandleByIndex(self, index):
        if index in self._lost:
            raise NVMLError(GPU_IS_LOST)
        return index

    def _value(self, handle, key):
        value = self.dump["devices"][handle][key]
        if isinstance(value, dict) and "error" in value:
            raise NVMLError(value.get("code", NOT_SUPPORTED))
        return value

    def nvmlDeviceGetUUID(self, handle):
        return self._value(handle, "UUID")

    def nvmlDeviceGetName(self, handle):
        return self._value(handle, "Name")

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        return SimpleNamespace(**self._value(handle, "MemoryInfo_v2" if version else "MemoryInfo"))

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return tuple(self._value(handle, "CudaComputeCapability"))

    def nvmlDeviceGetPciInfo(self, handle):
        return SimpleNamespace(busId=self._value(handle, "PciInfo_v3")["busId"].encode())

    def nvmlDeviceGetMigMode(self, handle):
        return self._value(handle, "MigMode")

    def nvmlDeviceGetComputeMode(self, handle):
        return self._value(handle, "ComputeMode")

    def nvmlDeviceGetPersistenceMode(self, handle):
        return self._value(handle, "PersistenceMode")

    def nvmlDeviceGetEccMode(self, handle):
        return self._value(handle, "EccMode")

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, counter):
        return self.dump["devices"][handle].get("EccCounts", [0, 0])[counter]

    def nvmlDeviceGetRemappedRows(self, handle):
        return self._value(handle, "RemappedRows")

    def nvmlDeviceGetRetiredPagesPendingStatus(self, handle):
        return self._value(handle, "RetiredPagesPendingStatus")

    def nvmlDeviceGetFieldValues(self, handle, fields):
        value = self.dump["devices"][handle].get("RecoveryAction", 0)
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=value)) for _ in fields]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self._value(handle, "CurrentClocksEventReasons")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self._value(handle, "CurrentClocksThrottleReasons")

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(**self._value(handle, "UtilizationRates"))

    def nvmlDeviceGetPowerUsage(self, handle):
        return self._value(handle, "PowerUsage")

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return self._value(handle, "EnforcedPowerLimit")

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle):
        return self._value(handle, "PowerManagementDefaultLimit")

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return self._value(handle, "Temperature")

    def nvmlDeviceGetClockInfo(self, handle, clock):
        return self._value(handle, {1: "ClockSM", 2: "ClockMEM"}[clock])

    def nvmlDeviceGetMaxClockInfo(self, handle, clock):
        return self._value(handle, {1: "MaxClockSM", 2: "MaxClockMEM"}[clock])

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle):
        return self._value(handle, "CurrPcieLinkGeneration")

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle):
        return self._value(handle, "MaxPcieLinkGeneration")

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle):
        return self._value(handle, "CurrPcieLinkWidth")

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle):
        return self._value(handle, "MaxPcieLinkWidth")

    def nvmlDeviceGetNumaNodeId(self, handle):
        return self._value(handle, "NumaNodeId")

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(**p) for p in self.dump["devices"][handle].get("Processes", ())]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return self._value(handle, "GraphicsRunningProcesses")

    def nvmlSystemGetProcessName(self, pid):
        return f"/usr/bin/program-{pid}".encode()

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 0

    def nvmlDeviceGetNvLinkState(self, handle, lane):
        lanes = self._value(handle, "NvLinks")
        if lane >= len(lanes):
            raise NVMLError(NOT_SUPPORTED)
        return lanes[lane]["state"]

    def nvmlDeviceGetNvLinkVersion(self, handle, lane):
        return self._value(handle, "NvLinks")[lane]["version"]

    c_nvmlGpuFabricInfo_v2_t = _FabricInfo

    def nvmlDeviceGetGpuFabricInfoV(self, handle, info):
        for key, value in self._value(handle, "GpuFabricInfoV").items():
            setattr(info._obj, key, (ctypes.c_uint8 * 16)(*value) if key == "clusterUuid" else value)
        return 0

    def nvmlDeviceGetTopologyCommonAncestor(self, one, other):
        return self._peer(one, other, "ancestor")

    def nvmlDeviceGetP2PStatus(self, one, other, which):
        return self._peer(one, other, ("p2p_read", "p2p_write", "p2p_nvlink", "p2p_atomics")[which])

    def _peer(self, one, other, key):
        value = self._value(one, "Peers")[str(other)][key]
        if isinstance(value, dict):
            raise NVMLError(NOT_SUPPORTED)
        return value


def _refuse(*_arguments: object):
    raise NVMLError(NOT_SUPPORTED)
