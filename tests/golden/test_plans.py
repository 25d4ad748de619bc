"""Every shipped profile × every saved machine × a few releases: the whole plan, one word a line, or the refusal.

`pytest tests/golden --update-golden` rewrites the files; the diff is the review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dflashctl.core.engine import EngineBuild
from dflashctl.core.findings import Severity
from dflashctl.core.plan import PlanOptions, make_plan
from dflashctl.core.profile import EngineName
from dflashctl.engines import ENGINES
from dflashctl.env import Env

HERE = Path(__file__).resolve().parent
MACHINES = (
    "8x-b300", "8x-b200", "8x-h200", "2x-h200", "1x-h100-80gb", "2x-4090-pcie", "laptop",
)  # fmt: skip
RELEASES = ("0.5.17", "0.5.19", "0.5.20", "0.5.21", "0.5.23")
PROFILES = ("kimi-k2.5-b200", "kimi-k3-b300", "kimi-k3-b300-peak", "qwen3-8b-h100", "tiny-cpu", "tiny-gpu")


def describe(profile_name: str, machine_name: str, release: str | None) -> str:
    env = Env(cwd=HERE)
    profile = env.profiles.load(profile_name).profile
    machine = env.machine.load(HERE.parent / "topologies" / f"{machine_name}.yaml")
    engine = ENGINES[profile.engine.name.value]
    build = EngineBuild(release=release or "0.0.0", installed=True)
    paths = {"builtin:tiny/target": "/models/tiny/target", "builtin:tiny/draft": "/models/tiny/draft"}
    plan = make_plan(profile, machine, engine, build, PlanOptions(python="python3", model_paths=paths))
    lines = [
        f"# {f.severity.value} {f.id}: {f.summary}" for f in plan.findings if f.severity is not Severity.OK
    ]
    lines += [f"# changed {t.from_} -> {t.to or '(dropped)'}: {t.reason}" for t in plan.translations]
    if plan.refusals:
        return "\n".join([*lines, "REFUSED"]) + "\n"
    lines += [f"gpu {uuid}" for uuid in plan.gpus]
    lines += [f"env {key}={value}" for key, value in plan.env]
    return "\n".join([*lines, *plan.argv]) + "\n"


CASES = [
    (profile, machine, release)
    for profile in PROFILES
    for machine in MACHINES
    for release in ((None,) if profile == "tiny-cpu" else RELEASES)
]


@pytest.mark.parametrize(("profile", "machine", "release"), CASES)
def test_plan(profile, machine, release, request):
    text = describe(profile, machine, release)
    path = HERE / "plans" / profile / f"{machine}@{release or 'reference'}.txt"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


def test_no_golden_file_is_left_over():
    expected = {f"{p}/{m}@{r or 'reference'}.txt" for p, m, r in CASES}
    found = {str(path.relative_to(HERE / "plans")) for path in (HERE / "plans").rglob("*.txt")}
    assert found == expected


def test_the_reference_engine_is_the_only_one_without_releases():
    assert {n.value for n in EngineName} == set(ENGINES)
