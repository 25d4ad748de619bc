"""Numbers that raw arguments and extra_args bring in: refused by the profile's own rules, and no judge breaks on one."""

from __future__ import annotations

import json

import pytest

from dflashctl.checks import examine
from dflashctl.commands.doctor_gather import gather
from dflashctl.core.check import CheckOutcome
from dflashctl.core.options import PlanRequest
from dflashctl.edges.sockets import can_bind
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.intent import PARTS
from dflashctl.engines.sglang.rules.ranges import RULES
from dflashctl.env import Env
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import topology

OF_THE_PROFILE = tuple(part.flag for part in PARTS if part.kind in (int, float))
OF_THE_ENGINE = tuple(sorted({rule.consequence.split()[0].rstrip(":") for rule in RULES}))
BAD = ("0", "-5", "99999999999999999999", "9" * 400, "nan", "inf", "1e400", "x", "")
MACHINE = topology("8x-b300")


def facts(home, profile, **options):
    version = None if profile == "tiny-cpu" else "0.5.23"
    request = PlanRequest(profile=profile, engine_version=version, **options)
    env = Env(environ={"HOME": str(home)}, cwd=home, machine=FakeMachine(MACHINE))
    return gather(env, request, MACHINE)


@pytest.mark.parametrize("flag", [*OF_THE_PROFILE, *OF_THE_ENGINE])
def test_no_number_breaks_the_plan_the_fit_or_a_check(flag, tmp_path):
    assert catalogue.catalogue("0.5.23").find(flag), flag
    for value in BAD:
        made = facts(tmp_path, "kimi-k3-b300", raw_args=(f"{flag}={value}",))
        crashed = [r.findings for r in examine(made) if r.outcome is CheckOutcome.CRASHED]
        assert crashed == [], value


@pytest.mark.parametrize("flag", OF_THE_PROFILE)
@pytest.mark.parametrize("value", ["0", "-5"])
def test_what_a_profile_may_not_say_raw_arguments_may_not_either(flag, value, tmp_path):
    for given in (
        {"raw_args": (f"{flag}={value}",)},
        {"sets": (f"extra_args={json.dumps([flag, value])}",)},
    ):
        made = facts(tmp_path, "kimi-k3-b300", **given)
        assert "value_out_of_range" in {finding.id for finding in made.plan.refusals}, given


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--mem-fraction-static", v) for v in ("88", "1", "nan", "inf")] + [("--port", "99999")],
)
def test_upper_ends(flag, value, tmp_path):
    made = facts(tmp_path, "kimi-k3-b300", raw_args=(flag, value))
    assert "value_out_of_range" in {finding.id for finding in made.plan.refusals}


def test_the_reference_engine_s_arguments_are_held_to_the_same(tmp_path):
    made = facts(tmp_path, "tiny-cpu", raw_args=("--port", "99999"))
    assert [finding.id for finding in made.plan.refusals] == ["value_out_of_range"]


def test_a_number_that_is_no_port_cannot_be_bound():
    assert not can_bind("127.0.0.1", 99999)
