"""Host facts: from made-up /proc and /sys trees, and from the machine the tests run on."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from dflashctl.core.deep import DeepRequest
from dflashctl.core.errors import StateError
from dflashctl.core.host import Limit
from dflashctl.edges import host_services
from dflashctl.edges.cgroup import CgroupLimits, cgroup_limits, cpu_quota
from dflashctl.edges.folders import read_folders, weights_folder
from dflashctl.edges.host import container_kind, engine_variables, read_host
from dflashctl.edges.host_devices import acs_redirect_bridges, infiniband, iommu, nvswitches, pci_gpus
from dflashctl.edges.instances import FileInstances
from dflashctl.edges.kernel_log import key_of, xids
from dflashctl.edges.machine_probe import SystemMachineProbe
from dflashctl.edges.places import fresh_runtime_folder, runtime_place
from dflashctl.edges.process_rights import has_sys_ptrace, under_seccomp
from dflashctl.edges.software import read_software
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import topology


def tree(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)
    return root


@pytest.mark.parametrize(
    ("files", "own", "limits"),
    [
        ({}, "", CgroupLimits()),
        ({"cgroup.controllers": "memory"}, "0::/", CgroupLimits()),
        (
            {
                "cgroup.controllers": "",
                "a/b/memory.max": "max\n",
                "a/memory.max": "5000\n",
                "a/memory.current": "70\n",
            },
            "0::/a/b",
            CgroupLimits(memory_max_bytes=5000, memory_used_bytes=70),
        ),
        (
            {
                "cgroup.controllers": "",
                "memory.max": "900",
                "a/memory.max": "5000",
                "a/pids.max": "64",
                "memory.current": "3",
            },
            "0::/a",
            CgroupLimits(memory_max_bytes=900, memory_used_bytes=3, pids_max=64),
        ),
        (
            {
                "memory/d/memory.limit_in_bytes": "4096",
                "memory/d/memory.usage_in_bytes": "5",
                "pids/d/pids.max": "9",
            },
            "5:memory:/d\n4:pids:/d",
            CgroupLimits(memory_max_bytes=4096, memory_used_bytes=5, pids_max=9),
        ),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, "5:memory:/", CgroupLimits()),
    ],
)
def test_cgroup_limits(files, own, limits, tmp_path):
    assert cgroup_limits(tree(tmp_path, files), own) == limits


V2 = {"cgroup.controllers": "cpu"}


@pytest.mark.parametrize(
    ("files", "own", "quota"),
    [
        ({}, "", None),
        (V2, "0::/", None),
        (V2 | {"cpu.max": "max 100000\n"}, "0::/", None),
        (V2 | {"cpu.max": "250000 100000\n"}, "0::/", 2.5),
        (
            V2 | {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000", "cpu.max": "400000 100000"},
            "0::/a/b",
            0.5,
        ),
        (V2 | {"cpu.max": "300000 100000"}, "0::/gone/in/a/container", 3.0),
        (V2 | {"cpu.max": "garbage"}, "0::/", None),
        (
            {"cpu/d/cpu.cfs_quota_us": "150000", "cpu/d/cpu.cfs_period_us": "100000"},
            "4:cpu,cpuacct:/d\n0::/",
            1.5,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/\n0::/", None),
        ({"cpu/cpu.cfs_quota_us": "150000"}, "4:cpu:/", None),
    ],
)
def test_cpu_quota(files, own, quota, tmp_path):
    assert cpu_quota(tree(tmp_path, files), own) == quota


def config_space(*, control=None, size=4096):
    """A PCIe configuration space, with an ACS capability when `control` is given."""
    space = bytearray(size)
    if control is not None:
        space[0x100:0x104] = (0x0001 | 0x140 << 20).to_bytes(4, "little")
        space[0x140:0x144] = (0x000D).to_bytes(4, "little")
        space[0x146:0x148] = control.to_bytes(2, "little")
    return bytes(space)


def pci_tree(root, bridge):
    real = root / "devices/pci0000:00/0000:00:01.0"
    tree(real, {"config": bridge, "0000:01:00.0/vendor": "0x10de", "0000:01:00.0/class": "0x030200"})
    tree(real / "0000:01:00.0", {"iommu_group_placeholder": ""})
    bus = root / "bus"
    bus.mkdir()
    (bus / "0000:01:00.0").symlink_to(real / "0000:01:00.0")
    return bus


@pytest.mark.parametrize(
    ("bridge", "found"),
    [
        (config_space(control=0x5D), ("0000:00:01.0",)),
        (config_space(control=0x11), ()),
        (config_space(), ()),
        (config_space(size=64), None),
    ],
)
def test_acs_redirection_above_a_gpu(bridge, found, tmp_path):
    bus = pci_tree(tmp_path, bridge)
    assert acs_redirect_bridges(("00000000:01:00.0",), bus) == found


def test_a_capability_list_that_runs_in_circles_ends(tmp_path):
    space = bytearray(config_space())
    space[0x100:0x104] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    assert acs_redirect_bridges(("00000000:01:00.0",), pci_tree(tmp_path, bytes(space))) == ()


@pytest.mark.parametrize(
    ("kind", "mode"), [("identity", "passthrough"), ("DMA-FQ", "translated"), ("DMA", "translated")]
)
def test_iommu_of_a_gpu(kind, mode, tmp_path):
    tree(tmp_path, {"0000:1a:00.0/iommu_group/type": f"{kind}\n"})
    assert iommu(("00000000:1A:00.0",), tmp_path) == mode


def test_devices_on_the_bus(tmp_path):
    tree(
        tmp_path,
        {
            "a/vendor": "0x10de\n",
            "a/class": "0x030200\n",
            "b/vendor": "0x10de\n",
            "b/class": "0x068000\n",
            "c/vendor": "0x8086\n",
            "c/class": "0x030000\n",
        },
    )
    assert (pci_gpus(tmp_path), nvswitches(tmp_path)) == (1, 1)
    assert (pci_gpus(tmp_path / "none"), nvswitches(tmp_path / "none")) == (0, None)


def test_infiniband_ports(tmp_path):
    tree(tmp_path, {"mlx5_0/ports/1/state": "4: ACTIVE\n", "mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n"})
    (port,) = infiniband(tmp_path)
    assert (port.device, port.port, port.state, port.rate) == ("mlx5_0", 1, "ACTIVE", "400 Gb/sec")


LOG = [
    "6,1,2,-;nvidia: loading out-of-tree module\n",
    "4,2,3,-;NVRM: Xid (PCI:0000:1a:00): 13, pid=77, name=python3, Graphics Exception\n",
    "4,3,4,-;NVRM: Xid (PCI:0000:1a:00): 145, RLW\n",
    "4,4,5,-;NVRM: Xid (PCI:0000:1A:00): 13, again\n",
    "4,5,6,-;NVRM: Xid (PCI:00000000:3b:00.0): 79, GPU has fallen off the bus\n",
]


def test_xids_by_gpu():
    assert xids(LOG) == {"0000:1a:00": (13, 145), "0000:3b:00": (79,)}
    assert key_of("00000000:1A:00.0") == "0000:1a:00"


@pytest.mark.parametrize(
    ("environ", "kind"),
    [({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"kubernetes"}), ({"container": "lxc"}, None)],
)
def test_container_kind(environ, kind):
    found = container_kind(environ)
    assert found in (kind or {"docker", "podman", "kubernetes", "lxc", "other"})


def test_variables_without_secrets():
    environ = {
        "NCCL_DEBUG": "INFO",
        "SGLANG_API_KEY": "x",
        "HF_TOKEN": "y",
        "CUDA_HOME": "/c",
        "TORCH_AUTH": "z",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }
    assert engine_variables(environ) == (
        ("CUDA_HOME", "/c"),
        ("NCCL_DEBUG", "INFO"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
    )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({}, "/h/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"HF_HOME": "/hf"}, "/hf/hub"),
        ({"HF_HOME": "/hf", "HF_HUB_CACHE": "/cache"}, "/cache"),
    ],
)
def test_weights_folder(environ, folder):
    assert weights_folder(environ, "/h") == folder


def test_folders_and_a_lock_that_nobody_holds(tmp_path):
    old = tmp_path / ".cache/flashinfer/0.7.2/90/cached_ops/sampling/lock"
    tree(tmp_path, {str(old): "", str(old.with_name("build.ninja")): ""})
    os.utime(old, (time.time() - 3600,) * 2)
    fresh = tmp_path / ".cache/torch_extensions/py312/x/lock"
    tree(tmp_path, {str(fresh): ""})
    folders = {folder.kind: folder for folder in read_folders({"HOME": str(tmp_path)})}
    assert folders["flashinfer"].stale_locks == 1
    assert folders["torch_extensions"].stale_locks == 0
    assert folders["flashinfer"].exists
    assert not folders["triton"].exists
    assert folders["triton"].writable
    assert folders["weights"].free_bytes > 0
    assert folders["weights"].path == "~/.cache/huggingface/hub"


@pytest.mark.parametrize(
    ("environ", "planned", "kind", "expected"),
    [
        ({"TRITON_CACHE_DIR": "own"}, {}, "triton", "own"),
        ({"TRITON_CACHE_DIR": "own"}, {"TRITON_CACHE_DIR": "planned"}, "triton", "planned"),
        ({}, {"TRITON_HOME": "planned"}, "triton", "planned/.triton/cache"),
        ({}, {"FLASHINFER_WORKSPACE_BASE": "planned"}, "flashinfer", "planned/.cache/flashinfer"),
        ({}, {"SGLANG_DG_CACHE_DIR": "planned"}, "deep_gemm", "planned"),
        ({}, {"TORCH_EXTENSIONS_DIR": "planned"}, "torch_extensions", "planned"),
        ({"DFLASHCTL_RUNTIME_DIR": "run"}, {}, "temporary", "run"),
        ({"DFLASHCTL_RUNTIME_DIR": "run", "TMPDIR": "own"}, {}, "temporary", "run"),
        ({"DFLASHCTL_RUNTIME_DIR": "run"}, {"TMPDIR": "planned"}, "temporary", "planned"),
        ({"HF_HUB_CACHE": "own"}, {"HF_HUB_CACHE": "planned"}, "weights", "own"),
    ],
)
def test_folders_are_those_of_the_engine_s_environment(tmp_path, environ, planned, kind, expected):
    """Weights are fetched by dflashctl itself, whatever the engine is told."""
    here, there = (
        {name: f"/nowhere/{value}" for name, value in variables.items()} for variables in (environ, planned)
    )
    folders = {f.kind: f.path for f in read_folders({"HOME": str(tmp_path), **here}, there)}
    assert folders[kind] == f"/nowhere/{expected}"


@pytest.mark.parametrize("blocked", [(), ("XDG_RUNTIME_DIR",), ("XDG_RUNTIME_DIR", "TMPDIR")])
def test_the_runtime_place_is_where_the_runtime_folder_is_made(blocked):
    """A file in the way of a folder stops even root."""
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        environ = {name: f"{folder}/{name[:1]}" for name in ("XDG_RUNTIME_DIR", "TMPDIR")}
        for name, path in environ.items():
            (Path(path).touch if name in blocked else Path(path).mkdir)()
        before = runtime_place(environ)
        made = fresh_runtime_folder(environ, folder)
        assert str(made.parent) == before == runtime_place(environ)
        made.rmdir()


def test_a_runtime_place_that_cannot_be_used_is_named():
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        Path(folder, "file").touch()
        chosen = {"DFLASHCTL_RUNTIME_DIR": f"{folder}/file/below", "HOME": folder}
        (temporary,) = [f for f in read_folders(chosen) if f.kind == "temporary"]
        assert (temporary.path, temporary.writable) == ("~/file/below", False)
        with pytest.raises(StateError, match=r"no runtime folder .* can be made") as caught:
            fresh_runtime_folder(chosen, "x")
        assert "state folder" not in caught.value.message
        assert "DFLASHCTL_RUNTIME_DIR" in caught.value.hint


@pytest.mark.parametrize(
    ("make", "writable"),
    [
        (lambda _path: None, True),
        (lambda path: path.mkdir(mode=0o700), True),
        (lambda path: path.touch(), False),
        (lambda path: (path.mkdir(), path.chmod(0o770)), False),
    ],
    ids=["not yet", "private", "a file", "open to others"],
)
def test_a_state_folder_is_judged_as_a_start_would(tmp_path, make, writable):
    path = tmp_path / "state"
    make(path)
    environ = {"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(path)}
    (state,) = [f for f in read_folders(environ) if f.kind == "state"]
    assert state.writable is writable
    try:
        with FileInstances(environ=environ).own("x"):
            pass
    except StateError:
        assert not writable
    else:
        assert writable


@pytest.mark.parametrize(
    ("variable", "kind"), [("DFLASHCTL_STATE_DIR", "state"), ("DFLASHCTL_RUNTIME_DIR", "temporary")]
)
def test_a_folder_of_the_kernel_s_takes_none_of_ours(tmp_path, variable, kind):
    environ = {"HOME": str(tmp_path), variable: "/proc/nope"}
    assert [f.writable for f in read_folders(environ) if f.kind == kind] == [False]


def test_this_host_is_read_without_a_stumble():
    host = read_host(
        {"HOME": "/nowhere", "https_proxy": "http://u:p@proxy:1", "no_proxy": "localhost,127.0.0.1"}, ()
    )
    assert host.kernel == os.uname().release
    assert host.shm_total_bytes is None or host.shm_total_bytes >= (host.shm_free_bytes or 0)
    assert isinstance(host.nofile, Limit)
    assert host.memory_available_bytes > 0
    assert (host.proxy_set, host.proxy_spares_loopback) == (True, True)
    assert "proxy:1" not in repr(host)


class DockerSocket(threading.Thread):
    """A Docker engine of one answer, on a socket of its own."""

    def __init__(self, path, body, status="200 OK"):
        super().__init__(daemon=True)
        self.reply = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(1)

    def run(self):
        connection, _ = self.server.accept()
        connection.recv(4096)
        connection.sendall(self.reply)
        connection.close()
        self.server.close()


@pytest.mark.parametrize(
    ("status", "ptrace", "seccomp"),
    [
        ("CapInh:\t0000000000000000\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n", False, True),
        ("CapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n", True, False),
        ("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000080000\nSeccomp:\t1\n", True, True),
        ("Name:\tsleep\n", None, None),
        (None, None, None),
    ],
    ids=["Docker's default", "privileged", "one capability", "an old kernel", "no /proc"],
)
def test_rights_of_this_process(status, ptrace, seccomp, tmp_path):
    """The mask of Docker's default is the one its documentation lists: 14 capabilities, SYS_PTRACE not among them."""
    path = tmp_path / "status"
    if status is not None:
        path.write_text(status)
    assert has_sys_ptrace(path) is ptrace
    assert under_seccomp(path) is seccomp


