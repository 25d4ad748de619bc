"""Every check against its cases: YAML files beside this one, named after the check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dflashctl.checks import all_checks, examine
from dflashctl.commands.doctor_gather import gather
from dflashctl.core.check import CheckOutcome
from dflashctl.core.deep import DeepFacts, PairCopy
from dflashctl.core.findings import Severity
from dflashctl.core.host import Folder
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from tests.fakes.fake_instances import FakeInstances
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import topology

FOLDER = Path(__file__).parent
CHECKS = {check.ID: check for check in all_checks()}
NEEDS = {
    "gpus",
    "host",
    "software",
    "profile",
    "plan",
    "sglang_plan",
    "fit",
    "tried_cuda",
    "tried_torch",
    "tried_links",
    "tried_disk",
    "tried_jit",
}
BAD = {Severity.WARNING, Severity.ERROR}


@dataclass(frozen=True)
class Case:
    check: str
    name: str
    given: dict
    expect: list


def cases_of(name):
    document = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return [Case(name, case.pop("name"), case, case.pop("expect")) for case in document]


CASES = [case for path in sorted(FOLDER.glob("*.yaml")) for case in cases_of(path.stem)]


def facts_for(given, home):
    """Facts as doctor gathers them, for the saved machine, the profile and the single changes of a case."""
    machine = topology(given["machine"], given.get("change"))
    taken = {
        int(port): (owner.get("pid"), owner.get("name")) for port, owner in given.get("taken", {}).items()
    }
    options = dict(given.get("options", {}))
    request = PlanRequest(
        profile=given.get("profile", ""),
        sets=tuple(options.pop("sets", ())),
        raw_args=tuple(options.pop("raw_args", ())),
        **options,
    )
    elsewhere = [Folder(**folder) for folder in given.get("elsewhere", ())]
    parts = {"machine": FakeMachine(machine, taken=taken, elsewhere=elsewhere)}
    if "running" in given:
        parts["instances"] = FakeInstances(given["profile"], **given["running"])
    env = Env(environ={"HOME": str(home)}, cwd=home, **parts)
    facts = gather(env, request, machine)
    if "deep" not in given:
        return facts
    deep = dict(given["deep"])
    copies = tuple(PairCopy(**copy) for copy in deep.pop("copies", ()))
    return facts.__class__(**{**facts.__dict__, "deep": DeepFacts(copies=copies, **deep)})


@pytest.fixture(scope="module")
def facts_of(tmp_path_factory):
    """Facts by case, made once: two tests look at each."""
    home, made = tmp_path_factory.mktemp("home"), {}

    def get(case):
        key = (case.check, case.name)
        if key not in made:
            made[key] = facts_for(case.given, home)
        return made[key]

    return get


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_case(case, facts_of):
    facts = facts_of(case)
    (result,) = examine(facts, (CHECKS[case.check],))
    assert result.outcome is not CheckOutcome.CRASHED, result.findings[0].detail
    if case.expect == "left out":
        assert result.outcome is CheckOutcome.LEFT_OUT
        return
    assert result.outcome is not CheckOutcome.LEFT_OUT, result.missing
    assert [f.severity.value for f in result.findings] == [want["severity"] for want in case.expect], (
        result.findings
    )
    for finding, want in zip(result.findings, case.expect, strict=True):
        assert want["says"] in finding.summary
        assert want.get("shows", "") in (finding.detail or "")
        assert want.get("fix", "") in (finding.fix or "")


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_has_a_case_it_passes_and_one_it_fails(name):
    assert (FOLDER / f"{name}.yaml").exists(), "a check without cases may say anything"
    expectations = [case.expect for case in cases_of(name) if case.expect != "left out"]
    assert any(not [w for w in want if w["severity"] in {s.value for s in BAD}] for want in expectations)
    assert any(want for want in expectations)


def test_every_file_of_cases_belongs_to_a_check():
    assert {case.check for case in CASES} <= set(CHECKS)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_what_a_check_declares(check):
    assert check.__name__.rsplit(".", 1)[-1] == check.ID
    assert set(check.NEEDS) <= NEEDS
    assert len(check.SOURCE) > 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_every_failure_and_warning_says_what_to_do(case, facts_of):
    for result in examine(facts_of(case)):
        assert result.outcome is not CheckOutcome.CRASHED, result.findings[0].detail
        for finding in result.findings:
            assert finding.summary[-1] not in ".!"
            if finding.severity in BAD:
                assert finding.fix, finding


def test_a_check_that_crashes_is_a_finding_and_the_others_go_on(tmp_path):
    broken = SimpleNamespace(ID="broken", NEEDS=(), SOURCE="a test", check=lambda facts: facts.nonsense)
    facts = facts_for({"machine": "8x-b300", "change": {"gpus[0].compute_mode": "prohibited"}}, tmp_path)
    crashed, other = examine(facts, (broken, CHECKS["compute_mode"]))
    assert crashed.outcome is CheckOutcome.CRASHED
    assert crashed.findings[0].severity is Severity.CRASH
    assert "AttributeError" in crashed.findings[0].detail
    assert other.findings[0].severity is Severity.ERROR
