"""Saved machines: what doctor says of each, alone and for every shipped profile, and that it cries no wolf."""

from __future__ import annotations

import pytest
import yaml

from dflashctl.checks import all_checks
from dflashctl.commands.doctor import DoctorOptions, doctor
from dflashctl.core.findings import Severity
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from tests.support.machines import NAMES, TOPOLOGIES

VERDICTS = yaml.safe_load((TOPOLOGIES / "verdicts.yaml").read_text(encoding="utf-8"))
ALONE = "alone"
PROFILES = (
    ALONE,
    "kimi-k3-b300",
    "kimi-k3-b300-peak",
    "kimi-k2.5-b200",
    "qwen3-8b-h100",
    "tiny-gpu",
    "tiny-cpu",
)
OWN = {check.ID for check in all_checks()} | {"gpu_count"}
HEALTHY = {
    "8x-b300": ("kimi-k3-b300", "kimi-k2.5-b200", "qwen3-8b-h100", "tiny-gpu"),
    "8x-b200": ("kimi-k2.5-b200", "qwen3-8b-h100", "tiny-gpu"),
    "8x-h200": ("qwen3-8b-h100", "tiny-gpu"),
    "2x-h200": ("qwen3-8b-h100", "tiny-gpu"),
    "2x-h200-busy": ("qwen3-8b-h100", "tiny-gpu"),
    "1x-h100-80gb": ("qwen3-8b-h100", "tiny-gpu"),
    "1x-l4": ("tiny-gpu",),
    "2x-4090-pcie": ("tiny-gpu",),
    "laptop": ("tiny-cpu",),
}


def said(machine, profile, home):
    env = Env(environ={"HOME": str(home)}, cwd=TOPOLOGIES)
    name = "" if profile == ALONE else profile
    return doctor(env, DoctorOptions(plan=PlanRequest(profile=name, machine=f"{machine}.yaml")))


def ids(report, severity):
    return sorted({f.id for f in report.findings if f.severity is severity and f.id in OWN})


@pytest.mark.parametrize("machine", NAMES)
@pytest.mark.parametrize("profile", PROFILES)
def test_verdict(machine, profile, tmp_path):
    want = VERDICTS[machine][profile]
    report = said(machine, profile, tmp_path)
    assert ids(report, Severity.ERROR) == want.get("errors", [])
    assert ids(report, Severity.WARNING) == want.get("warnings", [])
    assert int(report.exit_code) == (1 if want["verdict"] == "fail" else 0)
    assert report.data.verdict.startswith("the saved machine")
    assert ("cannot carry" in report.data.verdict) == (want["verdict"] == "fail" and profile != ALONE)


def test_every_machine_and_profile_has_its_verdict():
    assert len(NAMES) >= 15
    assert set(VERDICTS) == set(NAMES)
    assert all(set(by_profile) == set(PROFILES) for by_profile in VERDICTS.values())


@pytest.mark.parametrize(("machine", "profile"), [(m, p) for m, ps in HEALTHY.items() for p in (ALONE, *ps)])
def test_no_false_alarm_on_a_healthy_machine(machine, profile, tmp_path):
    report = said(machine, profile, tmp_path)
    alarms = [f for f in report.findings if f.severity in {Severity.ERROR, Severity.WARNING, Severity.CRASH}]
    assert not alarms


def test_each_trouble_is_seen_by_the_profile_that_suffers_from_it(tmp_path):
    """Every sick machine differs from the healthy one of its kind in at least one verdict."""
    for machine in NAMES:
        kind = "-".join(machine.split("-")[:2])
        if machine != kind and kind in VERDICTS and machine != "2x-h200-busy":
            assert VERDICTS[machine] != VERDICTS[kind], machine