def test_rights_are_part_of_the_host():
    host = read_host({}, ())
    assert host.sys_ptrace is has_sys_ptrace()
    assert host.seccomp is under_seccomp()
    assert {host.sys_ptrace, host.seccomp} <= {True, False}, "every Linux that this runs on tells both"


@pytest.mark.parametrize(
    ("body", "status", "facts"),
    [
        (
            json.dumps({"ServerVersion": "28.5.1", "Runtimes": {"runc": {}, "nvidia": {}}}),
            "200 OK",
            (True, "28.5.1", True),
        ),
        ("denied", "403 Forbidden", (False, None, None)),
        ("not json", "200 OK", (False, None, None)),
    ],
)
def test_docker_engine(body, status, facts, tmp_path):
    path = tmp_path / "s"
    DockerSocket(path, body, status).start()
    docker = host_services.docker_facts({"DOCKER_HOST": f"unix://{path}"})
    assert (docker.reachable, docker.version, docker.gpu) == facts


@pytest.mark.parametrize("host", ["tcp://elsewhere:2375", "ssh://me@elsewhere", "npipe:////./pipe/docker"])
def test_another_hosts_docker_engine_is_unknown(host):
    found = host_services.docker_facts({"DOCKER_HOST": host})
    assert (found.reachable, found.gpu) == (None, None)


