from __future__ import annotations

import pytest

from tests.support.cli import run


@pytest.mark.parametrize(
    ("host", "environ", "warned"),
    [
        ("127.0.0.1", {}, False),
        ("localhost", {}, False),
        ("0.0.0.0", {}, True),
        ("192.168.1.5", {}, True),
        ("::", {}, True),
        ("0.0.0.0", {"DFLASHCTL_API_KEY": "a-key"}, False),
        ("0.0.0.0", {"DFLASHCTL_API_KEY_FILE": "/run/key"}, False),
    ],
)
def test_a_server_that_others_can_use_is_a_warning(host, environ, warned):
    plan = run("up", "tiny-cpu", "--host", host, "--dry-run", "--json", environ=environ).json
    found = [finding for finding in plan["findings"] if finding["id"] == "open_to_network"]
    assert bool(found) is warned
    assert "a-key" not in str(plan)


@pytest.mark.parametrize(
    ("raw", "warned"),
    [
        (("--api-key", "a-key"), False),
        (("--api-key=a-key",), False),
        (("--api-k", "a-key"), False),
        (("--admin-api-key", "a-key"), True),
        (("--page-size", "64"), True),
    ],
)
def test_a_key_among_the_arguments_is_a_key(raw, warned):
    words = ("up", "qwen3-8b-h100", "--host", "0.0.0.0", "--dry-run", "--engine-version", "0.5.22", "--json")
    plan = run(*words, "--", *raw).json
    found = {finding["id"] for finding in plan["findings"]}
    assert ("open_to_network" in found) is warned
    assert ("key_in_arguments" in found) is (raw[0] != "--page-size")
