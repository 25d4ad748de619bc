"""`up` with the real reference engine, as a person or a container runs it."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.support.program import INTERRUPT, TERMINATE, Program, answers, free_port, processes_with, wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(tmp_path):
    program = Program(tmp_path)
    yield program
    program.close()


@pytest.fixture
def port():
    return str(free_port())


def gone(port: str):
    wait_for(lambda: not processes_with(f"--port\0{port}\0"), "the end of the server's processes")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", int(port)))


def test_up_serves_in_front_until_term(program, port):
    process = program.start("up", "tiny-cpu", "--port", port)
    wait_for(lambda: program.record("tiny-cpu").get("ready"), "ready")
    question = {
        "model": "dflash-tiny",
        "messages": [
            {"role": "user", "content": "Ana has 12 apples and loses 5 of them. How many apples are left?"}
        ],
        "max_tokens": 100,
        "temperature": 0,
        "return_meta_info": True,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(question).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        choice = json.load(reply)["choices"][0]
    assert choice["message"]["content"].endswith("#### 7")
    assert choice["meta_info"]["spec_accept_length"] > 1
    process.send_signal(TERMINATE)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "stopped" in out
    gone(port)


def test_detached_up_status_second_up_and_down(program, port):
    up = program.json("up", "tiny-cpu", "--port", port, "-d")
    assert up["exit_code"] == 0, up
    assert up["data"]["ready"] is True
    assert {proof["status"] for proof in up["data"]["proofs"]} == {"pass"}
    status = program.json("status")
    assert status["exit_code"] == 0
    again = program.json("up", "tiny-cpu", "--port", port, "-d")
    assert again["exit_code"] == 0
    assert again["data"]["already_up"] is True
    other = program.json("up", "tiny-cpu", "--port", port, "--block-size", "8", "-d")
    assert other["exit_code"] == 75
    assert "another plan" in other["errors"][0]["message"]
    down = program.json("down", "tiny-cpu")
    assert down["exit_code"] == 0, down
    gone(port)
    assert program.json("down", "tiny-cpu")["exit_code"] == 0
    assert program.json("status", "tiny-cpu")["exit_code"] == 3


def test_what_runs_is_what_the_dry_run_printed(program, port):
    plan = program.json("up", "tiny-cpu", "--port", port, "--block-size", "8", "--dry-run")["data"]
    up = program.json("up", "tiny-cpu", "--port", port, "--block-size", "8", "-d")
    assert up["data"]["plan"]["fingerprint"] == plan["fingerprint"]
    (pid,) = processes_with(f"--port\0{port}")
    words = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    assert words == plan["argv"]


def test_status_tells_when_the_profile_has_changed_since(program, port, tmp_path):
    text = (ROOT / "profiles/tiny-cpu.yaml").read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    assert program.json("up", "mine.yaml", "--port", port, "-d")["exit_code"] == 0
    assert program.json("status", "mine")["data"]["drift"] is False
    mine.write_text("# only a comment\n" + text)
    assert program.json("status", "mine")["data"]["drift"] is False
    mine.write_text(text.replace("block_size: 16\n\nserver", "block_size: 8\n\nserver"))
    assert program.json("status", "mine")["data"]["drift"] is True
    mine.unlink()
    assert program.json("status", "mine")["data"]["drift"] is True


def test_an_instance_of_a_profile_file_is_measured_and_compared_like_any_other(program, tmp_path, port):
    """The file lies where no search finds it by name, and has a port of its own."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    mine = folder / "mine-1.5.yaml"
    mine.write_text((ROOT / "profiles/tiny-cpu.yaml").read_text())
    assert program.json("up", str(mine), "--port", port, "-d")["exit_code"] == 0
    measured = program.json("bench", "mine-1.5", "--count", "2", "--no-expect", "-o", "a.json")
    assert (measured["exit_code"], measured["data"]["runs"][0]["errors"]) == (0, 0)
    lossless = program.json("smoke", "mine-1.5", "--only", "lossless", "--against-no-spec")
    assert [proof["status"] for proof in lossless["data"]["proofs"]] == ["pass"]
    sweep = ("--sweep", "block_size=4", "--no-baseline", "--count", "2", "--no-expect", "-o", "b.json")
    swept = program.json("bench", "--profile", str(mine), *sweep)
    assert (swept["exit_code"], swept["data"]["runs"][0]["block_size"]) == (0, 4)
    assert program.json("status", "mine-1.5-bench")["data"]["profile"] == "mine-1.5"
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/named-2.5.yaml").write_text(mine.read_text())
    assert program.json("bench", "--profile", "named-2.5", *sweep)["exit_code"] == 0
    assert program.json("status", "named-2.5-bench")["data"]["profile"] == "named-2.5"
    assert program.json("down", "mine-1.5")["exit_code"] == 0
    assert program.json("status", "mine-1.5")["next_steps"] == [f"dflashctl up {mine} --port {port}"]