def test_an_empty_docker_host_is_none():
    """As the client of `up` reads it."""
    assert host_services.docker_facts({"DOCKER_HOST": ""}) == host_services.docker_facts({})


def test_no_docker_engine(tmp_path):
    assert host_services.docker_facts({"DOCKER_HOST": f"unix://{tmp_path}/none"}) is None
    assert host_services.docker_facts({"DOCKER_HOST": f"unix://{tmp_path}"}).reachable is False


def site(root, packages, files=()):
    """A folder of installed packages as an interpreter finds them on PYTHONPATH."""
    for name, version in packages.items():
        info = root / f"{name.replace('-', '_')}-{version}.dist-info"
        requires = "Requires-Dist: torch==2.14.1\nRequires-Dist: flashinfer_python[cu13]==0.7.2\nRequires-Dist: numpy\n"
        extra = requires if name == "sglang" else ""
        tree(info, {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}"})
    return tree(root, dict(files))


def test_software_of_an_interpreter(tmp_path):
    packages = {
        "sglang": "0.5.23",
        "torch": "2.14.1+cu130",
        "sglang-kernel": "0.4.10",
        "flashinfer-python": "0.7.2",
    }
    files = {
        "torch/__init__.py": "raise SystemExit('never imported')",
        "torch/version.py": "cuda: str = '13.0'\n",
    }
    environ = {
        **os.environ,
        "PYTHONPATH": str(site(tmp_path / "site", packages, files)),
        "CUDA_HOME": str(tmp_path / "none"),
    }
    software = read_software(sys.executable, environ)
    assert (software.sglang, software.torch, software.cuda_build) == ("0.5.23", "2.14.1+cu130", "13.0")
    assert software.flashinfer_cubin is None
    assert software.needs == (("torch", "==2.14.1"), ("flashinfer-python", "==0.7.2"))
    assert (software.nvcc, software.problem) == (None, None)


def assembler(path, release):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("own", "named", "plain", "blackwell"),
    [
        ({"ptxas": "12.8"}, {}, "12.8", None),
        ({"ptxas": "12.8", "ptxas-blackwell": "13.1"}, {}, "12.8", "13.1"),
        ({"ptxas": "12.8", "ptxas-blackwell": "13.1"}, {"TRITON_PTXAS_PATH": "13.0"}, "13.0", "13.1"),
        (
            {"ptxas": "12.8", "ptxas-blackwell": "13.1"},
            {"TRITON_PTXAS_BLACKWELL_PATH": "13.4"},
            "12.8",
            "13.4",
        ),
        ({"ptxas": "12.8", "ptxas-blackwell": "13.1"}, {"TRITON_PTXAS_BLACKWELL_PATH": None}, "12.8", "13.1"),
        ({}, {}, None, None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_assemblers_as_triton_picks_them(own, named, plain, blackwell, tmp_path):
    """Its own two, each with a variable; a variable that names nothing is passed over."""
    folder = site(tmp_path / "site", {"torch": "2.13.0"}, {"triton/__init__.py": "", "torch/__init__.py": ""})
    tools = folder / "triton/backends/nvidia/bin"
    for name, release in own.items():
        assembler(tools / name, release)
    for variable, release in named.items():
        if release:
            assembler(tmp_path / variable, release)
    variables = {name: str(tmp_path / name) for name in named}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    software = read_software(
        sys.executable, {**inherited, **variables, "PYTHONPATH": str(folder), "HOME": "/none"}
    )
    expected = {
        "ptxas": (plain, variables.get("TRITON_PTXAS_PATH", str(tools / "ptxas"))),
        "ptxas_blackwell": (
            blackwell,
            variables["TRITON_PTXAS_BLACKWELL_PATH"]
            if named.get("TRITON_PTXAS_BLACKWELL_PATH")
            else str(tools / "ptxas-blackwell"),
        ),
    }
    for field, (release, where) in expected.items():
        assert getattr(software, field) == (((where, release),) if release else ())


def test_toolkit_version_without_a_process(tmp_path):
    tree(
        tmp_path,
        {"bin/nvcc": "never run", "version.json": '{"cuda": {"name": "CUDA", "version": "13.0.48"}}'},
    )
    site(tmp_path / "site", {"torch": "2.14.1"})
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "CUDA_HOME": str(tmp_path)}
    assert read_software(sys.executable, environ).nvcc == "13.0"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be run: No such file"),
        ("#!/bin/sh\necho broken >&2\nexit 3\n", "does not work: broken"),
    ],
)
def test_an_interpreter_that_is_none(content, words, tmp_path):
    python = tmp_path / "python3"
    if content:
        python.write_text(content)
        python.chmod(0o755)
    software = read_software(str(python), dict(os.environ))
    assert words in software.problem
    assert software.sglang is None


