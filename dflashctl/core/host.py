"""Host and software facts: what besides the GPUs decides whether a server starts; None is unknown."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A resource limit as getrlimit(2) gives it; -1 is unlimited."""

    soft: int
    hard: int


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder that the engine or the fetch writes to; `path` has the home folder shortened to ~.

    `kind` says what it is for ("weights", "triton", "flashinfer", ...), `file_system` is its type (ext4, nfs4).
    `stale_locks` counts lock files that nobody holds. `silent`: its file system gave no answer, so that nothing else
    is known of it.
    """

    kind: str
    path: str
    free_bytes: int | None = None
    total_bytes: int | None = None
    file_system: str | None = None
    writable: bool | None = None
    exists: bool | None = None
    stale_locks: int = 0
    silent: bool = False


@dataclass(frozen=True, kw_only=True)
class DockerFacts:
    """The Docker engine as its socket tells; `gpu` is whether it can hand GPUs to a container.

    `reachable` is None for an engine behind DOCKER_HOST that is not asked over a socket of this host.
    """

    reachable: bool | None
    version: str | None = None
    runtimes: tuple[str, ...] = ()
    gpu: bool | None = None


@dataclass(frozen=True, kw_only=True)
class FabricManager:
    """NVIDIA's fabric manager and NVLink subnet manager, as far as this host or container shows them."""

    running: bool | None = None
    version: str | None = None
    nvlsm_running: bool | None = None


@dataclass(frozen=True, kw_only=True)
class InfinibandPort:
    device: str
    port: int
    state: str | None = None
    rate: str | None = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """One host or container: kernel, limits, memory, folders, services.

    `container` is "docker", "kubernetes", "podman", "lxc", "other" or "none"; `acs_redirect_bridges` are PCIe
    bridges that send peer traffic through the IOMMU (None when their configuration cannot be read). `sys_ptrace` and
    `seccomp` are the capability and the filter of the process that looks.
    """

    kernel: str | None = None
    glibc: str | None = None
    os_release: str | None = None
    wsl: bool | None = None
    container: str | None = None
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    nofile: Limit | None = None
    memlock: Limit | None = None
    memory_available_bytes: int | None = None
    cgroup_memory_max_bytes: int | None = None
    cgroup_memory_used_bytes: int | None = None
    cgroup_pids_max: int | None = None
    swap_used_bytes: int | None = None
    folders: tuple[Folder, ...] = ()
    docker: DockerFacts | None = None
    fabric_manager: FabricManager | None = None
    nvswitches: int | None = None
    iommu: str | None = None
    acs_redirect_bridges: tuple[str, ...] | None = None
    infiniband: tuple[InfinibandPort, ...] = ()
    numa_nodes: int | None = None
    numa_balancing: bool | None = None
    transparent_huge_pages: str | None = None
    ptrace_scope: int | None = None
    sys_ptrace: bool | None = None
    seccomp: bool | None = None
    clock_synchronised: bool | None = None
    proxy_set: bool | None = None
    proxy_spares_loopback: bool | None = None
    engine_variables: tuple[tuple[str, str], ...] = ()

    def folder(self, kind: str) -> Folder | None:
        return next((folder for folder in self.folders if folder.kind == kind), None)


@dataclass(frozen=True, kw_only=True)
class Software:
    """The engine's interpreter and what is installed there; versions are None when the package is absent.

    `cuda_build` is the CUDA that torch was built for ("13.0"). `ptxas` are the assemblers that kernels can be
    compiled with, as (where, version); `ptxas_blackwell` those that Triton takes instead from compute capability 10.0
    on, empty for a Triton that does not tell the two apart.
    """

    python: str | None = None
    python_version: str | None = None
    sglang: str | None = None
    torch: str | None = None
    cuda_build: str | None = None
    sglang_kernel: str | None = None
    triton: str | None = None
    flashinfer_python: str | None = None
    flashinfer_cubin: str | None = None
    flashinfer_jit_cache: str | None = None
    nvcc: str | None = None
    ptxas: tuple[tuple[str, str], ...] = ()
    ptxas_blackwell: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, str], ...] = ()
    problem: str | None = None
