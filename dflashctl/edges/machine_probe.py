"""SystemMachineProbe: this host's GPUs, kernel facts and engine software, and saved machines."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.absence import NvmlRefusal, Signs, absence
from dflashctl.core.facts import PortUse
from dflashctl.core.machine import Gpu, GpuAbsence, GpuActivity, Machine
from dflashctl.core.visibility import visibility
from dflashctl.edges.cores import usable_cores
from dflashctl.edges.folders import read_folders
from dflashctl.edges.host import container_kind, memory_total_bytes, read_host
from dflashctl.edges.host_devices import pci_gpus
from dflashctl.edges.kernel_log import key_of, read_xids
from dflashctl.edges.nvml import Asker, NvmlRefused, nvml_session
from dflashctl.edges.nvml_gpu import identity, read_activity, read_gpu
from dflashctl.edges.nvml_links import read_links
from dflashctl.edges.software import read_software
from dflashctl.edges.text_file import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dflashctl.core.deep import DeepFacts, DeepRequest
    from dflashctl.core.host import Folder
    from dflashctl.core.machine import Link

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, kw_only=True)
class _Gpus:
    gpus: tuple[Gpu, ...] = ()
    unreadable: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    unknown: tuple[str, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    refusal: NvmlRefusal | None = None


class SystemMachineProbe:
    """Implements ports.machine.MachineProbe; `nvml` replaces the pynvml module, `log` the reader of the kernel's log."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        nvml: Any = None,
        log: Callable[[], dict[str, tuple[int, ...]] | None] = read_xids,
    ) -> None:
        self._environ = dict(os.environ) if environ is None else environ
        self._nvml = nvml
        self._read_xids = log

    def snapshot(self) -> Machine:
        """GPUs with their Xids, driver and links only: what placement needs.

        The kernel's log is read while NVML waits for the driver.
        """
        with ThreadPoolExecutor(max_workers=1) as pool:
            log = pool.submit(self._read_xids)
            found = _read_gpus(self._nvml)
            return self._machine(_with_xids(found, log.result()))

    def survey(self, python: str) -> Machine:
        """`snapshot` with the host's facts and what the interpreter `python` has installed.

        The parts wait for different things (the driver, /proc, another interpreter) and run side by side.
        """
        with ThreadPoolExecutor(max_workers=3) as pool:
            software = pool.submit(read_software, python, self._environ)
            log = pool.submit(self._read_xids)
            found = _read_gpus(self._nvml)
            buses = tuple(gpu.bus_id for gpu in found.gpus if gpu.bus_id)
            host = read_host(self._environ, buses)
            machine = self._machine(_with_xids(found, log.result()))
            return replace(machine, host=host, software=software.result())

    def folders(self, planned: Mapping[str, str]) -> tuple[Folder, ...]:
        return read_folders(self._environ, planned)

    def activity(self) -> GpuActivity:
        """The GPUs with only what changes while a server runs; empty when NVML cannot be opened."""
        try:
            with nvml_session(self._nvml) as lib:
                handles, unreadable = _handles(lib)
                gpus = tuple(_active(lib, index, handle) for index, handle in handles.items())
                return GpuActivity(gpus=gpus, unreadable=unreadable)
        except NvmlRefused:
            return GpuActivity()

    def port_use(self, host: str, port: int, purpose: str) -> PortUse:
        from dflashctl.edges.sockets import bind_problem, listeners

        problem = bind_problem(host, port)
        if problem is None:
            return PortUse(port=port, purpose=purpose, free=True)
        if not problem.taken:
            return PortUse(port=port, purpose=purpose, free=False, problem=problem.text, fix=problem.fix)
        owner = next(iter(listeners(port, host)), None)
        return PortUse(
            port=port,
            purpose=purpose,
            free=False,
            owner_pid=owner.pid if owner else None,
            owner_name=owner.command if owner else None,
        )

    def deep(self, request: DeepRequest) -> DeepFacts:
        from dflashctl.edges.deep import probe

        known = {gpu.uuid: gpu for gpu in self.snapshot().gpus} if request.gpus else {}
        chosen = [known[uuid] for uuid in request.gpus if uuid in known]
        pair = max((gpu.compute_capability for gpu in chosen if gpu.compute_capability), default=None)
        return probe(request, self._environ, architecture=f"sm_{pair[0]}{pair[1]}" if pair else None)

    def load(self, path: Path) -> Machine:
        from dflashctl.edges.machine_file import read_machine

        return read_machine(path)

    def save(self, machine: Machine, path: Path) -> None:
        from dflashctl.edges.machine_file import write_machine

        write_machine(machine, path, self._environ.get("HOME"))

    def _machine(self, found: _Gpus) -> Machine:
        value = self._environ.get(_VISIBLE)
        seen = visibility(value, found.gpus)
        with_mig = {
            gpu.index for gpu in found.gpus if {piece.uuid for piece in gpu.mig_slices} & set(seen.mig)
        }
        gpus = tuple(
            replace(gpu, visible=gpu.index in seen.indices or gpu.index in with_mig) for gpu in found.gpus
        )
        cause, sentence = self._absence(found, gpus, value)
        return Machine(
            hostname=socket.gethostname(),
            gpus=gpus,
            links=found.links,
            driver_version=_module_version() or found.driver,
            driver_library_version=found.driver,
            cuda_version=found.cuda,
            gpu_absence=cause,
            gpu_problem=sentence,
            visible_devices=value,
            cpu_count=usable_cores(),
            memory_total_bytes=memory_total_bytes(),
            gpus_unreadable=found.unreadable,
            unknown=found.unknown,
        )

    def _absence(
        self, found: _Gpus, gpus: tuple[Gpu, ...], value: str | None
    ) -> tuple[GpuAbsence | None, str | None]:
        if gpus and not any(gpu.visible for gpu in gpus):
            return GpuAbsence.HIDDEN, f"{_VISIBLE}={value!r} hides all {len(gpus)} GPUs"
        if gpus or found.unreadable:
            return None, None
        signs = Signs(
            module_version=_module_version(),
            pci_gpus=pci_gpus(),
            device_files=len(list(Path("/dev").glob("nvidia[0-9]*"))),
            in_container=container_kind(self._environ) != "none",
        )
        return absence(found.refusal or NvmlRefusal.NO_DEVICES, signs)


