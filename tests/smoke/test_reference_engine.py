"""All proofs against the embedded engine, real HTTP, real speculation."""

from __future__ import annotations

import pytest

from dflashctl.core.smoke import ProofStatus
from dflashctl.edges.clock import SystemClock
from dflashctl.edges.web import HttpWeb
from dflashctl.proofs import lossless
from dflashctl.proofs.client import Expected
from dflashctl.proofs.references import OtherServer, SavedRun, record
from dflashctl.proofs.runner import ProofSettings, connect, prove, run_one
from tests.smoke.reference_server import reference_server


@pytest.fixture(scope="module")
def url():
    with reference_server() as running:
        yield running


@pytest.fixture(scope="module")
def plain_url():
    with reference_server(speculation=False) as running:
        yield running


def test_the_reference_engine_passes_every_proof_that_it_offers(url):
    settings = ProofSettings(expected=Expected(speculation=True, block_size=8))
    found = {proof.id: proof for proof in prove(HttpWeb(), SystemClock(), url, settings)}
    failed = {proof.id: proof.why for proof in found.values() if proof.status is ProofStatus.FAIL}
    skipped = {proof.id for proof in found.values() if proof.status is ProofStatus.SKIPPED}
    assert failed == {}
    assert skipped == {"reasoning", "tool-call", "json-schema", "prefix-cache"}
    assert "no prefix hit" in found["prefix-cache"].why  # this engine has no prefix cache
    assert "12 of 12 texts equal" in found["lossless"].why


def test_a_second_server_without_speculation_serves_as_reference(url, plain_url):
    web, clock = HttpWeb(), SystemClock()
    other = connect(web, clock, plain_url, ProofSettings())
    client = connect(web, clock, url, ProofSettings(), reference=OtherServer(client=other))
    proof = run_one(lossless, client)
    assert proof.status is ProofStatus.PASS, proof
    assert "second server" in proof.why


def test_a_saved_run_serves_as_reference(url, plain_url):
    web, clock = HttpWeb(), SystemClock()
    saved = record(connect(web, clock, plain_url, ProofSettings()))
    proof = run_one(lossless, connect(web, clock, url, ProofSettings(), reference=SavedRun(run=saved)))
    assert proof.status is ProofStatus.PASS, proof
    assert "12 of 12" in proof.why


def test_speculation_that_was_promised_but_is_off_is_a_failure(plain_url):
    settings = ProofSettings(expected=Expected(speculation=True), only=("speculation",))
    (proof,) = prove(HttpWeb(), SystemClock(), plain_url, settings)
    assert proof.status is ProofStatus.FAIL
