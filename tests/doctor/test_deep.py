"""--deep: scripts that hang, fail or lack torch, and what is reported of them; no GPU is needed for that."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from dflashctl.edges import deep
from dflashctl.edges.deep import probe

HANG = "\nimport time\ntime.sleep(600)\n"
SAY = "import json, sys\ndef say(step, **v): print(json.dumps({'step': step, **v}), flush=True)\n"


@pytest.fixture
def attempt(tmp_path, monkeypatch):
    """Run `probe` with a script of the test's in place of the real attempt."""

    def run(script, gpus=("GPU-a", "GPU-b"), limit_s=30.0):
        path = tmp_path / "attempt.py"
        path.write_text(SAY + script)
        monkeypatch.setattr(deep, "_SCRIPT", path)
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CUDA_HOME": str(tmp_path)}
        return probe(sys.executable, environ, gpus=gpus, architecture=None, weights=None, limit_s=limit_s)

    return run


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


def test_a_copy_that_hangs_is_named_and_ended(attempt):
    found = attempt(
        "say('cuda', error=0, devices=2, seconds=0.4)\nsay('copying', a=0, b=1)\n" + HANG, limit_s=1.0
    )
    assert [(copy.a, copy.b, copy.right) for copy in found.copies] == [(0, 1, None)]


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
    assert (
        "has no torch"
        in attempt("say('cuda', error=0, devices=2, seconds=1)\nsay('no_torch', text='x')\n").skipped[0]
    )
    one = attempt("say('cuda', error=0, devices=1, seconds=1)\nsay('done')\n", gpus=("GPU-a",))
    assert "copies and all-reduce: one GPU" in one.skipped


def test_a_script_that_dies_at_once_is_said(attempt):
    assert "did not get so far" in attempt("raise SystemExit(1)\n").skipped[0]


def test_the_real_script_says_that_there_is_no_cuda_here(tmp_path):
    """On a machine without the driver's library cuInit cannot be found: code 100, no GPU."""
    if any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("this machine has the driver's library")
    found = probe(sys.executable, dict(os.environ), gpus=("GPU-a",), architecture=None, weights=None)
    assert found.cuda_error == 100


def test_disk_speed_is_measured_on_the_largest_weights(tmp_path):
    (tmp_path / "small.safetensors").write_bytes(b"x")
    (tmp_path / "large.safetensors").write_bytes(os.urandom(40 << 20))
    found = probe(sys.executable, {"PATH": ""}, gpus=(), architecture=None, weights=tmp_path)
    assert found.disk_read_gb_per_s > 0
    assert found.disk_path.endswith("large.safetensors")


def test_what_cannot_be_tried_is_said(tmp_path):
    found = probe(
        sys.executable, {"PATH": "", "CUDA_HOME": str(tmp_path)}, gpus=(), architecture=None, weights=tmp_path
    )
    assert found.skipped == (
        "CUDA, copies and all-reduce: no GPU",
        "disk speed: no weights on disk yet",
        "compilation: no nvcc",
    )


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
    found = probe(sys.executable, environ, gpus=(), architecture="sm_103", weights=None)
    assert (error is None) == (found.jit_error is None)
    assert error is None or error in found.jit_error
    assert (found.jit_compile_s is None) == (error is not None)
