"""How a release may be written, and what is no release."""

from __future__ import annotations

import pytest

from dflashctl.commands.doctor_gather import gather
from dflashctl.commands.planned import planned
from dflashctl.commands.profile_new import profile_new
from dflashctl.core.errors import UsageProblem
from dflashctl.core.machine import Machine
from dflashctl.core.options import PlanRequest
from dflashctl.core.release import release_named
from dflashctl.env import Env


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.5.22", "0.5.22"),
        ("v0.5.22", "0.5.22"),
        (" 0.5.22 ", "0.5.22"),
        ("0.5.22.post1", "0.5.22.post1"),
        ("v0.5.23rc1", "0.5.23rc1"),
        ("0.5.24.dev3+gabc1234", "0.5.24.dev3+gabc1234"),
        ("0.6.0", "0.6.0"),
    ],
)
def test_a_release_is_taken_with_and_without_its_v(text, release):
    assert release_named(text) == release


@pytest.mark.parametrize(
    "text", ["", " ", "v", "abc", "22", "0.5", "0.5.x", "-0.5.22", "vv0.5.22", "0.5.22 0.5.23"]
)
def test_what_is_no_release_is_no_engine_version(text, tmp_path):
    env = Env(environ={"HOME": str(tmp_path)}, cwd=tmp_path)
    for profile in ("qwen3-8b-h100", "tiny-cpu"):
        with pytest.raises(UsageProblem, match="no release"):
            planned(env, PlanRequest(profile=profile, dry_run=True, engine_version=text))
        with pytest.raises(UsageProblem, match="no release"):
            gather(env, PlanRequest(profile=profile, engine_version=text), Machine())
    with pytest.raises(UsageProblem, match="no release"):
        profile_new(env, name="mine", text="sglang serve a/b", engine_version=text, offline=True)


def test_the_plan_is_judged_for_the_release_that_was_meant(tmp_path):
    env = Env(environ={"HOME": str(tmp_path)}, cwd=tmp_path)
    made = planned(env, PlanRequest(profile="qwen3-8b-h100", dry_run=True, engine_version="v0.5.22"))
    assert (made.plan.engine_version, made.plan.refusals) == ("0.5.22", ())
