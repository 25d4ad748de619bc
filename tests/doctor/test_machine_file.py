"""Saved machines: they come back as they were, give nothing away, and a broken one says where."""

from __future__ import annotations

import os
import resource
import stat
from dataclasses import replace

import pytest

from dflashctl.core.anonymous import anonymous
from dflashctl.core.errors import MachineError
from dflashctl.core.machine import Fabric, GpuProcess
from dflashctl.edges.machine_file import parse_machine, read_machine, write_machine
from tests.support.machines import NAMES, TOPOLOGIES, topology


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(name, tmp_path):
    machine = topology(name)
    write_machine(machine, tmp_path / "m.yaml")
    assert read_machine(tmp_path / "m.yaml") == machine


def private_machine():
    machine = topology("8x-h200")
    gpu = replace(
        machine.gpus[0],
        uuid="GPU-5ec7e7aa-1111-2222-3333-444455556666",
        processes=(GpuProcess(pid=9, name="/home/alice/secret-project/run.py --key hunter2"),),
        fabric=Fabric(
            state="completed", status="success", cluster_uuid="5ec7e7bb-1111-2222-3333-444455556666"
        ),
    )
    host = replace(
        machine.host,
        folders=(replace(machine.host.folders[0], path="/home/alice/models"),),
        engine_variables=(
            ("TRITON_CACHE_DIR", "/home/alice/triton"),
            ("CUDA_VISIBLE_DEVICES", gpu.uuid[:16]),
        ),
    )
    software = replace(
        machine.software,
        python="/home/alice/venv/bin/python3",
        ptxas=(("/home/alice/bin/ptxas", "13.0"),),
        ptxas_blackwell=(("/home/alice/bin/ptxas-blackwell", "13.0"),),
    )
    return replace(
        machine,
        hostname="alices-host",
        gpus=(gpu, *machine.gpus[1:]),
        visible_devices=f"{gpu.uuid},GPU-5ec7e7cc",
        host=host,
        software=software,
    )


def test_nothing_that_identifies_is_written(tmp_path):
    write_machine(private_machine(), tmp_path / "m.yaml")
    text = (tmp_path / "m.yaml").read_text()
    for secret in ("alice", "5ec7e7", "hunter2", "secret-project", "run.py --key"):
        assert secret not in text
    read = read_machine(tmp_path / "m.yaml")
    assert read.hostname is None
    assert read.gpus[0].processes[0].name == "run.py"
    assert read.visible_devices == f"{read.gpus[0].uuid},GPU-removed"
    assert read.host.folder("weights").path == "~/models"


def test_free_texts_are_cleaned_as_well(tmp_path):
    """What NVML, an interpreter or the absence of GPUs was put into words with."""
    uuid = "GPU-5ec7e7aa-1111-2222-3333-444455556666"
    machine = private_machine()
    told = replace(
        machine,
        gpu_problem=f"CUDA_VISIBLE_DEVICES='{uuid[:16]},MIG-{uuid}/7/0' hides all 8 GPUs",
        gpus_unreadable=(f"GPU 3: {uuid} is lost (/home/alice/x)",),
        software=replace(
            machine.software, problem="'/home/alice/private/python' cannot be run: No such file"
        ),
    )
    write_machine(told, tmp_path / "m.yaml")
    text = (tmp_path / "m.yaml").read_text()
    assert "alice" not in text
    assert "5ec7e7" not in text
    read = read_machine(tmp_path / "m.yaml")
    known = read.gpus[0].uuid
    assert read.gpu_problem == f"CUDA_VISIBLE_DEVICES='{known},MIG-removed' hides all 8 GPUs"
    assert read.gpus_unreadable == (f"GPU 3: {known} is lost (~/x)",)
    assert read.software.problem == "'~/private/python' cannot be run: No such file"


@pytest.mark.parametrize(
    ("text", "home", "cleaned"),
    [
        ("/home/alice/x", None, "~/x"),
        ("'/home/alice/x'", None, "'~/x'"),
        ("/opt/a:/home/alice/b:/home/bob", None, "/opt/a:~/b:~"),
        ("-I/home/alice/include", None, "-I~/include"),
        ("/nfs/home/alice/x", None, "~/x"),
        ('"/root/x" and /root', None, '"~/x" and ~'),
        ("/rooted /opt/root /opt/homework", None, "/rooted /opt/root /opt/homework"),
        ("/home/alice smith/x", "/home/alice smith", "~/x"),
        ("cannot run '/data/users/alice/py'", "/data/users/alice", "cannot run '~/py'"),
        ("-L/data/users/alice/lib", "/data/users/alice/", "-L~/lib"),
        (
            "/data/users/alicia/py /x/data/users/alice",
            "/data/users/alice",
            "/data/users/alicia/py /x/data/users/alice",
        ),
        ("/home/alice: no such folder in /opt", None, "~: no such folder in /opt"),
        ("/usr/bin/python", "/", "/usr/bin/python"),
    ],
)
def test_home_folders_wherever_they_stand(text, home, cleaned):
    machine = topology("laptop")
    host = replace(machine.host, engine_variables=(("NCCL_X", text),))
    found = anonymous(replace(machine, gpu_problem=text, host=host), home)
    assert found.gpu_problem == cleaned
    assert found.host.engine_variables == (("NCCL_X", cleaned),)


