"""docs/doctor.md: what it shows is what is printed, and it names every check."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from dflashctl.checks import all_checks
from dflashctl.commands.doctor import DoctorOptions, doctor
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from dflashctl.ui.text import show

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
BLOCKS = re.findall(
    r"```console\n\$ dflashctl doctor ([^\n]*--machine[^\n]*)\n(.*?)\n```", TEXT, flags=re.DOTALL
)
TOOK = re.compile(r" in \d+\.\d+ s")


@pytest.mark.parametrize(("words", "shown"), BLOCKS, ids=lambda value: value.split("\n")[0])
def test_the_reports_are_what_is_printed(words, shown, tmp_path):
    profile, _, machine = shlex.split(words)
    env = Env(environ={"HOME": str(tmp_path)}, cwd=ROOT)
    out = io.StringIO()
    show(
        doctor(env, DoctorOptions(plan=PlanRequest(profile=profile, machine=machine))),
        out=out,
        err=io.StringIO(),
    )
    printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    assert TOOK.sub("", printed) == TOOK.sub("", shown)


def test_there_are_reports_and_every_check_is_named():
    assert len(BLOCKS) >= 3
    for check in all_checks():
        assert f"| `{check.ID}` |" in TEXT
        assert check.SOURCE in TEXT
