"""The project's image in a real engine: it serves, drains, hands on a crash, and needs no root."""

import io
import json
import subprocess
import tarfile
import time
import urllib.request

import pytest

from tests.docker.conftest import run
from tests.supervise.harness import free_port, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]


@pytest.fixture
def start(image):
    made = []

    def begin(*words, options=()):
        port = free_port()
        done = run(
            "run", "-d", "--network", "host", *options, image, "up", "tiny-cpu", "--port", str(port), *words
        )
        made.append(done.stdout.strip())
        return made[-1], port

    yield begin
    for name in made:
        run("rm", "-f", name, check=False)


FIND_SERVER = (
    "import os\n"
    "words = {int(p): open(f'/proc/{p}/cmdline', 'rb').read().split(b'\\0') for p in os.listdir('/proc') if p.isdigit()}\n"
    "(server,) = [pid for pid, w in words.items() if b'dflashctl.reference' in w]\n"
)


def record(name):
    """The instance's record, from a container that runs or has ended."""
    path = f"{name}:/tmp/dflashctl-state/v1/instances/tiny-cpu/instance.json"
    copied = subprocess.run(["docker", "cp", path, "-"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(copied)) as archive:
        return json.loads(archive.extractfile("instance.json").read())


def state(name):
    return json.loads(run("inspect", name).stdout)[0]["State"]


def reach_ready(name, port):
    def answers():
        assert state(name)["Running"], run("logs", name).stdout + run("logs", name).stderr
        status = run("exec", name, "dflashctl", "status", "--json", check=False).stdout
        return status and json.loads(status)["data"].get("ready")

    wait_for(answers, "ready", 60)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as reply:
        assert json.loads(reply.read())["data"]


def test_the_image_answers_its_entry_point(image):
    assert run("run", "--rm", image, "--version").stdout.startswith("dflashctl ")
    config = json.loads(run("inspect", image).stdout)[0]["Config"]
    assert config["Entrypoint"] == ["dflashctl"]
    assert config["StopSignal"] == "SIGTERM"


@pytest.mark.parametrize("options", [(), ("--init",)], ids=["pid 1", "under --init"])
def test_fault_43_stop_drains_and_exits_0(start, options):
    name, port = start(options=options)
    reach_ready(name, port)
    began = time.monotonic()
    run("stop", "-t", "60", name)
    assert state(name)["ExitCode"] == 0
    assert time.monotonic() - began < 30
    assert record(name)["phase"] == "stopped"


def test_the_servers_crash_gives_its_exit_status(start):
    name, port = start()
    reach_ready(name, port)
    run("exec", name, "python3", "-c", FIND_SERVER + "import signal; os.kill(server, signal.SIGKILL)")
    assert run("wait", name).stdout.strip() == "137"


def test_fault_45_any_user_on_a_read_only_root(start):
    name, port = start(options=("--user", "1000:1000", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"))  # noqa: S108
    reach_ready(name, port)
    assert run("exec", name, "id", "-u").stdout.strip() == "1000"
    run("stop", "-t", "60", name)
    assert state(name)["ExitCode"] == 0


def test_fault_45_a_read_only_root_without_tmp_names_what_it_needs(start):
    name, _ = start(options=("--read-only",))
    assert run("wait", name).stdout.strip() == "78"
    said = run("logs", name)
    assert "/tmp/dflashctl-state" in said.stderr  # noqa: S108
    assert "DFLASHCTL_STATE_DIR" in said.stderr


def test_fault_36_a_container_limit_is_told_by_the_kernels_counter(start):
    name, port = start(options=("--memory", "600m", "--memory-swap", "600m"))
    reach_ready(name, port)
    offer = FIND_SERVER + "open(f'/proc/{server}/oom_score_adj', 'w').write('1000')\n"
    eat = "b = bytearray(900 * 1024 * 1024)\nfor i in range(0, len(b), 4096): b[i] = 1\n"
    run("exec", name, "python3", "-c", offer + eat, check=False)
    assert run("wait", name).stdout.strip() == "137"
    assert record(name)["last_exit"]["kind"] == "oom"
    assert "killed for memory" in record(name)["reason"]["text"]


def test_fault_48_a_manual_stop_stays_a_stop_under_a_restart_policy(start):
    name, port = start(options=("--restart", "unless-stopped"))
    reach_ready(name, port)
    run("stop", "-t", "60", name)
    time.sleep(1)
    assert not state(name)["Running"]
    assert state(name)["ExitCode"] == 0


def test_on_failure_does_not_restart_an_orderly_stop_but_a_crash(start):
    name, port = start(options=("--restart", "on-failure:2"))
    reach_ready(name, port)
    first = state(name)["Pid"]
    run("exec", name, "python3", "-c", FIND_SERVER + "import signal; os.kill(server, signal.SIGKILL)")
    wait_for(lambda: state(name)["Running"] and state(name)["Pid"] not in (0, first), "the restart", 30)
    reach_ready(name, port)
    run("stop", "-t", "60", name)
    assert state(name)["ExitCode"] == 0
