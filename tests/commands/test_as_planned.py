"""A start is compared with its plan by the facts of its log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.commands.as_planned import start_differences
from dflashctl.core.engine import EngineBuild
from dflashctl.core.instance import InstanceRecord, Phase
from dflashctl.core.plan import PlanOptions, make_plan
from dflashctl.engines import ENGINES
from tests.engines.asking import machine, profile

LOGGED = (
    ("draft_attention_backend", "flashinfer"),
    ("block_size", "8"),
    ("draft_window_size", "4096"),
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        profile("kimi-k2.5-b200"),
        machine((10, 0)),
        ENGINES["sglang"],
        EngineBuild(release="0.5.23"),
        PlanOptions(),
    )


def test_a_draft_on_another_backend_is_told(plan):
    (finding,) = start_differences(
        plan, InstanceRecord(name="x", phase=Phase.READY, phase_since_s=0.0, facts=LOGGED)
    )
    assert finding.summary == "draft attention backend: fa4 was planned, flashinfer really runs"


def test_a_start_as_planned_and_one_that_logged_nothing_yet(plan):
    same = (("draft_attention_backend", "fa4"), *LOGGED[1:])
    assert (
        start_differences(plan, InstanceRecord(name="x", phase=Phase.READY, phase_since_s=0.0, facts=same))
        == ()
    )
    assert start_differences(plan, InstanceRecord(name="x", phase=Phase.READY, phase_since_s=0.0)) == ()


def test_without_speculation_there_is_nothing_to_compare(plan):
    assert (
        start_differences(
            replace(plan, draft=None),
            InstanceRecord(name="x", phase=Phase.READY, phase_since_s=0.0, facts=LOGGED),
        )
        == ()
    )
