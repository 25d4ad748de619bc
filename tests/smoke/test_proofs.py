"""Each proof passes on a sound server and fails on a server with the fault that it is there for."""

from __future__ import annotations

import pytest

from dflashctl.core.errors import Unavailable
from dflashctl.core.smoke import ProofFailed, ProofStatus
from dflashctl.edges.clock import SystemClock
from dflashctl.edges.web import HttpWeb
from dflashctl.proofs import PROOFS, abort
from dflashctl.proofs.client import Expected
from dflashctl.proofs.runner import ProofSettings, connect, prove, run_one
from tests.smoke.scripted_server import BLOCK, MODEL, serving

EVERYTHING = {"reasoning_parser": "kimi_k3", "tool_call_parser": "kimi_k3", "grammar_backend": "xgrammar"}
PLANNED = Expected(model=MODEL, speculation=True, block_size=BLOCK)

FAULTS = [
    ("wrong-model", "models", "not 'scripted/model'"),
    ("no-model", "models", "no model"),
    ("gateway", "models", "/v1/models answers with status 502"),
    ("unhealthy", "health", "503"),
    ("chat-500", "chat", "status 500"),
    ("empty", "chat", "empty"),
    ("no-done", "stream", "[DONE]"),
    ("one-event", "stream", "one event"),
    ("stream-drops", "stream", "not the text"),
    ("stream-error", "stream", "out of memory"),
    ("no-usage", "usage", "no usage"),
    ("wrong-total", "usage", "in total"),
    ("overruns", "usage", "max_tokens was 7"),
    ("not-speculating", "speculation", "no algorithm"),
    ("other-block", "speculation", "block size 8, the server runs 16"),
    ("no-counts", "speculation", "does not speculate"),
    ("accept-one", "speculation", "1.00"),
    ("accept-impossible", "speculation", "impossible"),
    ("lossy", "lossless", "differ"),
    ("no-logprobs", "lossless", "differ"),
    ("truncates", "context-overflow", "cut without a word"),
    ("dies-on-overflow", "context-overflow", "not a refusal"),
    ("wrong-answers", "answers", "0 of 6"),
    ("loops", "degenerate", "' and'"),
    ("stop-ignored", "stop-strings", "holds the stop string"),
    ("stops-early", "stop-strings", "right before"),
    ("reasoning-mixed", "reasoning", "no reasoning"),
    ("thinks-when-off", "reasoning", "thinking is off"),
    ("leaks-think", "reasoning", "</think>"),
    ("tool-as-text", "tool-call", "no tool"),
    ("tool-bad-json", "tool-call", "not JSON"),
    ("tool-unknown", "tool-call", "get_stocks"),
    ("schema-ignored", "json-schema", "not JSON"),
    ("schema-cut-in-prose", "json-schema", "not JSON"),
    ("schema-other-member", "json-schema", "not JSON"),
    ("no-grammar", "json-schema", "status 400"),
    ("greedy-only", "sampling", "one and the same text"),
    ("top-p-ignored", "sampling", "only the best token"),
    ("cache-corrupts", "prefix-cache", "wrong from the cache"),
    ("repeat-corrupts", "prefix-cache", "wrong on the repeat, without a prefix hit"),
    ("swaps-answers", "concurrency", "got the answer of"),
    ("batch-kills-acceptance", "concurrency", "at once"),
    ("leaks-slot", "abort", "still runs"),
]
NOTHING_PROVEN = [
    ("schema-blanks", "json-schema", "never closed its object"),
    ("schema-endless-name", "json-schema", "never closed its object"),
    ("never-hits", "prefix-cache", "no prefix hit on the repeat (cached_tokens 0): the same text"),
    ("gauge-stands-still", "abort", "counted 0 running requests before and with the open stream"),
    ("gauge-stands-high", "abort", "counted 16 running requests before and with the open stream"),
]


def outcomes(url: str, **settings: object) -> dict:
    chosen = ProofSettings(**{"expected": PLANNED, "timeout_s": 20.0, **settings})
    return {proof.id: proof for proof in prove(HttpWeb(), SystemClock(), url, chosen)}


def test_a_sound_server_passes_everything():
    with serving(**EVERYTHING) as server:
        found = outcomes(server.url)
    assert {proof.id: proof.why for proof in found.values() if proof.status is not ProofStatus.PASS} == {}
    assert list(found) == [module.ID for module in PROOFS]


