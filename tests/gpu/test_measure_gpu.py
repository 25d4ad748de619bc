"""smoke and bench on real SGLang with the tiny pair: lossless, the recorded accept length, counts that agree.

DFLASHCTL_TEST_URL names a running server of the pair with DFLASH, DFLASHCTL_TEST_PLAIN_URL one without speculation:

    pytest -m gpu tests/gpu/test_measure_gpu.py -s
"""

from __future__ import annotations

import os

import pytest

from dflashctl.commands.bench import bench
from dflashctl.commands.smoke import smoke
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.smoke import ProofStatus, SmokeOptions
from dflashctl.env import Env

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
RECORDED = {8: 7.330, 16: 13.529}


@pytest.fixture
def url():
    found = os.environ.get("DFLASHCTL_TEST_URL")
    if not found:
        pytest.skip("DFLASHCTL_TEST_URL names no server")
    return found


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


def test_every_proof_passes_and_speculation_is_lossless(env, url):
    plain = os.environ.get("DFLASHCTL_TEST_PLAIN_URL")
    report = smoke(env, SmokeOptions(url=url, against=plain))
    for proof in report.data.proofs:
        print(proof.status.value, proof.id, proof.why, *proof.evidence, sep="\n    ")
    assert [proof.id for proof in report.data.proofs if proof.status is ProofStatus.FAIL] == []
    lossless = next(proof for proof in report.data.proofs if proof.id == "lossless")
    assert lossless.status is (ProofStatus.PASS if plain else ProofStatus.SKIPPED)


def test_the_recorded_accept_length(env, url):
    (run,) = bench(env, BenchOptions(url=url, output="run.json")).data.runs
    accept = run.summary.accept_length
    print(f"block {run.setting.block_size}: {accept.mean:.3f}, pooled {accept.pooled:.3f}")
    assert accept.mean == pytest.approx(RECORDED[run.setting.block_size], rel=0.01)
    assert run.summary.errors == 0
    assert run.cross_check is None or run.cross_check.agrees


@pytest.mark.parametrize("concurrency", [8, 32])
def test_accept_length_does_not_depend_on_the_load(env, url, concurrency):
    (run,) = bench(env, BenchOptions(url=url, concurrency=(concurrency,), output="run.json")).data.runs
    print(f"c{concurrency}: {run.summary.accept_length.mean:.3f}, {run.summary.output_tokens_per_s} tok/s")
    assert run.summary.accept_length.mean == pytest.approx(RECORDED[run.setting.block_size], rel=0.02)