@pytest.fixture(params=["real", "fake"])
def probe(request):
    return SystemMachineProbe() if request.param == "real" else FakeMachine(topology("laptop"))


def test_every_probe_keeps_the_contract(probe, tmp_path):
    """What commands rely on, of the real edge and of the fake alike."""
    machine = probe.snapshot()
    survey = probe.survey(sys.executable)
    assert {gpu.uuid for gpu in survey.gpus} == {gpu.uuid for gpu in machine.gpus}
    assert survey.host is not None
    assert survey.software is not None
    assert len(probe.activity().gpus) == len(machine.gpus)
    probe.save(survey, tmp_path / "m.yaml")
    assert len(probe.load(tmp_path / "m.yaml").gpus) == len(survey.gpus)
    assert probe.port_use("127.0.0.1", 1, "HTTP").purpose == "HTTP"
    assert probe.deep(DeepRequest(python=sys.executable)).cuda_error is None


def test_port_owner():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        use = SystemMachineProbe().port_use("127.0.0.1", server.getsockname()[1], "HTTP")
        assert (use.free, use.owner_pid) == (False, os.getpid())
        port = server.getsockname()[1]
    assert SystemMachineProbe().port_use("127.0.0.1", port, "HTTP").free
    assert Path("/proc").is_dir()