@pytest.mark.parametrize(("fault", "proof", "words"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_fault_is_noticed(fault, proof, words, monkeypatch):
    monkeypatch.setattr(abort, "_LIMIT_S", 0.5)
    with serving(fault, **EVERYTHING) as server:
        found = outcomes(server.url, only=(proof,))[proof]
    assert found.status is ProofStatus.FAIL, found
    assert words in found.why


@pytest.mark.parametrize(("oddity", "proof", "words"), NOTHING_PROVEN)
def test_what_proves_nothing_is_skipped_and_says_why(oddity, proof, words, monkeypatch):
    monkeypatch.setattr(abort, "_LIMIT_S", 0.5)
    with serving(oddity, **EVERYTHING) as server:
        found = outcomes(server.url, only=(proof,))[proof]
    assert found.status is ProofStatus.SKIPPED, found
    assert words in found.why


def test_a_text_that_loops_is_stopped_within():
    with serving("loops", **EVERYTHING) as server:
        found = outcomes(server.url, only=("stop-strings",))["stop-strings"]
    assert found.status is ProofStatus.PASS, found
    assert found.why == "stopped at 'and'"


@pytest.mark.parametrize(("fault", "proof"), [("greedy-only", "sampling"), ("loops", "degenerate")])
def test_hints_fit_servers_that_are_no_instance_of_ours(fault, proof):
    with serving(fault, **EVERYTHING) as server:
        why = outcomes(server.url, only=(proof,))[proof].why
    assert why.endswith(")"), "no hint"
    assert [word for word in ("dflashctl logs", "--against-no-spec", "--profile") if word in why] == []


def test_a_count_that_lags_is_waited_for():
    with serving("gauge-lags", **EVERYTHING) as server:
        found = outcomes(server.url, only=("abort",))["abort"]
    assert found.status is ProofStatus.PASS, found
    assert "0, 1 with the stream, 0 after" in found.why


def test_every_proof_has_a_fault_that_it_notices():
    assert {proof for _, proof, _ in FAULTS} == {module.ID for module in PROOFS}


def test_near_ties_are_excused_and_shown():
    with serving("near-tie", **EVERYTHING) as server:
        found = outcomes(server.url, only=("lossless",))["lossless"]
    assert found.status is ProofStatus.PASS
    assert "near ties" in found.why
    assert any("margin 0.100 nats" in line for line in found.evidence)


def test_noise_is_measured_and_excused():
    with serving("noisy", **EVERYTHING) as server:
        found = outcomes(server.url, only=("lossless", "stream", "stop-strings"))
    assert found["lossless"].status is ProofStatus.PASS, found["lossless"]
    assert "noise floor 100%" in found["lossless"].why
    assert found["stream"].status is ProofStatus.PASS


def test_a_confident_divergence_names_the_prompt_and_both_continuations():
    with serving("lossy", **EVERYTHING) as server:
        found = outcomes(server.url, only=("lossless",))["lossless"]
    text = "\n".join(found.evidence)
    assert "problem-0: fault" in text
    assert "margin 3.000 nats" in text
    assert "'result is" in text
    assert "'answer is" in text


def test_what_a_server_does_not_offer_is_skipped_with_the_reason():
    with serving("not-speculating", per_request_speculation=False) as server:
        found = outcomes(server.url, expected=Expected())
    skipped = {proof.id: proof.why for proof in found.values() if proof.status is ProofStatus.SKIPPED}
    assert set(skipped) == {"speculation", "lossless", "reasoning", "tool-call", "json-schema"}
    assert all(skipped.values())


def test_quick_proofs_are_a_part_of_all():
    with serving() as server:
        found = outcomes(server.url, quick=True)
    assert {"models", "chat", "stream", "usage", "speculation", "lossless", "context-overflow"} <= set(found)
    assert "concurrency" not in found


def test_counts_of_old_releases_come_from_the_native_endpoint():
    with serving("native-counts-only") as server:
        found = outcomes(server.url, only=("speculation",))["speculation"]
    assert found.status is ProofStatus.PASS, found
    assert "accept length 6" in found.why


def test_the_key_travels_in_the_header_and_a_refusal_is_named():
    with serving("needs-key") as server:
        assert (
            outcomes(server.url, only=("models",), api_key="sk-secret")["models"].status is ProofStatus.PASS
        )
        with pytest.raises(ProofFailed, match="refuses the API key"):
            outcomes(server.url)


def test_nobody_there_is_told_apart_from_a_failure():
    with serving() as server:
        url = server.url
    with pytest.raises(Unavailable, match="no server answers"):
        outcomes(url)


class _Broken:
    ID, TITLE, QUICK = "broken", "breaks", True

    def applies(self, client):
        return None

    def run(self, client):
        raise KeyError("choices")


def test_a_proof_that_breaks_is_a_bug_and_no_failure_of_the_server():
    bugs = []
    with serving() as server:
        client = connect(HttpWeb(), SystemClock(), server.url, ProofSettings())
        found = run_one(_Broken(), client, bugs.append)
    assert found.status is ProofStatus.BROKEN
    assert "KeyError" in found.why
    assert [type(bug) for bug in bugs] == [KeyError]


def test_a_model_that_reasons_is_compared_with_thinking_on_and_off():
    with serving(**EVERYTHING) as server:
        found = outcomes(server.url, only=("lossless",))["lossless"]
        switches = {str(body.get("chat_template_kwargs")) for body in server.requests}
    assert "24 of 24 texts equal" in found.why
    assert len(switches) == 3