def _read_gpus(nvml: Any) -> _Gpus:
    try:
        with nvml_session(nvml) as lib:
            return _from_session(lib)
    except NvmlRefused as refused:
        return _Gpus(refusal=refused.refusal)


def _from_session(lib: Any) -> _Gpus:
    handles, unreadable = _handles(lib)
    links, unknown = read_links(lib, handles)
    return _Gpus(
        gpus=tuple(read_gpu(lib, index, handle) for index, handle in handles.items()),
        unreadable=unreadable,
        links=links,
        unknown=unknown,
        driver=_quietly(lib, "nvmlSystemGetDriverVersion"),
        cuda=_cuda(_quietly(lib, "nvmlSystemGetCudaDriverVersion_v2")),
    )


def _handles(lib: Any) -> tuple[dict[int, Any], tuple[str, ...]]:
    """Handles by index, and a sentence for every GPU that the driver counts and cannot open."""
    handles: dict[int, Any] = {}
    unreadable = []
    for index in range(lib.nvmlDeviceGetCount()):
        try:
            handles[index] = lib.nvmlDeviceGetHandleByIndex(index)
        except lib.NVMLError as error:  # noqa: PERF203 - a GPU that fell off the bus must not hide the others
            unreadable.append(f"GPU {index}: {error}")
    return handles, tuple(unreadable)


def _active(lib: Any, index: int, handle: Any) -> Gpu:
    return Gpu(index=index, **identity(Asker(lib), index, handle), **read_activity(lib, handle))


def _quietly(lib: Any, function: str) -> Any:
    try:
        return getattr(lib, function)()
    except (lib.NVMLError, AttributeError):
        return None


def _cuda(number: int | None) -> str | None:
    """NVML writes CUDA 13.0 as 13000."""
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _module_version() -> str | None:
    return read_text("/sys/module/nvidia/version")


def _with_xids(found: _Gpus, log: dict[str, tuple[int, ...]] | None) -> _Gpus:
    if log is None:
        gpus = tuple(replace(gpu, unknown=(*gpu.unknown, "xids")) for gpu in found.gpus)
    else:
        gpus = tuple(
            replace(gpu, xids=log.get(key_of(gpu.bus_id), ()) if gpu.bus_id else None) for gpu in found.gpus
        )
    return replace(found, gpus=gpus)
