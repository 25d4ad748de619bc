"""profile diff: two profiles, and a profile against a server's own account."""

from __future__ import annotations

import json

import pytest

from dflashctl.commands.profile_diff import profile_diff, profile_diff_running
from dflashctl.core.engine import Argument
from dflashctl.core.errors import Unavailable
from dflashctl.core.profile_diff import SHOWN, with_running
from dflashctl.env import Env
from dflashctl.ports.web import Reply


class Web:
    def __init__(self, info=None, status=200):
        self.info, self.status, self.asked = info, status, []

    def request(self, method, url, *, body=None, headers=None, timeout_s=10.0):
        self.asked.append((method, url, headers))
        return Reply(status=self.status, body=json.dumps(self.info).encode())


def env(tmp_path, **parts):
    return Env(environ={"HOME": str(tmp_path), **parts.pop("environ", {})}, cwd=tmp_path, **parts)


def changed(report):
    return {d.field: (d.left, d.right) for d in report.data.differences}


def test_two_profiles_differ_where_they_differ(tmp_path):
    report = profile_diff(env(tmp_path), "kimi-k3-b300", "kimi-k3-b300-peak")
    found = changed(report)
    assert found["speculative.block_size"] == ("8", "16")
    assert found["backends.linear_verify"] == ("triton", "nv_cutedsl")
    assert "target.repo" not in found
    assert "summary" not in found


def test_a_profile_does_not_differ_from_itself(tmp_path):
    report = profile_diff(env(tmp_path), "tiny-gpu", "tiny-gpu")
    assert changed(report) == {}
    assert report.data.compared > 30


INFO = {
    "version": "0.5.20", "mem_fraction_static": 0.1, "attention_backend": "flashinfer", "speculative_dflash_block_size": 16,
    "speculative_algorithm": "DFLASH", "enable_metrics": True, "port": 30000, "tp_size": 1, "api_key": "sk-xyzzy",
    "admin_api_key": "xyzzy", "ssl_keyfile": "xyzzy", "model_path": "/x", "served_model_name": "dflash-tiny",
}  # fmt: skip


def test_a_running_server_is_compared_by_its_own_release(tmp_path):
    web = Web(INFO)
    report = profile_diff_running(env(tmp_path, web=web), "tiny-gpu", url="http://127.0.0.1:30000/")
    found = changed(report)
    assert found["attention_backend"] == ("triton", "flashinfer")
    assert "mem_fraction_static" not in found
    assert "speculative_dflash_block_size" not in found
    assert report.data.compared >= 7
    assert web.asked == [("GET", "http://127.0.0.1:30000/server_info", None)]


def test_keys_are_never_shown(tmp_path):
    assert not [name for name in SHOWN if "key" in name or "ssl" in name]
    given = tuple(Argument(flag=f"--{name.replace('_', '-')}", values=("mine",)) for name in INFO)
    assert "xyzzy" not in str(with_running("tiny-gpu", given, INFO))


def test_the_key_for_the_server_goes_into_the_header(tmp_path):
    web = Web(INFO)
    here = env(tmp_path, web=web, environ={"DFLASHCTL_API_KEY": "k"})
    profile_diff_running(here, "tiny-gpu", url="http://127.0.0.1:30000")
    assert web.asked[0][2] == {"Authorization": "Bearer k"}


@pytest.mark.parametrize("web", [Web(status=401), Web(status=0)])
def test_a_server_that_does_not_answer_is_unavailable(tmp_path, web):
    with pytest.raises(Unavailable, match="server_info"):
        profile_diff_running(env(tmp_path, web=web), "tiny-gpu", url="http://127.0.0.1:30000")