def test_a_judgement_does_not_change_by_saving(tmp_path):
    machine = topology("8x-b300-fabric-failed")
    write_machine(machine, tmp_path / "m.yaml")
    assert read_machine(tmp_path / "m.yaml").gpus[5].fabric.status == "Insufficient Resources"


def test_a_file_that_finds_no_room_leaves_nothing_behind(tmp_path):
    """A limit on a file's size refuses the bytes as a full disk does, after the file was made."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        with pytest.raises(MachineError, match="cannot write the machine file"):
            write_machine(topology("laptop"), tmp_path / "m.yaml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


GPU = "gpus: [{index: 0, uuid: GPU-0, name: X, memory_total_bytes: 1}]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("[1, 2]", "schema_version is missing"),
        ("gpus: []", "schema_version is missing"),
        ("schema_version: 9", "9 is not one this version knows"),
        ("schema_version: 1\ngpuz: []", "did you mean 'gpus'?"),
        ("schema_version: 1\ngpus: [{index: 0}]", "uuid: is missing"),
        (
            "schema_version: 1\ngpus: [{index: x, uuid: a, name: b, memory_total_bytes: 1}]",
            "m.yaml:2: gpus[0].index",
        ),
        (
            f"schema_version: 1\n{GPU}\nlinks: [{{a: 0, b: 7, kind: nvlink}}]",
            "joins GPUs 0 and 7, which are not both here",
        ),
        (f"schema_version: 1\n{GPU}\nlinks: [{{a: 0, b: 0, kind: nvlink}}]", "links[0]"),
        (
            "schema_version: 1\ngpus:\n" + 2 * "- {index: 0, uuid: GPU-0, name: X, memory_total_bytes: 1}\n",
            "must differ",
        ),
        (f"schema_version: 1\n{GPU[:-2]}, compute_capability: [9]}}]", "must be two numbers"),
        ("schema_version: 1\ngpus: {", "not valid YAML"),
    ],
)
def test_a_broken_file_says_where(text, words):
    with pytest.raises(MachineError) as caught:
        parse_machine(text, name="m.yaml")
    assert words in f"{caught.value.message}\n{caught.value.detail}"
    assert "--save-machine" in caught.value.hint or "release" in caught.value.hint


@pytest.mark.parametrize("given", ["0", "null"])
def test_a_memory_that_could_not_be_read_is_unknown(given, tmp_path):
    """Files of before this was told apart have 0."""
    machine = parse_machine(f"schema_version: 1\n{GPU.replace('bytes: 1', f'bytes: {given}')}", name="m.yaml")
    assert machine.gpus[0].memory_total_bytes is None
    write_machine(machine, tmp_path / "m.yaml")
    assert read_machine(tmp_path / "m.yaml").gpus[0].memory_total_bytes is None


def test_what_is_not_told_of_links_is_saved(tmp_path):
    machine = topology("2x-h200", {"links[0].kind": "unknown", "unknown": ["links", "p2p"]})
    write_machine(machine, tmp_path / "m.yaml")
    read = read_machine(tmp_path / "m.yaml")
    assert (read.links, read.unknown) == (machine.links, ("links", "p2p"))


def test_a_file_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(MachineError, match="No such file"):
        read_machine(tmp_path / "nothing.yaml")
    with pytest.raises(MachineError, match="No such file"):
        write_machine(topology("laptop"), tmp_path / "nowhere" / "m.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MachineError, match="not UTF-8"):
        read_machine(tmp_path / "binary")


def test_json_is_read_as_well(tmp_path):
    (tmp_path / "m.json").write_text('{"schema_version": 1, "cpu_count": 4}')
    assert read_machine(tmp_path / "m.json").cpu_count == 4


def test_no_topology_of_the_tests_names_anybody():
    for path in TOPOLOGIES.glob("*.yaml"):
        assert "hostname" not in path.read_text()


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    """As root, replacing /dev/null would take it away from the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    write_machine(topology("laptop"), pipe)
    assert b"schema_version" in os.read(reader, 1 << 20)
    os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
