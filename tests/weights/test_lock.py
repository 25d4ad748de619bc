"""The lock and the options: each plan is held to its own entry, and no advice leads in a circle."""

from __future__ import annotations

import json
import shlex

import pytest

from dflashctl.commands.ensure_weights import ensure_weights, expected_folders
from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode, Permanent, StateError
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.options import overrides
from dflashctl.core.report import failure
from dflashctl.edges.weight_store import FileWeightStore
from tests.weights.hub_kit import TARGET, TARGET_COMMIT

OTHER = "c" * 40


@pytest.fixture
def two(kit):
    """Two commits of the target."""
    kit.control["repos"][TARGET]["commits"] = {"main": TARGET_COMMIT, "dev": OTHER}
    kit.save()
    return kit


def run(kit, *sets, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", overrides=overrides(sets), **options))
    except DflashError as error:
        return failure("fetch", error)


def start(kit, *sets):
    env = kit.env()
    loaded = env.profiles.load("pair", overrides(sets))
    weights = ensure_weights(env, loaded)
    assert expected_folders(env, loaded)[TARGET] == weights.target.folder
    return weights.target.commit


def follow(kit, hint):
    """Do what the hint says."""
    words = shlex.split(hint)
    assert words[:3] == ["dflashctl", "fetch", "pair"]
    assert words[3::2] == ["--set"] * len(words[3::2])
    return run(kit, *words[4::2])


def locked_commits(kit):
    lock = json.loads(kit.lock.read_text())
    own = lock["target"]["commit"] if "target" in lock else None
    return own, [e["commit"] for e in lock.get("others", ())]


@pytest.mark.parametrize(
    "sets",
    [
        (f"target.revision={OTHER}",),
        (f"target.revision={OTHER}", "memory.context_length=4096"),
        (f"target.revision={OTHER}", "summary=two words; $(and) 'more'"),
    ],
)
def test_a_start_with_options_that_the_lock_does_not_know_gets_advice_that_helps(two, sets):
    assert run(two).exit_code is ExitCode.OK
    with pytest.raises(Permanent, match="does not fit these options") as refused:
        start(two, *sets)
    assert follow(two, refused.value.hint).exit_code is ExitCode.OK
    assert start(two, *sets) == OTHER
    assert start(two) == TARGET_COMMIT
    assert locked_commits(two) == (TARGET_COMMIT, [OTHER])


def test_a_fetch_with_options_first_leaves_the_profile_itself_free(two):
    assert run(two, f"target.revision={OTHER}").exit_code is ExitCode.OK
    assert locked_commits(two) == (None, [OTHER])
    assert start(two) == TARGET_COMMIT
    assert start(two, f"target.revision={OTHER}") == OTHER
    two.forget_requests()
    assert run(two).exit_code is ExitCode.OK
    assert two.requests() == []


def test_a_profile_that_itself_moves_to_what_an_option_brought_needs_no_fetch(two):
    run(two)
    run(two, f"target.revision={OTHER}")
    two.write_profile(target={"repo": TARGET, "revision": OTHER})
    assert start(two) == OTHER
    assert locked_commits(two) == (OTHER, [])


@pytest.mark.parametrize("by", ["option", "profile"])
def test_verify_against_a_lock_of_another_commit_says_so_and_writes_nothing(two, by):
    run(two)
    before = two.lock.read_bytes()
    sets = (f"target.revision={OTHER}",) if by == "option" else ()
    if by == "profile":
        two.write_profile(target={"repo": TARGET, "revision": OTHER})
    report = run(two, *sets, verify=True)
    assert report.exit_code is ExitCode.PERMANENT
    assert OTHER in report.errors[0].message
    assert two.lock.read_bytes() == before
    assert not two.snapshot(commit=OTHER).exists()
    assert follow(two, report.errors[0].hint).exit_code is ExitCode.OK
    assert run(two, *sets, verify=True).exit_code is ExitCode.OK


@pytest.mark.parametrize("there", ["nothing", "without lock", "a file is gone"])
def test_verify_writes_neither_lock_nor_weights(kit, there):
    if there != "nothing":
        run(kit)
    if there == "without lock":
        kit.lock.unlink()
    elif there == "a file is gone":
        (kit.snapshot() / "tokenizer.json").unlink()
    before = {p: p.lstat().st_mtime_ns for p in kit.folder.glob("profiles/*")}
    report = run(kit, verify=True)
    assert {p: p.lstat().st_mtime_ns for p in kit.folder.glob("profiles/*")} == before
    if there == "without lock":
        assert report.exit_code is ExitCode.OK
        return
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert "missing" in report.errors[0].message
    assert report.errors[0].hint == "dflashctl fetch pair"
    assert kit.cache.exists() is (there != "nothing")
    assert not (kit.snapshot() / "tokenizer.json").exists()


SHARD = "model-00001-of-00003.safetensors"
INDEX = "model.safetensors.index.json"


def drop(kit, *paths, role="target"):
    """Gone from the lock and from the disk, as after a bad merge and a clean-up."""
    lock = json.loads(kit.lock.read_text())
    lock[role]["files"] = [f for f in lock[role]["files"] if f["path"] not in paths]
    kit.lock.write_text(json.dumps(lock))
    for path in paths if role == "target" else ():
        (kit.snapshot() / path).unlink()


@pytest.mark.parametrize(
    ("role", "paths", "words"),
    [
        ("target", [SHARD], [SHARD, "lacks 1 "]),
        ("target", [SHARD, INDEX], [SHARD, "lacks 1 "]),
        ("target", [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)], [SHARD, "lacks 3 "]),
        ("draft", ["model.safetensors"], ["no weights"]),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"verify": True}, {"plan": True}, {"offline": True}, {"repair": True}], ids=str
)
def test_a_shard_that_lock_and_disk_both_lack_is_missed(kit, role, paths, words, options):
    run(kit)
    drop(kit, *paths, role=role)
    report = run(kit, **options)
    assert report.exit_code is ExitCode.PERMANENT
    assert [w for w in words if w not in report.errors[0].message] == []
    kit.lock.unlink()
    assert run(kit).exit_code is ExitCode.OK


def test_a_shard_that_the_profile_ignores_is_not_missed(kit):
    kit.write_profile(target={"repo": TARGET, "revision": TARGET_COMMIT, "ignore_patterns": ["model-00001*"]})
    assert run(kit).exit_code is ExitCode.OK
    assert run(kit, verify=True).exit_code is ExitCode.OK


@pytest.mark.parametrize("way", ["the folder", "its locks"])
@pytest.mark.parametrize("shipped", [True, False])
def test_a_file_in_the_way_of_the_state_folder_is_no_damaged_lock(tmp_path, way, shipped):
    state = tmp_path / "state"
    blocked = state
    if way == "its locks":
        state.mkdir(mode=0o700)
        blocked = state / "locks"
    blocked.write_text("in the way")
    store = FileWeightStore(environ={"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(state)})
    with pytest.raises(StateError) as caught:
        store.find_lock(tmp_path / "profile.yaml", shipped=shipped)
    assert caught.value.message == f"state folder '{blocked}' is a link or no folder"
    assert "DFLASHCTL_STATE_DIR" in caught.value.hint
