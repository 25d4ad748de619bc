"""`smoke` as a command: which server, which reference, which exit code."""

from __future__ import annotations

import json

import pytest

from dflashctl.commands.smoke import smoke
from dflashctl.core.errors import ExitCode, NotRunning, ProfileError, Unavailable, UsageProblem
from dflashctl.core.report import envelope
from dflashctl.core.smoke import ProofStatus, SmokeOptions
from dflashctl.env import Env
from dflashctl.ui.views.smoke import render
from tests.smoke.reference_server import reference_server
from tests.smoke.scripted_server import serving


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


def test_a_failed_proof_makes_the_exit_code_1_and_a_finding(env):
    with serving("accept-one") as server:
        report = smoke(env, SmokeOptions(url=server.url, only=("chat", "speculation")))
    assert report.exit_code is ExitCode.CHECK_FAILED
    (finding,) = report.findings
    assert finding.id == "smoke.speculation"
    whole = envelope(report)
    assert (whole["exit_code"], whole["outcome"]) == (1, "failed")
    assert [proof["status"] for proof in whole["data"]["proofs"]] == ["pass", "fail"]
    assert render(report)


def test_all_well_is_exit_0(env):
    with serving() as server:
        report = smoke(env, SmokeOptions(url=f"{server.url}/v1", quick=True))
    assert report.exit_code is ExitCode.OK
    assert report.next_steps[0].startswith("dflashctl bench --url")


def test_a_reference_run_is_saved_and_used(env, tmp_path):
    with serving() as server:
        saved = smoke(env, SmokeOptions(url=server.url, only=("chat",), save_reference="ref.json"))
    assert saved.data.saved_reference == "ref.json"
    assert json.loads((tmp_path / "ref.json").read_text())["kind"] == "dflashctl reference run"
    with serving("lossy", per_request_speculation=False) as server:
        report = smoke(env, SmokeOptions(url=server.url, only=("lossless",), reference="ref.json"))
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert "with speculation:" in report.findings[0].detail


def test_a_server_that_speculates_is_no_reference(env):
    with serving(per_request_speculation=False) as server:
        with pytest.raises(UsageProblem, match="no reference"):
            smoke(env, SmokeOptions(url=server.url, only=("chat",), save_reference="ref.json"))
        with pytest.raises(UsageProblem, match="speculates"):
            smoke(env, SmokeOptions(url=server.url, against=server.url))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (SmokeOptions(name="tiny-cpu"), NotRunning, "not running"),
        (SmokeOptions(), NotRunning, "no instance"),
        (SmokeOptions(url="http://127.0.0.1:1"), Unavailable, "no server answers"),
        (SmokeOptions(url="http://127.0.0.1:1", only=("chatt",)), UsageProblem, "'chatt'"),
        (SmokeOptions(url="ftp://x"), UsageProblem, "not an http address"),
        (SmokeOptions(url="http://u:p@127.0.0.1:1"), UsageProblem, "password"),
        (SmokeOptions(name="a", url="http://127.0.0.1:1"), UsageProblem, "both"),
        (
            SmokeOptions(url="http://127.0.0.1:1", against="http://x", against_no_spec=True),
            UsageProblem,
            "exclude",
        ),
        (SmokeOptions(url="http://127.0.0.1:1", api_key_env="NO_KEY"), UsageProblem, "NO_KEY"),
        (SmokeOptions(url="http://127.0.0.1:1", reference="none.json"), UsageProblem, "none.json"),
        (SmokeOptions(url="http://127.0.0.1:1", against_no_spec=True), UsageProblem, "needs a profile"),
        (SmokeOptions(url="http://127.0.0.1:1", profile="tiny-cpuu"), ProfileError, "tiny-cpuu"),
        (SmokeOptions(profile="tiny-cpuu"), ProfileError, "tiny-cpuu"),
        *(
            (SmokeOptions(url="http://127.0.0.1:1", timeout_s=limit), UsageProblem, "--timeout")
            for limit in (0, -1, 86401, 1e10, float("inf"), float("nan"))
        ),
    ],
)
def test_what_cannot_be_proved_is_refused(env, options, error, words):
    with pytest.raises(error, match=words):
        smoke(env, options)


@pytest.mark.timeout(180)
def test_against_no_spec_starts_and_stops_a_second_server(env):
    with reference_server() as url:
        report = smoke(
            env, SmokeOptions(url=url, profile="tiny-cpu", against_no_spec=True, only=("lossless",))
        )
    (proof,) = report.data.proofs
    assert proof.status is ProofStatus.PASS, proof
    assert "the server without speculation" in proof.why
    assert env.instances.read("tiny-cpu-no-spec").supervised is False


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("served_model_name: scripted/model", None),
        ("served_model_name: another/model", "another/model"),
        ("port: 30000", "Qwen/Qwen3-8B"),
    ],
)
def test_a_profile_says_which_model_must_be_served(env, tmp_path, text, model):
    (tmp_path / "mine.yaml").write_text(
        "summary: s\nengine: {name: sglang}\ntarget: {repo: Qwen/Qwen3-8B, revision: "
        + "a" * 40
        + "}\nspeculative: {algorithm: NONE}\n"
        f"server: {{{text}}}\n"
    )
    with serving() as server:
        report = smoke(env, SmokeOptions(url=server.url, profile="mine.yaml", only=("models",)))
    (proof,) = report.data.proofs
    assert proof.status is (ProofStatus.PASS if model is None else ProofStatus.FAIL), proof
    assert model is None or f"not {model!r}" in proof.why
