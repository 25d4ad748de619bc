"""A host or port at which nothing can listen: what is wrong is said, and never that somebody holds it."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.program import Program, free_port

_RIGHTS = "-net_bind_service"
PLAIN_USER = ("setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}") if os.geteuid() == 0 else ()


def low_ports_are_guarded():
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as file:
        return int(file.read()) > 80 and (not PLAIN_USER or shutil.which("setpriv"))


@pytest.mark.parametrize("words", [("up", "--dry-run"), ("up",), ("up", "-d"), ("doctor",)], ids=" ".join)
@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("999.1.1.1", None, "neither an address nor a known name"),
        ("bad host", None, "neither an address nor a known name"),
        ("a..b", None, "neither an address nor a known name"),
        ("8.8.8.8", None, "not an address of this machine"),
        ("2001:db8::1", None, "not an address of this machine"),
        ("127.0.0.1", 80, "may not listen on port 80"),
    ],
)
def test_what_keeps_a_server_from_listening(tmp_path, words, host, port, said):
    if port is not None and not low_ports_are_guarded():
        pytest.skip("every user may listen on low ports here")
    command, *options = words
    program = Program(tmp_path, prefix=PLAIN_USER)
    answer = program.json(command, "tiny-cpu", *options, "--host", host, "--port", str(port or free_port()))
    told = [e["message"] for e in answer["errors"]] + [
        f["summary"] for f in answer["findings"] if f["severity"] == "error"
    ]
    assert answer["exit_code"] == (1 if command == "doctor" else 78), answer
    assert any(said in text for text in told), told
    assert not any("taken" in text for text in told), told


def test_a_plan_for_a_machine_that_is_assumed_is_only_warned(tmp_path):
    answer = Program(tmp_path).json(
        "up", "kimi-k3-b300", "--dry-run", "--engine-version", "0.5.22", "--host", "8.8.8.8"
    )
    found = {f["id"]: f["severity"] for f in answer["findings"]}
    assert found.get("cannot_listen", "warning") == "warning"
