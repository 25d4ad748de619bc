"""--deep: scripts that hang, fail or lack torch, and what is reported of them; no GPU is needed for that."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from dflashctl.checks import all_checks, examine
from dflashctl.core.deep import DeepRequest
from dflashctl.core.facts import Facts
from dflashctl.core.findings import Severity
from dflashctl.edges import deep
from dflashctl.edges.deep import probe
from tests.support.machines import topology

CHECKS = tuple(check for check in all_checks() if check.ID.startswith("deep_"))
HANG = "\nimport time\ntime.sleep(600)\n"
SEGV = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
SAY = "import json, sys\ndef say(step, **v): print(json.dumps({'step': step, **v}), flush=True)\n"


@pytest.fixture
def attempt(tmp_path, monkeypatch):
    """Run `probe` with a script of the test's in place of the real attempt."""

    def run(script, gpus=("GPU-a", "GPU-b"), limit_s=30.0):
        path = tmp_path / "attempt.py"
        path.write_text(SAY + script)
        monkeypatch.setattr(deep, "_SCRIPT", path)
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CUDA_HOME": str(tmp_path)}
        request = DeepRequest(python=sys.executable, gpus=gpus)
        return probe(request, environ, architecture=None, limit_s=limit_s)

    return run


def findings(found):
    results = examine(Facts(machine=topology("2x-h200"), deep=found), CHECKS)
    return {
        (finding.id, finding.severity, finding.summary) for result in results for finding in result.findings
    }


def test_all_well(attempt):
    found = attempt(
        "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == 'GPU-a,GPU-b'\n"
        "say('cuda', error=0, devices=2, seconds=0.4)\nsay('copying', a=0, b=1)\n"
        "say('copy', a=0, b=1, right=True, gb_per_s=311.26)\nsay('reducing')\n"
        "say('reduce', right=True, seconds=1.5)\nsay('done')\n"
    )
    assert (found.cuda_error, found.cuda_devices) == (0, 2)
    assert (found.copies[0].right, found.copies[0].gb_per_s) == (True, 311.3)
    assert (found.all_reduce_tried, found.all_reduce_right) == (True, True)


def test_cuda_refuses(attempt):
    found = attempt("say('cuda', error=802, text='system not yet initialized', devices=0, seconds=0.1)\n")
    assert (found.cuda_error, found.cuda_error_text) == (802, "system not yet initialized")
    assert found.copies == ()
    assert not found.all_reduce_tried


