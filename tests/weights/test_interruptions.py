"""Fetches that are killed, interrupted or doubled: the next one ends right and reads again only what it must."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dflashctl.edges.hub_cache import partial_files, stored_bytes
from tests.weights.hub_kit import TARGET, TARGET_COMMIT, ended, make_target, spawn

MIB = 1 << 20
ROUNDS = 20


@pytest.fixture
def big(kit):
    """Four shards of 6 MiB, served at 24 MB/s: about a second to fetch."""
    root = kit.folder / "repos" / "large"
    make_target(root, shards=4, side=49152)
    kit.control["repos"][TARGET]["root"] = str(root)
    kit.control["rate_bytes_per_s"] = 8e6
    kit.save()
    return kit


def partial_sizes(cache):
    """Bytes of each partial file; one that was finished since it was listed is none any more."""
    sizes = {}
    for path in partial_files(cache, TARGET):
        with contextlib.suppress(FileNotFoundError):
            sizes[path] = path.stat().st_size
    return sizes


def wait_until(condition, limit_s=60):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "the awaited state did not come"
        time.sleep(0.01)


def children(pid):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def gone(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def assert_whole(kit, answer):
    assert answer["outcome"] == "ok", answer["errors"]
    for path in kit.root().glob("*.safetensors"):
        assert (kit.snapshot() / path.name).read_bytes() == path.read_bytes()
    assert partial_files(kit.cache, TARGET) == ()


def finished_blobs(kit):
    folder = kit.cache / f"models--{TARGET.replace('/', '--')}" / "blobs"
    return (
        {p.name for p in folder.iterdir() if not p.name.endswith(".incomplete")} if folder.is_dir() else set()
    )


def sent_for_weights(kit):
    return sum(r["sent"] for r in kit.requests("GET", "/resolve/") if r["path"].endswith(".safetensors"))


@pytest.mark.timeout(600)
def test_twenty_kills_at_random_moments_all_end_right_on_the_next_run(big):
    """Rounds restart from nothing when the last one got through, so that each kill meets a transfer."""
    dice = random.Random(20)  # noqa: S311 - repeatable on purpose
    for _ in range(ROUNDS):
        process = spawn(big)
        wait_until(lambda p=process: stored_bytes(big.cache, TARGET) > 0 or p.poll() is not None)
        time.sleep(dice.uniform(0.0, 1.6))
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda w=workers: all(gone(pid) for pid in w), 5)
        wait_until(big.idle)
        kept = finished_blobs(big)
        useful = [size >= 4 * MIB for size in partial_sizes(big.cache).values()]
        big.forget_requests()
        assert_whole(big, ended(spawn(big)))
        again = [
            r for r in big.requests("GET", "/resolve/") if r["path"].endswith(".safetensors") and r["sent"]
        ]
        fetched = {(big.snapshot() / r["path"].rsplit("/", 1)[-1]).resolve().name for r in again}
        assert fetched & kept == set(), "a finished file was fetched again"
        missing = sum(
            big.blob(p.name).stat().st_size
            for p in big.root().glob("*.safetensors")
            if big.blob(p.name).name in fetched
        )
        assert sum(r["sent"] for r in again) <= missing
        if any(useful):
            assert sum(r["sent"] for r in again) < missing, "nothing of the partial files was used"
        shutil.rmtree(big.cache)
        big.lock.unlink()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_the_child_is_gone_within_two_seconds_whatever_it_does(big, signal_number):
    """Also in a stalled transfer, where the library itself takes half a minute to hear Ctrl-C."""
    big.fault("stall", "model-00002", after=1000, method="GET", times=None)
    process = spawn(big)
    wait_until(lambda: stored_bytes(big.cache, TARGET) > 0)
    workers = children(process.pid)
    assert workers
    began = time.monotonic()
    process.send_signal(signal_number)
    process.wait(timeout=2)
    wait_until(lambda: all(gone(pid) for pid in workers), 2)
    assert time.monotonic() - began < 2
    process.stdout.close()
    process.stderr.close()


def test_two_fetches_at_once_share_one_transfer(big):
    first, second = spawn(big), spawn(big)
    assert_whole(big, ended(first))
    assert_whole(big, ended(second))
    total = sum(p.stat().st_size for p in big.root().glob("*.safetensors"))
    draft = sum(p.stat().st_size for p in big.root("acme/big-DFlash").glob("*.safetensors"))
    assert sent_for_weights(big) == total + draft


def test_a_partial_file_is_continued_by_range_and_proven(big):
    process = spawn(big)
    wait_until(lambda: any(size >= 5 * MIB for size in partial_sizes(big.cache).values()))
    process.kill()
    process.communicate()
    wait_until(big.idle)
    big.forget_requests()
    assert_whole(big, ended(spawn(big)))
    ranges = [r["range"] for r in big.requests("GET") if r["range"]]
    assert ranges
    assert all(int(r.removeprefix("bytes=").rstrip("-")) >= 4 * MIB for r in ranges)


def test_a_spoiled_partial_file_costs_one_more_transfer_and_no_wrong_byte(big):
    process = spawn(big)
    wait_until(lambda: any(size >= 5 * MIB for size in partial_sizes(big.cache).values()))
    process.kill()
    process.communicate()
    wait_until(big.idle)
    sizes = partial_sizes(big.cache)
    spoiled = max(sizes, key=sizes.__getitem__)
    with spoiled.open("r+b") as stream:
        stream.seek(MIB)
        stream.write(os.urandom(64))
    answer = ended(spawn(big))
    assert_whole(big, answer)
    assert len(answer["data"]["set_aside"]) == 1


def test_orphans_of_other_files_are_removed_and_held_ones_are_not(kit):
    blobs = kit.cache / f"models--{TARGET.replace('/', '--')}" / "blobs"
    blobs.mkdir(parents=True)
    dead, held = blobs / f"{'1' * 64}.0000aaaa.incomplete", blobs / f"{'2' * 64}.0000bbbb.incomplete"
    dead.write_bytes(b"x" * 1000)
    held.write_bytes(b"y" * 1000)
    locks = kit.cache / ".locks" / f"models--{TARGET.replace('/', '--')}"
    locks.mkdir(parents=True)
    code = "import fcntl,sys,time; f=open(sys.argv[1],'w'); fcntl.flock(f, 2); print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(locks / f"{'2' * 64}.lock")], stdout=subprocess.PIPE, text=True
    )
    holder.stdout.readline()
    try:
        answer = ended(spawn(kit))
    finally:
        holder.kill()
        holder.communicate()
    assert answer["data"]["orphans_bytes"] == 1000
    assert not dead.exists()
    assert held.exists()


def test_the_snapshot_lies_where_the_library_looks_for_it(kit):
    ended(spawn(kit))
    code = (
        "import sys; from huggingface_hub import snapshot_download as s; "
        "print(s(sys.argv[1], revision=sys.argv[2], local_files_only=True))"
    )
    found = subprocess.run(
        [kit.python, "-c", code, TARGET, TARGET_COMMIT],
        env=kit.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == str(kit.snapshot())
