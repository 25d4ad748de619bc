"""Which instance is meant when none is named and none runs."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from dflashctl.commands.diagnose import diagnose
from dflashctl.commands.down import down
from dflashctl.commands.logs import logs
from dflashctl.core.errors import UsageProblem
from dflashctl.core.instance import Phase
from dflashctl.env import Env
from dflashctl.ui.text import show


@pytest.fixture
def env(tmp_path):
    return Env(environ={"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(tmp_path / "s")}, cwd=tmp_path)


def left(env, name, at_s, phase=Phase.STOPPED):
    with env.instances.own(name) as owned:
        owned.record(replace(owned.current, phase=phase, phase_since_s=at_s))
        owned.log_path.write_text(f"a line of {name}\n")


def said(report):
    out, err = io.StringIO(), io.StringIO()
    show(report, out=out, err=err)
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize("last", ["a", "b", "c"])
def test_the_one_that_ended_last_is_explained_and_shown_by_name(env, last):
    for name in "abc":
        left(env, name, 200.0 if name == last else 100.0, Phase.STOPPED if name < "c" else Phase.FAILED)
    told = logs(env)
    assert (told.exit_code, told.data.name, [line.text for line in told.data.lines]) == (
        3,
        last,
        [f"a line of {last}"],
    )
    assert f"{last!r} ended last" in said(told)
    explained = diagnose(env)
    assert explained.data.source == last
    assert f"{last!r} ended last" in said(explained)
    assert "ended last" not in said(logs(env, "a"))
    assert "ended last" not in said(diagnose(env, "a"))


def test_the_only_one_needs_no_word(env):
    left(env, "a", 100.0)
    assert logs(env).findings == diagnose(env).findings == ()


def test_down_of_several_that_are_over_is_done_already(env):
    for name in "ab":
        left(env, name, 100.0)
    report = down(env)
    assert (report.exit_code, report.data.name, report.data.already_stopped) == (0, None, True)


def test_down_puts_in_order_what_ended_without_a_goodbye(env):
    left(env, "a", 100.0, Phase.READY)
    left(env, "b", 200.0)
    report = down(env)
    assert (report.exit_code, report.data.name) == (0, "a")
    assert env.instances.read("a").record.phase is Phase.STOPPED


@pytest.mark.parametrize("command", [down, logs, diagnose])
def test_of_several_that_run_one_must_be_named(env, command):
    with env.instances.own("a"), env.instances.own("b"), pytest.raises(UsageProblem, match="run: a, b"):
        command(env)