STARTED = "say('starting')\nsay('cuda', error=0, devices=2, seconds=0.4)\n"
IMPORTED = STARTED + "say('importing')\nsay('torch', devices=2)\n"
COPIED = IMPORTED + "say('copying', a=0, b=1)\nsay('copy', a=0, b=1, right=True, gb_per_s=311.26)\n"
# What was told when the end came, the check that must speak, and its words for the step.
STEPS = {
    "nothing": ("", "deep_cuda", "CUDA does not start"),
    "starting CUDA": ("say('starting')\n", "deep_cuda", "CUDA does not start"),
    "just after CUDA": (STARTED, "deep_torch", "the engine's torch cannot be imported"),
    "importing torch": (
        STARTED + "say('importing')\n",
        "deep_torch",
        "the engine's torch cannot be imported",
    ),
    "copying": (IMPORTED + "say('copying', a=0, b=1)\n", "deep_links", "a copy from GPU 0 to GPU 1 failed"),
    "just after the copies": (COPIED, "deep_links", "an all-reduce over the GPUs failed"),
    "reducing": (COPIED + "say('reducing')\n", "deep_links", "an all-reduce over the GPUs failed"),
}
ENDS = {
    "hang": (HANG, "no end within 1 s"),
    "crash": (SEGV, "killed by SIGSEGV"),
    "exception": (
        "\nsay('failed', text='RuntimeError: CUDA error: unspecified.\\nCompile with X')\nraise SystemExit(1)\n",
        "RuntimeError: CUDA error: unspecified",
    ),
    "death of the interpreter": ("\nraise OSError('no more')\n", "exit 1: OSError: no more"),
    "silence": ("", "it ended without a word"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("end", ENDS)
def test_a_step_that_was_begun_and_did_not_end_is_a_failure_with_its_cause(step, end, attempt):
    """Every step, with every way of not ending."""
    (told, check, words), (body, cause) = STEPS[step], ENDS[end]
    found = attempt(told + body, limit_s=1.0 if end == "hang" else 30.0)
    assert findings(found) == {(check, Severity.ERROR, f"{words}: {cause}")}


def test_a_death_after_everything_was_done_is_no_failure(attempt):
    found = attempt(COPIED + "say('reducing')\nsay('reduce', right=True, seconds=1.0)\nsay('done')\n" + SEGV)
    assert findings(found) == set()
    assert (found.all_reduce_right, found.skipped[:-2]) == (True, ())


@pytest.mark.parametrize("seen", [0, 1])
def test_fewer_cuda_devices_than_gpus_are_a_failure(seen, attempt):
    found = attempt(
        f"say('cuda', error=0, devices={seen}, seconds=1)\nsay('torch', devices={seen})\nsay('done')\n"
    )
    assert findings(found) == {("deep_cuda", Severity.ERROR, f"CUDA sees {seen} of the 2 GPUs")}
    assert found.skipped[0] == f"copies and all-reduce: torch sees {seen} of the 2 GPUs"


def test_what_a_broken_step_kept_from_being_tried_is_said(attempt):
    assert attempt("say('starting')\n" + SEGV).skipped[0] == "copies and all-reduce: CUDA does not start"
    assert attempt(STARTED + SEGV).skipped[0] == "copies and all-reduce: torch cannot be imported"
    copying = attempt(IMPORTED + "say('copying', a=0, b=1)\n" + SEGV)
    assert copying.skipped[0] == "all-reduce: the copies did not end"


def test_other_lines_on_stdout_are_no_steps(attempt):
    found = attempt(
        "print('{not json')\nprint('[1]')\nprint('{\"a\": 1}')\n" + COPIED + "say('reducing')\n" + SEGV
    )
    assert (found.cuda_error, len(found.copies)) == (0, 1)
    assert found.all_reduce_error == "killed by SIGSEGV"


# Two devices, and a success for every other call of the driver's library.
FAKE_CUDA = """
import ctypes

class Cuda:
    def cuDeviceGetCount(self, count):
        count._obj.value = 2
        return 0

    def __getattr__(self, name):
        return lambda *arguments: 0

ctypes.CDLL = lambda name: Cuda()
"""
TWO_GPUS = "class cuda:\n    device_count = staticmethod(lambda: 2)\nint32 = 0\n"
COPY_RAISES = "def arange(*size, **how):\n    raise RuntimeError('CUDA error: an illegal access.\\nmore')\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "raise OSError('libcudart.so.12: cannot open shared object file')",
            "imported: OSError: libcudart.so.12",
        ),
        ("import nothing_like_it", "imported: ModuleNotFoundError: No module named 'nothing_like_it'"),
        (
            TWO_GPUS + COPY_RAISES,
            "a copy from GPU 0 to GPU 1 failed: RuntimeError: CUDA error: an illegal access",
        ),
    ],
)
def test_the_real_script_tells_exceptions_with_their_step(body, words, tmp_path):
    (tmp_path / "torch.py").write_text(body)
    (tmp_path / "sitecustomize.py").write_text(FAKE_CUDA)
    environ = {"PATH": "", "PYTHONPATH": str(tmp_path), "CUDA_HOME": str(tmp_path)}
    request = DeepRequest(python=sys.executable, gpus=("GPU-a", "GPU-b"))
    ((_, severity, summary),) = findings(probe(request, environ, architecture=None))
    assert severity is Severity.ERROR
    assert words in summary