def test_two_instances_live_side_by_side(program):
    ports = [str(free_port()) for _ in range(2)]
    for number, port in enumerate(ports):
        assert program.json("up", "tiny-cpu", "--name", f"i{number}", "--port", port, "-d")["exit_code"] == 0
    assert all(answers(f"http://127.0.0.1:{port}/health") == 200 for port in ports)
    assert program.json("smoke", "i0", "--quick")["exit_code"] == 0
    assert program.json("down", "i0")["exit_code"] == 0
    assert answers(f"http://127.0.0.1:{ports[1]}/health") == 200


def test_a_key_in_a_file_guards_the_server_and_opens_it_to_our_proofs(tmp_path, port):
    (tmp_path / "key").write_text("a-secret-key\n")
    (tmp_path / "key").chmod(0o600)
    program = Program(tmp_path, DFLASHCTL_API_KEY_FILE=str(tmp_path / "key"))
    try:
        up = program.json("up", "tiny-cpu", "--port", port, "-d")
        assert {proof["status"] for proof in up["data"]["proofs"]} == {"pass"}
        assert answers(f"http://127.0.0.1:{port}/v1/models") == 401
        measured = program.json("bench", "tiny-cpu", "--count", "3", "--no-expect", "-o", "b.json")
        assert (measured["exit_code"], measured["data"]["runs"][0]["errors"]) == (0, 0)
    finally:
        program.close()


def test_an_empty_key_file_starts_nothing(tmp_path, port):
    (tmp_path / "key").touch(mode=0o600)
    program = Program(tmp_path, DFLASHCTL_API_KEY_FILE=str(tmp_path / "key"))
    try:
        for mode in ([], ["-d"]):
            up = program.json("up", "tiny-cpu", "--port", port, "--host", "0.0.0.0", *mode)
            assert up["exit_code"] == 78
            assert f"{tmp_path / 'key'}' is empty" in up["errors"][0]["message"]
    finally:
        program.close()


def test_without_speculation(program, port):
    up = program.json("up", "tiny-cpu", "--port", port, "--set", "speculative.algorithm=NONE", "-d")
    assert up["exit_code"] == 0
    assert "--speculative-algorithm" not in up["data"]["plan"]["argv"]
    speculates = next(proof for proof in up["data"]["proofs"] if "speculat" in proof["title"])
    assert speculates["status"] == "skipped"


@pytest.mark.parametrize("number", [INTERRUPT, TERMINATE])
@pytest.mark.parametrize("phase", ["fetching", "verifying", "starting", "loading", "ready"])
def test_a_signal_in_each_phase_leaves_nothing(program, port, phase, number):
    process = program.start("up", "tiny-cpu", "--port", port)
    order = ["preflight", "fetching", "verifying", "starting", "loading", "ready"]
    reached = order[order.index(phase) :]
    wait_for(lambda: program.record("tiny-cpu").get("phase") in reached or process.poll() is not None, phase)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode in ((0, 130) if number == INTERRUPT else (0,)), out + err
    assert "Traceback" not in err
    gone(port)


def has_server(program):
    return program.record("tiny-cpu").get("server")


def is_ready(program):
    return program.record("tiny-cpu").get("ready")


