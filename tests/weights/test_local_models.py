"""Local folders and shared read-only caches as sources: proven the same way, never written to."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from dflashctl.commands.ensure_weights import ensure_weights
from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import CheckFailed, DflashError, ExitCode, Permanent, Unavailable
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.report import failure
from dflashctl.env import Env
from tests.weights.hub_kit import DRAFT, TARGET, make_draft, make_target

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456789\n"
SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture
def place(tmp_path):
    """A profile with two local folders beside it; no Hub at all."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    make_target(folder / "big")
    make_draft(folder / "draft")
    (folder / "pair.yaml").write_text(
        "summary: local\nengine: {name: sglang}\ntarget: {path: big}\ndraft: {path: draft}\n"
    )
    return folder


def env_of(place, **environ):
    home = place.parent
    merged = {
        "HOME": str(home / "home"),
        "DFLASHCTL_STATE_DIR": str(home / "state"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    return Env(environ={**merged, **environ}, cwd=home)


def start(place, **options):
    env = env_of(place)
    return ensure_weights(env, env.profiles.load("pair"), **options)


def tree(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")}


def test_local_folders_are_proven_locked_and_not_touched(place):
    before = tree(place / "big")
    weights = start(place)
    assert weights.target.folder == str(place / "big")
    lock = json.loads((place / "pair.lock.json").read_text())
    assert all(len(f["sha256"]) == 64 for f in lock["target"]["files"])
    assert tree(place / "big") == before


def test_a_start_needs_no_huggingface_hub_when_all_is_local(place):
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from pathlib import Path; from dflashctl.env import Env; import os\n"
        "from dflashctl.commands.ensure_weights import ensure_weights\n"
        "env = Env(environ=dict(os.environ), cwd=Path(sys.argv[1]))\n"
        "print(ensure_weights(env, env.profiles.load('pair')).target.folder)"
    )
    environ = dict(env_of(place).environ)
    done = subprocess.run(
        [sys.executable, "-c", code, str(place.parent)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(place / "big"), done.stderr


def spoil_pointer(folder):
    (folder / SHARD).write_bytes(POINTER)


def spoil_truncated(folder):
    (folder / SHARD).write_bytes((folder / SHARD).read_bytes()[:-10])


def spoil_header(folder):
    content = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(b"\xff" * 8 + content[8:])


def spoil_missing(folder):
    (folder / SHARD).unlink()


def spoil_dangling(folder):
    (folder / SHARD).unlink()
    (folder / SHARD).symlink_to("nowhere")


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (spoil_pointer, "LFS"),
        (spoil_truncated, "header describes"),
        (spoil_header, "header"),
        (spoil_missing, "lacks"),
        (spoil_dangling, "missing"),
    ],
)
def test_a_bad_local_folder_is_refused_before_any_start(place, spoil, word):
    """A clone without LFS, half a copy, a link to nothing: seen without reading the weights."""
    spoil(place / "big")
    with pytest.raises((CheckFailed, Permanent)) as caught:
        start(place, skip=True)
    assert SHARD in f"{caught.value.message} {caught.value.detail}"
    assert word in f"{caught.value.message} {caught.value.detail}"


@pytest.mark.parametrize(
    "spoil", [spoil_pointer, spoil_truncated, spoil_header, spoil_missing, spoil_dangling]
)
def test_what_changed_after_the_lock_is_found_at_the_next_start(place, spoil):
    start(place)
    spoil(place / "big")
    with pytest.raises(CheckFailed) as caught:
        start(place)
    assert SHARD in caught.value.detail
    assert "never written to" in caught.value.hint


def test_the_same_length_with_another_content_is_found_because_the_file_changed(place):
    start(place)
    path = place / "big" / SHARD
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckFailed, match="wrong content") as refused:
        start(place)
    assert re.search(
        r"if they were changed on purpose: rm (\S+), then dflashctl fetch pair", refused.value.hint
    )
    Path(re.search(r"rm (\S+),", refused.value.hint)[1]).unlink()
    start(place)  # it is what is recorded now


def test_a_change_that_hides_its_time_is_found_by_verify(place):
    start(place)
    path = place / "big" / SHARD
    before = path.stat()
    with path.open("r+b") as stream:
        stream.seek(before.st_size - 1)
        last = stream.read(1)
        stream.seek(before.st_size - 1)
        stream.write(bytes([last[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    start(place)  # the cheap check cannot see it
    report = fetch(env_of(place), FetchOptions(profile="pair", verify=True))
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert SHARD in report.errors[0].message


def test_repair_never_touches_a_local_folder(place):
    start(place)
    spoil_truncated(place / "big")
    before = tree(place / "big")
    report = fetch(env_of(place), FetchOptions(profile="pair", repair=True))
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert tree(place / "big") == before


def test_a_hub_cache_named_as_a_model_folder_is_told(place):
    shutil.rmtree(place / "big")
    (place / "big" / "models--acme--big" / "snapshots" / ("a" * 40)).mkdir(parents=True)
    with pytest.raises(Permanent, match="hub cache") as caught:
        start(place)
    assert f"snapshots/{'a' * 40}" in caught.value.message


def test_a_missing_folder_names_the_profile_the_place_and_the_fix(place):
    shutil.rmtree(place / "draft")
    with pytest.raises(Permanent) as caught:
        start(place)
    assert "draft.path 'draft' of profile 'pair'" in caught.value.message
    assert str(place / "draft") in caught.value.message
    assert "pair.yaml" in caught.value.hint


def test_the_lock_goes_to_the_state_folder_when_the_profiles_folder_is_read_only(place, monkeypatch):
    real = os.replace

    def read_only(source, target):
        if Path(target).parent == place:
            raise PermissionError(13, "Permission denied")
        return real(source, target)

    monkeypatch.setattr(os, "replace", read_only)
    start(place)
    assert not (place / "pair.lock.json").exists()
    assert len(list((place.parent / "state" / "locks").glob("*pair.lock.json"))) == 1
    monkeypatch.undo()
    spoil_missing(place / "big")
    with pytest.raises(CheckFailed):
        start(place)


def test_the_builtin_pair_needs_no_lock(tmp_path):
    env = Env(environ={"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(tmp_path / "state")}, cwd=tmp_path)
    weights = ensure_weights(env, env.profiles.load("tiny-cpu"))
    assert weights.draft.facts.block_size == 16
    assert not list(tmp_path.rglob("*.lock.json"))


@pytest.fixture
def shared(kit):
    """A complete cache that was filled by somebody else and cannot be written."""
    fetch(kit.env(), FetchOptions(profile="pair"))
    kit.lock.unlink()
    shutil.rmtree(kit.folder / "state")
    for path in kit.cache.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    kit.forget_requests()
    yield kit
    for path in kit.cache.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def run(kit, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def test_a_shared_cache_is_proven_from_its_own_names_without_network_and_not_written(shared):
    before = tree(shared.cache)
    report = run(shared, offline=True)
    assert report.exit_code is ExitCode.OK, report.errors
    assert shared.requests() == []
    assert tree(shared.cache) == before
    assert report.data.verified_bytes > 0


def test_a_spoiled_shared_cache_is_not_believed(shared):
    blob = shared.blob(SHARD)
    blob.chmod(0o644)
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)
    report = run(shared, offline=True)
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert SHARD in report.errors[0].message


def test_offline_with_an_empty_cache_says_where_it_looked(kit):
    with pytest.raises(Unavailable) as caught:
        ensure_weights(kit.env(), kit.env().profiles.load("pair"), offline=True)
    assert str(kit.cache) in caught.value.message
    assert TARGET in caught.value.message


def test_a_partial_snapshot_without_lock_is_not_taken_for_whole_offline(kit):
    """Releases of the library up to 1.5 return it as success."""
    fetch(kit.env(), FetchOptions(profile="pair"))
    kit.lock.unlink()
    (kit.snapshot() / SHARD).unlink()
    report = run(kit, offline=True)
    assert report.exit_code in (ExitCode.UNAVAILABLE, ExitCode.PERMANENT)
    assert SHARD in f"{report.errors[0].message} {report.errors[0].detail}"
    assert DRAFT not in report.errors[0].message