def test_an_all_reduce_that_hangs_takes_its_children_with_it(attempt, tmp_path):
    pid_file = tmp_path / "pid"
    found = attempt(
        "say('cuda', error=0, devices=2, seconds=0.4)\nsay('reducing')\nimport subprocess\n"
        f"child = subprocess.Popen(['sleep', '600'])\nopen({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        + HANG,
        limit_s=2.0,
    )
    assert (found.all_reduce_tried, found.all_reduce_right, found.all_reduce_s) == (True, None, 2.0)
    child = int(pid_file.read_text())
    end = time.monotonic() + 20
    while alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(child)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_no_torch_and_one_gpu_are_said(attempt):
    without = attempt("say('cuda', error=0, devices=2, seconds=1)\nsay('no_torch', text='x')\n")
    assert "has no torch" in without.skipped[0]
    assert findings(without) == set()
    one = attempt("say('cuda', error=0, devices=1, seconds=1)\nsay('done')\n", gpus=("GPU-a",))
    assert "copies and all-reduce: one GPU" in one.skipped


def test_an_interpreter_that_cannot_be_run_is_said(tmp_path):
    request = DeepRequest(python="/nowhere/python3", gpus=("GPU-a",))
    found = probe(request, {"PATH": "", "CUDA_HOME": str(tmp_path)}, architecture=None)
    assert found.skipped[0].endswith("'/nowhere/python3' cannot be run: No such file or directory")


def test_the_real_script_says_that_there_is_no_cuda_here():
    """On a machine without the driver's library cuInit cannot be found: code 100, no GPU."""
    if any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("this machine has the driver's library")
    request = DeepRequest(python=sys.executable, gpus=("GPU-a",))
    assert probe(request, dict(os.environ), architecture=None).cuda_error == 100


def read(weights, **given):
    request = DeepRequest(python=sys.executable, weights=weights)
    return probe(request, {"PATH": "", "CUDA_HOME": "/nowhere"}, architecture=None, **given)


def test_disk_speed_is_measured_on_the_largest_weights(tmp_path):
    (tmp_path / "small.safetensors").write_bytes(b"x")
    (tmp_path / "large.safetensors").write_bytes(os.urandom(40 << 20))
    found = read(tmp_path)
    assert found.disk_read_gb_per_s > 0
    assert found.disk_path.endswith("large.safetensors")
    assert findings(found) == set()


def test_a_disk_that_does_not_answer_holds_nobody_up(tmp_path):
    """Opening a pipe that nobody writes to waits as a file on a lost server does."""
    os.mkfifo(tmp_path / "model.safetensors")
    found = read(tmp_path, read_limit_s=1.0)
    assert found.disk_error == f"{tmp_path}: no end within 1 s"
    assert found.disk_read_gb_per_s is None


def test_weights_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "gone")
    assert read(tmp_path).disk_error == f"{tmp_path}/model.safetensors: No such file or directory"


@pytest.mark.parametrize(
    ("given", "files", "reasons"),
    [
        ({}, (), ("CUDA, copies and all-reduce: no GPU", "disk speed: no weights on disk yet")),
        (
            {"no_gpus": "the profile needs no GPU", "no_weights": "no profile names the weights"},
            None,
            (
                "CUDA, copies and all-reduce: the profile needs no GPU",
                "disk speed: no profile names the weights",
            ),
        ),
        (
            {},
            ("model.safetensors",),
            ("CUDA, copies and all-reduce: no GPU", "disk speed: the weights are too small to measure with"),
        ),
    ],
)
def test_what_cannot_be_tried_is_said(given, files, reasons, tmp_path):
    for name in files or ():
        (tmp_path / name).write_bytes(b"x")
    request = DeepRequest(python=sys.executable, weights=None if files is None else tmp_path, **given)
    found = probe(request, {"PATH": "", "CUDA_HOME": str(tmp_path)}, architecture=None)
    assert found.skipped == (*reasons, "compilation: no nvcc")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("exit 0", None),
        ("echo \"nvcc fatal : Unsupported gpu architecture 'sm_103'\" >&2; exit 1", "Unsupported gpu"),
    ],
)
def test_compilation(body, error, tmp_path):
    nvcc = tmp_path / "bin/nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(f'#!/bin/sh\ncase "$2" in -arch=sm_103) {body};; *) exit 9;; esac\n')
    nvcc.chmod(0o755)
    environ = {"PATH": "", "CUDA_HOME": str(tmp_path)}
    found = probe(DeepRequest(python=sys.executable), environ, architecture="sm_103")
    assert (error is None) == (found.jit_error is None)
    assert error is None or error in found.jit_error
    assert (found.jit_compile_s is None) == (error is not None)
