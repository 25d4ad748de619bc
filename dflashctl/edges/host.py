"""Host facts as the kernel tells them: limits, memory, container, folders, settings."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.host import Host, Limit
from dflashctl.edges.cgroup import cgroup_limits
from dflashctl.edges.folders import read_folders
from dflashctl.edges.host_devices import acs_redirect_bridges, infiniband, iommu, nvswitches
from dflashctl.edges.host_services import docker_facts, fabric_manager
from dflashctl.edges.kernel_clock import clock_synchronised
from dflashctl.edges.process_rights import has_sys_ptrace, under_seccomp
from dflashctl.edges.text_file import read_int, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

# What changes how the engine behaves; anything that could be a secret stays out.
_ENGINE_PREFIXES = (
    "NCCL_",
    "SGLANG_",
    "TORCH_",
    "PYTORCH_",
    "FLASHINFER_",
    "TRITON_",
    "CUDA_",
    "NVSHMEM_",
    "HF_HUB_OFFLINE",
)
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def read_host(environ: Mapping[str, str], bus_ids: tuple[str, ...]) -> Host:
    """The facts of this host; `bus_ids` are the PCI addresses of its GPUs."""
    memory = _meminfo()
    container = container_kind(environ)
    limits = cgroup_limits()
    shm_total, shm_free = _shm()
    swap, swap_free = memory.get("SwapTotal"), memory.get("SwapFree")
    return Host(
        kernel=os.uname().release,
        glibc=_glibc(),
        os_release=_os_release(),
        wsl="microsoft" in os.uname().release.lower(),
        container=container,
        shm_total_bytes=shm_total,
        shm_free_bytes=shm_free,
        nofile=_limit(resource.RLIMIT_NOFILE),
        memlock=_limit(resource.RLIMIT_MEMLOCK),
        memory_available_bytes=memory.get("MemAvailable"),
        cgroup_memory_max_bytes=limits.memory_max_bytes,
        cgroup_memory_used_bytes=limits.memory_used_bytes,
        cgroup_pids_max=limits.pids_max,
        swap_used_bytes=None if swap is None or swap_free is None else swap - swap_free,
        folders=read_folders(environ),
        docker=docker_facts(environ),
        fabric_manager=fabric_manager(in_container=container != "none"),
        nvswitches=nvswitches(),
        iommu=iommu(bus_ids),
        acs_redirect_bridges=acs_redirect_bridges(bus_ids),
        infiniband=infiniband(),
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        numa_balancing=_flag(read_int("/proc/sys/kernel/numa_balancing")),
        transparent_huge_pages=_chosen(read_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        ptrace_scope=read_int("/proc/sys/kernel/yama/ptrace_scope"),
        sys_ptrace=has_sys_ptrace(),
        seccomp=under_seccomp(),
        clock_synchronised=clock_synchronised(),
        proxy_set=_proxy_set(environ),
        proxy_spares_loopback=_proxy_spares_loopback(environ),
        engine_variables=engine_variables(environ),
    )


def memory_total_bytes() -> int | None:
    return _meminfo().get("MemTotal")


def container_kind(environ: Mapping[str, str]) -> str:
    """Which kind of container this process is in, "none" on a host."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if Path("/run/.containerenv").exists():
        return "podman"
    if Path("/.dockerenv").exists():
        return "docker"
    cgroups = read_text("/proc/1/cgroup") or ""
    for word in ("kubepods", "docker", "lxc", "podman"):
        if word in cgroups:
            return "kubernetes" if word == "kubepods" else word
    return "other" if environ.get("container") else "none"


def engine_variables(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables that steer the engine and its libraries, by name, without anything secret."""
    return tuple(
        (name, value)
        for name, value in sorted(environ.items())
        if name.startswith(_ENGINE_PREFIXES) and not any(word in name for word in _SECRET_WORDS)
    )


def _proxy_set(environ: Mapping[str, str]) -> bool:
    """Whether a proxy is set; its address may hold a password and is not kept."""
    return any(value and name.lower() in _PROXIES for name, value in environ.items())


def _proxy_spares_loopback(environ: Mapping[str, str]) -> bool:
    values = [value for name, value in environ.items() if name.lower() == "no_proxy"]
    spared = {entry.strip() for value in values for entry in value.split(",")}
    return bool(spared & {"127.0.0.1", "127.0.0.0/8", "*"})


def _meminfo() -> dict[str, int]:
    """Bytes by name; /proc/meminfo writes kB."""
    lines = (read_text("/proc/meminfo") or "").splitlines()
    pairs = (line.split(":", 1) for line in lines if line.endswith(" kB"))
    return {name: int(value.split()[0]) * 1024 for name, value in pairs}


def _shm() -> tuple[int | None, int | None]:
    try:
        info = os.statvfs("/dev/shm")  # noqa: S108 - the mount itself is asked about
    except OSError:
        return None, None
    return info.f_blocks * info.f_frsize, info.f_bavail * info.f_frsize


def _limit(which: int) -> Limit:
    soft, hard = resource.getrlimit(which)
    return Limit(soft=soft, hard=hard)


def _glibc() -> str | None:
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        return None
    return name.split()[-1] if name else None


def _os_release() -> str | None:
    for line in (read_text("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def _chosen(text: str | None) -> str | None:
    """The value in brackets of a kernel setting such as "always [madvise] never"."""
    return text.partition("[")[2].partition("]")[0] or None if text else None


def _flag(value: int | None) -> bool | None:
    return None if value is None else value > 0
