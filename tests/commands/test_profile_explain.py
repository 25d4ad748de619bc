"""profile explain: origins of arguments, what the engine sets, and the matrix."""

from __future__ import annotations

from dflashctl.commands.profile_explain import profile_explain, profile_matrix
from dflashctl.core.errors import ExitCode
from dflashctl.core.explain import Verdict
from dflashctl.core.options import PlanRequest
from dflashctl.core.report import envelope
from dflashctl.engines.sglang.catalogue import releases
from dflashctl.env import Env


def env(tmp_path):
    return Env(environ={"HOME": str(tmp_path)}, cwd=tmp_path)


def ask(profile="kimi-k3-b300", release="0.5.23", **given):
    return PlanRequest(profile=profile, engine_version=release, dry_run=True, **given)


def rows(report):
    return {row.flag: row for row in report.data.rows}


def test_every_argument_says_where_it_comes_from(tmp_path):
    found = rows(
        profile_explain(
            env(tmp_path),
            ask(block_size=16, sets=("memory.static_fraction=0.8",), raw_args=("--log-level", "warning")),
        )
    )
    assert found["--speculative-dflash-block-size"].origin == "--block-size"
    assert found["--mem-fraction-static"].origin == "--set memory.static_fraction=0.8"
    assert found["--attention-backend"].origin == "profile: backends.attention"
    assert found["--log-level"].origin == "after --"
    assert found["--max-running-requests"].value == "48"
    assert not found["--max-running-requests"].in_argv
    assert found["--max-running-requests"].origin == "engine (requests_limited)"
    assert "48" in found["--max-running-requests"].why


def test_a_renamed_argument_says_so(tmp_path):
    report = profile_explain(env(tmp_path), ask("kimi-k2.5-b200", "0.5.11"))
    row = rows(report)["--speculative-dflash-draft-window-size"]
    assert "renamed" in row.why
    assert row.origin == "profile: speculative.draft_window_size"


def test_a_refused_plan_is_still_explained(tmp_path):
    report = profile_explain(env(tmp_path), ask(release="0.5.19"))
    assert report.exit_code == ExitCode.PERMANENT
    assert report.data.refused
    assert "--tp-size" in rows(report)
    assert "0.5.21" in envelope(report)["errors"][0]["hint"]


def test_the_matrix_has_every_sglang_profile_on_every_release(tmp_path):
    matrix = profile_matrix(env(tmp_path)).data
    found = {(c.profile, c.release): c for c in matrix.cells}
    assert matrix.releases == releases()
    assert {profile for profile, _ in found} == {
        "kimi-k2.5-b200",
        "kimi-k3-b300",
        "kimi-k3-b300-peak",
        "qwen3-8b-h100",
        "tiny-gpu",
    }
    k3 = [found["kimi-k3-b300", release].verdict for release in releases()]
    assert k3[:12] == [Verdict.REFUSED] * 12
    assert Verdict.REFUSED not in k3[12:]
    assert found["kimi-k2.5-b200", "0.5.11"].verdict is Verdict.RUNS_CHANGED
    assert found["qwen3-8b-h100", "0.5.23"].verdict is Verdict.RUNS
    assert found["qwen3-8b-h100", "0.5.10"].reasons[0].startswith("SGLang 0.5.10 has no DFLASH")


def test_the_matrix_of_one_profile_keeps_its_options(tmp_path):
    cells = profile_matrix(
        env(tmp_path), ask("tiny-gpu", None, sets=("speculative.draft_window_size=64",))
    ).data.cells
    assert len(cells) == len(releases())
    assert "--speculative-dflash-draft-window-size 64" in cells[2].reasons[0]