@pytest.mark.parametrize("number", [INTERRUPT, TERMINATE, signal.SIGHUP])
@pytest.mark.parametrize("when", [has_server, is_ready])
def test_a_signal_while_up_waits_for_a_detached_server_leaves_it_and_says_so(program, port, when, number):
    """Also in the proofs that follow: a signal is no fault of the server."""
    process = program.start("up", "tiny-cpu", "--port", port, "-d", "--json", start_new_session=True)
    wait_for(lambda: when(program), "the start")
    os.killpg(process.pid, number)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    told = json.loads(out)
    assert (process.returncode, told["outcome"]) == (130, "partial"), out + err
    assert "goes on in the background" in told["errors"][0]["message"]
    assert told["next_steps"][-1] == "dflashctl down tiny-cpu"
    wait_for(lambda: is_ready(program), "ready")
    assert program.run("down", "tiny-cpu").returncode == 0
    gone(port)


def test_a_detached_start_that_is_stopped_by_another_is_not_called_up(program, port):
    process = program.start("up", "tiny-cpu", "--port", port, "-d", "--json")
    wait_for(lambda: program.record("tiny-cpu").get("phase") == "loading", "the start")
    assert program.run("down", "tiny-cpu").returncode == 0
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "was stopped before the start was done" in json.loads(out)["errors"][0]["message"]
    gone(port)


def report_then(process, number):
    """What it says, and `number` again and again from then on until it is gone."""
    said = process.stdout.readline()
    while process.poll() is None:
        process.send_signal(number)
    process.communicate()
    return said


@pytest.mark.parametrize("number", [INTERRUPT, TERMINATE, signal.SIGHUP])
def test_the_other_signal_of_a_stop_that_comes_after_the_report_changes_nothing(program, port, number):
    """A sender may be held up between the two that it sends; once the report is out, the exit code stands."""
    process = program.start("up", "tiny-cpu", "--port", port, "-d", "--json")
    wait_for(lambda: has_server(program), "the start")
    process.send_signal(number)
    said = report_then(process, number)
    assert (process.returncode, json.loads(said)["exit_code"]) == (130, 130)
    assert program.run("down", "tiny-cpu").returncode == 0


@pytest.mark.parametrize("number", [INTERRUPT, TERMINATE])
def test_a_signal_after_an_orderly_stop_changes_nothing(program, port, number):
    process = program.start("up", "tiny-cpu", "--port", port, "--json")
    wait_for(lambda: is_ready(program), "ready")
    process.send_signal(number)
    said = report_then(process, number)
    assert process.returncode == json.loads(said)["exit_code"]
    gone(port)


def test_a_taken_port_names_its_owner(program):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        result = program.json("up", "tiny-cpu", "--port", port)
    assert result["exit_code"] == 78
    assert port in result["errors"][0]["message"]
    assert str(os.getpid()) in json.dumps(result["errors"])
    after = program.json("status", "tiny-cpu")
    assert after["exit_code"] == 3
    assert after["data"]["phase"] == "failed"


def test_a_missing_model_folder(program, tmp_path):
    text = "summary: x\nengine: {name: reference}\ntarget: {path: ./nowhere}\ndraft: {path: builtin:tiny/draft}\n"
    (tmp_path / "mine.yaml").write_text(text)
    result = program.json("up", "mine.yaml")
    assert result["exit_code"] == 78
    assert "nowhere" in result["errors"][0]["message"]


@pytest.mark.parametrize("make", ["file", "open"])
def test_a_state_folder_that_cannot_be_used(tmp_path, make):
    place = tmp_path / "bad"
    if make == "file":
        place.write_text("in the way")
    else:
        place.mkdir()
        place.chmod(0o777)
    program = Program(tmp_path, DFLASHCTL_STATE_DIR=str(place))
    result = program.json("up", "tiny-cpu", "--port", str(free_port()))
    assert result["exit_code"] == 78
    assert str(place) in result["errors"][0]["message"]
    assert result["errors"][0]["hint"]


def test_an_engine_that_is_not_installed(program, tmp_path):
    text = (Path(__file__).resolve().parents[2] / "profiles" / "tiny-gpu.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("gpus: 1", "gpus: 0"))
    result = program.json("up", "mine.yaml")
    assert result["exit_code"] == 78
    assert "SGLang is not installed" in result["errors"][0]["message"]
    assert "tiny-cpu" in result["errors"][0]["hint"]
    assert "pip install" in result["errors"][0]["hint"]


def test_an_interpreter_that_is_not_there(program):
    result = program.json("up", "tiny-gpu", "--python", "/no/such/python", "--dry-run")
    assert result["exit_code"] == 78
    assert "/no/such/python" in result["errors"][0]["message"]
