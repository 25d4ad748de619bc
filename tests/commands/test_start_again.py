"""The command that starts an instance again means the same server, and a name of nothing is told as one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dflashctl.commands.drift import remember
from dflashctl.commands.live_server import live_server
from dflashctl.commands.planned import planned
from dflashctl.commands.status import status
from dflashctl.core.errors import NotRunning
from dflashctl.core.instance import Phase
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from tests.support.cli import run

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = [
    {},
    {"name": "two"},
    {"name": "nospec", "port": 42303, "sets": ("speculative.algorithm=NONE",)},
    {"block_size": 8, "host": "127.0.0.2", "skip_doctor": True},
    {"port": 42304, "raw_args": ("--log-level", "warning", "--served-model-name", "it's")},
]


def env_of(folder):
    return Env(environ={"HOME": str(folder), "DFLASHCTL_STATE_DIR": str(folder / "s")}, cwd=folder)


def stopped(env, request):
    """An instance as a start of `request` leaves it when it is over; its plan."""
    made = planned(env, request)
    with env.instances.own(made.plan.name) as owned:
        remember(env, request, made, owned)
        owned.enter(Phase.STOPPED, "stopped")
    return made.plan


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
@pytest.mark.parametrize("own_file", [False, True])
def test_a_stopped_instance_is_started_again_as_it_was(tmp_path, asked, own_file):
    profile = "tiny-cpu"
    if own_file:
        (tmp_path / "mine.yaml").write_text((ROOT / "profiles/tiny-cpu.yaml").read_text())
        profile = "./mine.yaml"
    env = env_of(tmp_path)
    plan = stopped(env, PlanRequest(profile=profile, **asked))
    (step,) = status(env, plan.name).next_steps
    with pytest.raises(NotRunning) as caught:
        live_server(env, plan.name, None)
    assert "--detach" in shlex.split(caught.value.hint)
    for line in (step, caught.value.hint):
        program, *words = shlex.split(line)
        assert program == "dflashctl"
        again = run(words[0], "--dry-run", "--json", *words[1:], cwd=tmp_path, environ=env.environ).json
        assert again["exit_code"] == 0, again
        assert (again["data"]["name"], again["data"]["fingerprint"]) == (plan.name, plan.fingerprint)


def test_a_name_of_nothing_is_told_as_one(tmp_path):
    env = env_of(tmp_path)
    with pytest.raises(NotRunning, match="no instance and no profile 'nobody'"):
        live_server(env, "nobody", None)
    assert [f.id for f in status(env, "nobody").findings] == ["unknown_name"]
    with pytest.raises(NotRunning, match="'tiny-cpu' is not running") as caught:
        live_server(env, "tiny-cpu", None)
    assert caught.value.hint == "dflashctl up --detach tiny-cpu"
    assert status(env, "tiny-cpu").next_steps == ("dflashctl up tiny-cpu",)
    assert status(env, "tiny-cpu").findings == ()
