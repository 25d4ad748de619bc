"""`smoke` as a command: which server, which reference, which exit code."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dflashctl.commands.smoke import smoke
from dflashctl.core.errors import ExitCode, NotRunning, ProfileError, Unavailable, UsageProblem
from dflashctl.core.report import envelope
from dflashctl.core.smoke import ProofStatus, SmokeOptions
from dflashctl.env import Env
from dflashctl.proofs import health
from dflashctl.ui.views.smoke import render
from tests.smoke.reference_server import reference_server
from tests.smoke.scripted_server import serving
from tests.support.cli import run


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


PLAIN = {"speculative_algorithm": None, "per_request_speculation": False}
ONLY_LOSSLESS = ("lossless",)


@contextmanager
def files_served(folder):
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_reference_that_is_no_model_server_is_named(env, tmp_path):
    with serving() as server, files_served(tmp_path) as url, pytest.raises(Unavailable) as raised:
        smoke(env, SmokeOptions(url=server.url, against=url, only=ONLY_LOSSLESS))
    assert url in raised.value.message
    assert "404" in raised.value.message


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("wrong-model", UsageProblem, "serves 'other/model', not 'scripted/model'"),
        ("chat-500", Unavailable, "failed: prompt problem-0 was refused with status 500"),
        ("no-model", Unavailable, "lists no model"),
        ("needs-key", Unavailable, "refuses the API key"),
    ],
)
def test_a_bad_reference_is_not_blamed_on_the_server_under_proof(env, fault, error, words):
    with serving() as server, serving(fault, **PLAIN) as other, pytest.raises(error) as raised:
        smoke(env, SmokeOptions(url=server.url, against=other.url, only=ONLY_LOSSLESS))
    assert words in raised.value.message
    assert other.url in raised.value.message


def test_one_place_on_the_disk_is_one_model_whatever_its_names(env):
    place = {"model_path": "/models/this"}
    with serving(**place) as server, serving("wrong-model", **PLAIN, **place) as other:
        report = smoke(env, SmokeOptions(url=server.url, against=other.url, only=ONLY_LOSSLESS))
    assert [proof.status for proof in report.data.proofs] == [ProofStatus.PASS]


def test_a_saved_run_of_another_model_is_refused(env, tmp_path):
    with serving("wrong-model", **PLAIN) as other:
        smoke(env, SmokeOptions(url=other.url, only=("chat",), save_reference="ref.json"))
    with serving() as server, pytest.raises(UsageProblem, match=r"ref\.json serves 'other/model'"):
        smoke(env, SmokeOptions(url=server.url, only=ONLY_LOSSLESS, reference="ref.json"))


def test_nothing_is_called_confident_where_no_margin_is_known(env):
    with serving("no-logprobs") as server:
        report = smoke(env, SmokeOptions(url=server.url, only=ONLY_LOSSLESS))
    (proof,) = report.data.proofs
    assert "margin unknown" in "".join(proof.evidence)
    assert "confident" not in proof.why
    assert "no log-probabilities" in proof.why


@pytest.mark.parametrize(
    ("only", "info"), [(("chat",), {}), ((), PLAIN), (("lossless",), PLAIN)], ids=["chat", "all", "lossless"]
)
def test_no_second_server_is_started_that_nothing_would_ask(env, only, info):
    with serving(**info) as server:
        report = smoke(env, SmokeOptions(url=server.url, profile="tiny-cpu", against_no_spec=True, only=only))
    assert report.data.proofs
    assert env.instances.read("tiny-cpu-no-spec").record is None


@pytest.mark.parametrize("part", ["applies", "run"])
def test_a_broken_proof_is_a_bug_with_a_crash_report_and_hides_no_other(tmp_path, monkeypatch, part):
    def broken(_client):
        raise OverflowError("out of range")

    monkeypatch.setattr(health, part, broken)
    environ = {"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(tmp_path)}
    with serving() as server:
        words = [word for name in ("models", "health", "chat") for word in ("--only", name)]
        found = run("smoke", "--url", server.url, *words, "--json", cwd=tmp_path, environ=environ)
    said = found.json
    assert (found.exit, said["exit_code"], said["outcome"]) == (70, 70, "failed")
    assert [proof["status"] for proof in said["data"]["proofs"]] == ["pass", "broken", "pass"]
    (error,) = said["errors"]
    assert "bug in dflashctl: OverflowError" in error["message"]
    (report,) = tmp_path.glob("crash-*.txt")
    assert str(report) in error["hint"]


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
        ("server: {served_model_name: scripted/model}", None),
        ("server: {served_model_name: another/model}", "another/model"),
        ("server: {port: 30000}", "Qwen/Qwen3-8B"),
        ("extra_args: [--served-model-name, scripted/model]", None),
    ],
)
def test_a_profile_says_which_model_must_be_served(env, tmp_path, text, model):
    (tmp_path / "mine.yaml").write_text(
        "summary: s\nengine: {name: sglang}\ntarget: {repo: Qwen/Qwen3-8B, revision: "
        + "a" * 40
        + "}\nspeculative: {algorithm: NONE}\n"
        f"{text}\n"
    )
    with serving() as server:
        report = smoke(env, SmokeOptions(url=server.url, profile="mine.yaml", only=("models",)))
    (proof,) = report.data.proofs
    assert proof.status is (ProofStatus.PASS if model is None else ProofStatus.FAIL), proof
    assert model is None or f"not {model!r}" in proof.why
