"""Faults of a start, by their number in the fault list."""

import os
import signal
import socket
import subprocess
import sys
import time

from tests.supervise.harness import alive, free_port, wait_for

NCCL = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 11.58 GiB. GPU 0 has a total capacity of 139.80 GiB"


def test_fault_04_a_transient_death_while_loading_is_retried(harness):
    once = harness.folder / "died"
    harness.up("--die-at", "load_target", "--die-text", NCCL, "--die-unless", str(once))
    record = harness.reach("ready")
    assert record.restarts_used == 1
    assert record.last_exit.kind == "nccl_failed"
    phases = ["starting", "loading", "backoff", "starting", "loading", "ready"]
    wait_for(lambda: harness.phases() == phases, "the journal")  # written just after the record
    harness.stop()
    assert harness.ended() == 0


def test_fault_05_a_permanent_death_while_loading_is_not_retried(harness):
    harness.up("--die-at", "allocate", "--die-text", "x" * 100, "--die-text", OOM, "--die-code", "-9")
    assert harness.ended() == 78
    assert harness.phases() == ["starting", "loading", "failed"]
    finding = harness.result()["findings"][0]
    assert finding["id"] == "cuda_out_of_memory"
    assert "11.58 GiB" in finding["summary"]
    assert OOM in finding["detail"]
    harness.nothing_left()


def test_fault_05_a_refused_argument_is_permanent_whatever_it_says(harness):
    harness.up("--no-such-option")
    assert harness.ended() == 78
    assert harness.result()["findings"][0]["id"] == "arguments_unknown"


def test_fault_08_a_start_without_progress_fails_and_keeps_the_stacks(harness):
    harness.up(
        "--stuck-at", "load_target", "--stuck-line", "waiting for the other ranks",
        timing={"progress_timeout_s": 0.6, "restarts": 0},
    )  # fmt: skip
    assert harness.ended() == 4
    assert harness.result()["findings"][0]["id"] == "no_progress"
    assert "load_target" in harness.record().reason.text
    stacks = harness.env.instances.log_files("tiny")[0].parent.parent / "stacks.txt"
    assert "waits in" in stacks.read_text()
    harness.nothing_left()


def test_fault_09_a_slow_start_that_moves_is_left_alone(harness):
    harness.up("--slow-lines", "40", "--step-s", "0.05", timing={"progress_timeout_s": 0.8})
    assert harness.reach("ready").restarts_used == 0
    harness.stop()
    assert harness.ended() == 0


def test_the_whole_start_has_a_limit_of_its_own(harness):
    harness.up("--slow-lines", "1000", "--step-s", "0.05", timing={"ready_timeout_s": 1.0, "restarts": 0})
    assert harness.ended() == 4
    assert harness.result()["findings"][0]["id"] == "not_ready"


def test_fault_13_another_model_is_never_ready(harness):
    harness.up("--served-model-name", "other")
    assert harness.ended() == 78
    assert harness.result()["findings"][0]["id"] == "wrong_model"
    assert "ready" not in harness.phases()
    harness.nothing_left()


def test_fault_13_a_server_without_speculation_is_never_ready(harness):
    harness.up("--no-speculation")
    assert harness.ended() == 78
    assert harness.result()["findings"][0]["id"] == "no_speculation"
    assert "ready" not in harness.phases()


def test_a_plan_without_speculation_needs_none(harness):
    harness.up("--no-speculation", speculation=False)
    assert harness.reach("ready").probe.accept_length is None
    harness.stop()
    assert harness.ended() == 0


def test_fault_16_term_while_loading_ends_at_once(harness):
    harness.up("--stuck-at", "allocate")
    wait_for(lambda: harness.phase() == "loading", "loading")
    began = time.monotonic()
    harness.stop()
    assert harness.ended() == 0
    assert time.monotonic() - began < 2
    harness.nothing_left(0.5)


def test_fault_16_interrupt_while_loading_is_130(harness):
    harness.up("--stuck-at", "allocate")
    wait_for(lambda: harness.phase() == "loading", "loading")
    harness.stop(number=signal.SIGINT)
    assert harness.ended() == 130


def test_fault_16_term_in_back_off_ends_at_once(harness):
    harness.up("--die-at", "load_target", "--die-text", NCCL, pace={"backoff_s": (60.0,)})
    wait_for(lambda: harness.phase() == "backoff", "backoff")
    harness.stop()
    assert harness.ended(limit_s=2) == 0
    assert harness.phase() == "stopped"


def test_fault_26_a_taken_port_is_refused_before_the_start_with_its_owner(harness):
    with socket.create_server(("127.0.0.1", harness.port)):
        harness.up()
        assert harness.ended() == 78
        said = harness.result()["findings"][0]
    assert said["id"] == "port_taken"
    assert f"port {harness.port} is taken by pid {os.getpid()} (" in said["summary"]
    assert "loading" not in harness.phases()


def test_fault_27_a_port_taken_during_the_load_is_noticed_then(harness):
    harness.up("--stuck-at", "load_target")
    wait_for(lambda: harness.phase() == "loading", "loading")
    with socket.create_server(("127.0.0.1", harness.port)):
        assert harness.ended() == 78
    assert harness.record().reason.code == "port_taken"
    assert f"pid {os.getpid()}" in harness.record().reason.text
    harness.nothing_left()


def test_fault_27_the_servers_own_bind_error_is_explained(harness):
    other = free_port()
    with socket.create_server(("127.0.0.1", other)):
        plan = harness.plan()
        argv = [str(other) if word == str(harness.port) else word for word in plan.argv]
        harness.start(harness.plan(program=tuple(argv)))
        assert harness.ended() == 78
    assert harness.result()["findings"][0]["id"] == "port_taken"


def test_another_servers_answers_on_the_port_are_not_believed(harness):
    """A foreign server answers like ours, on a wildcard address that our check before the start cannot see as ours."""
    harness.up("--stuck-at", "resolve")
    wait_for(lambda: harness.phase() == "loading", "loading")
    foreign = subprocess.Popen(
        [sys.executable, harness.plan().argv[1], "--port", str(harness.port), "--mark", "foreign"],
        stderr=subprocess.DEVNULL,
    )
    try:
        assert harness.ended() == 78
        assert harness.record().reason.code == "port_taken"
        assert "ready" not in harness.phases()
        assert alive(foreign.pid)
    finally:
        foreign.kill()
        foreign.wait()


def test_fault_46_a_missing_program_is_permanent(harness):
    harness.up(program=("/no/such/python3", "-m", "sglang"))
    assert harness.ended(limit_s=4) == 78
    assert "'/no/such/python3' cannot be started: no such file" in harness.result()["findings"][0]["summary"]


def test_fault_46_a_program_that_is_none_is_permanent(harness):
    broken = harness.folder / "broken"
    broken.write_bytes(b"\x7fELFnot really")
    broken.chmod(0o755)
    harness.up(program=(str(broken),))
    assert harness.ended() == 78
    broken.chmod(0o644)
    harness.up(program=(str(broken),))
    assert harness.ended() == 78
    assert "permission denied" in harness.result()["findings"][0]["summary"]


def test_fault_46_an_engine_that_is_not_installed_is_permanent(harness):
    harness.up(program=(sys.executable, "-S", "-m", "sglang.launch_server", harness.mark))
    assert harness.ended() == 78
    assert harness.result()["findings"][0]["id"] == "engine_missing"
