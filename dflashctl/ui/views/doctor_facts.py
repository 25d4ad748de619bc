"""The facts behind doctor's verdict: one row a GPU, the links, the host, the engine's software, every check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.check import gb, ranges
from dflashctl.core.host import UNLIMITED

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.doctor_result import DoctorResult
    from dflashctl.core.host import Host, Software
    from dflashctl.core.machine import Gpu, Machine


def facts_lines(data: DoctorResult) -> list[RenderableType]:
    machine = data.machine
    lines: list[RenderableType] = []
    if machine.gpus:
        lines += [_title("GPUs"), _gpus(machine, data.gpus), *_links(machine)]
    lines += [_title("driver"), _grid(_driver(machine))]
    if machine.host is not None:
        lines += [_title("host"), _grid(_host(machine, machine.host))]
    if machine.software is not None:
        lines += [_title("engine"), _grid(_software(machine.software))]
    lines += [_title("checks"), _checks(data)]
    return lines


def _title(text: str) -> Text:
    return Text(text, style="heading")


def _grid(rows: list[tuple[str, str | None]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for key, value in rows:
        table.add_row(Text(f"  {key}", style="key"), "unknown" if value is None else value)
    return table


def _gpus(machine: Machine, chosen: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="heading")
    for heading in (
        "",
        "GPU",
        "MEMORY",
        "FREE",
        "CC",
        "NVLINK",
        "FABRIC",
        "PCIE",
        "POWER",
        "TEMP",
        "NUMA",
        "ECC",
        "UUID",
    ):
        table.add_column(heading, no_wrap=True)
    for gpu in machine.gpus:
        table.add_row("*" if gpu.uuid in chosen else "" if gpu.visible else "-", *_gpu_row(gpu))
    return table


def _gpu_row(gpu: Gpu) -> tuple[str, ...]:
    return (
        f"{gpu.index} {gpu.name}",
        _size(gpu.memory_total_bytes),
        _size(gpu.memory_free_bytes),
        gpu.capability or "?",
        _nvlink(gpu),
        _fabric(gpu),
        f"gen {_or(gpu.pcie_generation)}/{_or(gpu.pcie_generation_max)} x{_or(gpu.pcie_width)}",
        f"{_or(gpu.power_w, '.0f')}/{_or(gpu.power_limit_w, '.0f')} W",
        f"{_or(gpu.temperature_c)} C",
        _or(gpu.numa_node),
        _ecc(gpu),
        gpu.uuid,
    )


def _nvlink(gpu: Gpu) -> str:
    if gpu.nvlinks_active is None:
        return "?"
    version = f" v{gpu.nvlink_version}" if gpu.nvlink_version else ""
    return f"{gpu.nvlinks_active}/{_or(gpu.nvlinks_total)}{version}"


def _fabric(gpu: Gpu) -> str:
    if gpu.fabric is None:
        return "?"
    return gpu.fabric.state or "?" if gpu.fabric.status in {None, "success"} else f"{gpu.fabric.status}"


def _ecc(gpu: Gpu) -> str:
    if gpu.ecc_enabled is None:
        return "?"
    return "off" if not gpu.ecc_enabled else f"{_or(gpu.ecc_uncorrected_volatile)} errors"


def _links(machine: Machine) -> list[RenderableType]:
    """Links by kind: one line where all pairs are alike, else the pairs of each kind."""
    if not machine.links:
        return []
    by_kind: dict[str, list[str]] = {}
    for link in machine.links:
        refused = ", no peer access" if link.p2p is False else ""
        by_kind.setdefault(f"{link.kind.value}{refused}", []).append(f"{link.a}-{link.b}")
    if len(by_kind) == 1 and len(machine.links) > 1:
        return [Text(f"  all {len(machine.links)} pairs: {next(iter(by_kind))}")]
    return [Text(f"  {kind}: {', '.join(pairs)}") for kind, pairs in by_kind.items()]


def _driver(machine: Machine) -> list[tuple[str, str | None]]:
    hidden = [gpu.index for gpu in machine.gpus if not gpu.visible]
    rows: list[tuple[str, str | None]] = [("version", machine.driver_version), ("CUDA", machine.cuda_version)]
    if machine.visible_devices is not None:
        rows.append(
            ("CUDA_VISIBLE_DEVICES", f"{machine.visible_devices!r} (hides {ranges(hidden) or 'none'})")
        )
    return rows


def _host(machine: Machine, host: Host) -> list[tuple[str, str | None]]:
    manager = host.fabric_manager
    folder = host.folder("weights")
    return [
        ("system", f"{host.os_release or '?'}, kernel {host.kernel or '?'}, glibc {host.glibc or '?'}"),
        ("container", host.container),
        (
            "CPUs, memory",
            f"{_or(machine.cpu_count)}, {_size(host.memory_available_bytes)} free of {_size(machine.memory_total_bytes)}",
        ),
        (
            "memory limit",
            "none" if host.cgroup_memory_max_bytes is None else gb(host.cgroup_memory_max_bytes),
        ),
        ("shared memory", f"{_size(host.shm_free_bytes)} free of {_size(host.shm_total_bytes)}"),
        ("open files", _limit(host.nofile.hard if host.nofile else None)),
        ("locked memory", _limit(host.memlock.soft if host.memlock else None, size=True)),
        (
            "weights",
            f"{folder.path}: {_size(folder.free_bytes)} free, {folder.file_system or '?'}"
            if folder
            else None,
        ),
        ("Docker", _docker(host)),
        ("fabric manager", None if manager is None else _running(manager.running, manager.version)),
        ("IOMMU", host.iommu),
        ("RDMA ports", str(sum(port.state == "ACTIVE" for port in host.infiniband)) + " active"),
        ("NUMA balancing", _yes(value=host.numa_balancing)),
        ("huge pages", host.transparent_huge_pages),
        ("clock held", _yes(value=host.clock_synchronised)),
    ]


def _docker(host: Host) -> str:
    if host.docker is None:
        return "none"
    if host.docker.reachable is None:
        return "that of DOCKER_HOST, not asked"
    if not host.docker.reachable:
        return "does not answer"
    return f"{host.docker.version or '?'}, GPUs: {_yes(value=host.docker.gpu) or '?'}"


def _running(running: bool | None, version: str | None) -> str:
    return f"{'runs' if running else 'does not run'}{f', {version}' if version else ''}"


def _software(software: Software) -> list[tuple[str, str | None]]:
    flashinfer = (software.flashinfer_python, software.flashinfer_cubin, software.flashinfer_jit_cache)
    blackwell = [("ptxas sm_100+", _tools(software.ptxas_blackwell))] if software.ptxas_blackwell else []
    return [
        ("interpreter", f"{software.python} ({software.python_version})"),
        ("SGLang", software.sglang or "not installed"),
        ("torch", f"{software.torch or 'not installed'} (CUDA {software.cuda_build or 'none'})"),
        ("sglang-kernel", software.sglang_kernel or "not installed"),
        ("FlashInfer", "python {}, cubin {}, jit-cache {}".format(*(v or "-" for v in flashinfer))),
        ("nvcc", software.nvcc or "none"),
        ("ptxas", _tools(software.ptxas)),
        *blackwell,
    ]


def _tools(found: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{version} ({where})" for where, version in found) or "none"


def _checks(data: DoctorResult) -> Table:
    table = Table.grid(padding=(0, 2))
    for result in data.checks:
        why = f"needs {', '.join(result.missing)}" if result.missing else ""
        table.add_row(f"  {result.id}", result.outcome.value.replace("_", " "), Text(why, style="detail"))
    return table


def _size(value: int | None) -> str:
    return "?" if value is None else gb(value)


def _limit(value: int | None, *, size: bool = False) -> str | None:
    if value is None:
        return None
    if value == UNLIMITED:
        return "unlimited"
    return gb(value) if size else str(value)


def _yes(*, value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _or(value: float | None, form: str = "") -> str:
    return "?" if value is None else format(value, form)
