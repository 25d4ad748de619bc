"""fetch: both models planned, fetched, proven and locked, from the fake Hub."""

from __future__ import annotations

import json

import pytest

from dflashctl.commands.ensure_weights import ensure_weights, expected_folders, known_facts
from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import ExitCode
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.model_files import FileStatus
from dflashctl.core.report import envelope
from tests.weights.hub_kit import DRAFT, DRAFT_COMMIT, TARGET, TARGET_COMMIT


def run(kit, **options):
    return fetch(kit.env(), FetchOptions(profile="pair", **options))


def test_a_fetch_brings_proves_and_locks_both_models(kit):
    report = run(kit)
    assert report.errors == ()
    assert report.exit_code is ExitCode.OK
    lock = json.loads(kit.lock.read_text())
    assert (lock["target"]["commit"], lock["draft"]["commit"]) == (TARGET_COMMIT, DRAFT_COMMIT)
    names = [f["path"] for f in lock["target"]["files"]]
    assert "model-00001-of-00003.safetensors" in names
    assert not {"README.md", "pytorch_model.bin", "modeling_big.py"} & set(names)
    assert all(len(f["sha256"]) == 64 for f in lock["target"]["files"] + lock["draft"]["files"])
    for name in names:
        assert (kit.snapshot() / name).read_bytes() == (kit.root() / name).read_bytes()
    assert all(r.status is FileStatus.VERIFIED for m in report.data.models for r in m.files)
    json.dumps(envelope(report))


def test_a_second_fetch_asks_the_hub_nothing_and_reads_no_weights(kit):
    run(kit)
    kit.forget_requests()
    report = run(kit)
    assert report.exit_code is ExitCode.OK
    assert kit.requests() == []
    assert (report.data.transferred_bytes, report.data.verified_bytes) == (0, 0)


def test_a_plan_writes_nothing_and_says_what_is_missing(kit):
    report = run(kit, plan=True)
    assert report.exit_code is ExitCode.OK
    assert not kit.cache.exists()
    plan = report.data.plan
    assert plan.wanted_bytes == sum(m.total_bytes for m in plan.models) > 0
    assert plan.room.free_bytes > 0
    assert dict(plan.models[0].left_out)["pytorch_model.bin"].startswith("pickled")


def test_up_gets_verified_local_folders_and_facts(kit):
    env = kit.env()
    loaded = env.profiles.load("pair")
    assert known_facts(env, loaded) == {}
    weights = ensure_weights(env, loaded)
    assert weights.target.folder == str(kit.snapshot())
    assert weights.draft.folder == str(kit.snapshot(DRAFT, DRAFT_COMMIT))
    assert weights.draft.facts.block_size == 16
    assert weights.draft.facts.target_layer_ids == (1, 4)
    assert dict(weights.environment)["HF_HUB_OFFLINE"] == "1"
    assert known_facts(env, loaded)["target"].num_hidden_layers == 8
    assert expected_folders(env, loaded)[TARGET] == str(kit.snapshot())


def test_offline_says_exactly_what_is_missing(kit):
    run(kit)
    (kit.blob("tokenizer.json")).unlink()
    report = run(kit, offline=True)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert "tokenizer.json: missing" in report.errors[0].detail
    assert "model-00001" not in report.errors[0].detail


@pytest.mark.parametrize("offline", [True, False])
def test_a_complete_fetch_serves_offline(kit, offline):
    run(kit)
    env = kit.env(HF_ENDPOINT="http://127.0.0.1:9")
    assert ensure_weights(env, env.profiles.load("pair"), offline=offline).target.commit == TARGET_COMMIT
