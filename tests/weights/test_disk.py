"""Disks that are too small, full, or not to be written: refused before the first byte, or ended cleanly."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.model_files import FileReport, FileStatus, ModelFile
from dflashctl.core.report import failure
from dflashctl.core.weights import Access, DiskRoom, ModelPlan, WeightsPlan, plan_findings
from dflashctl.edges.hub_cache import partial_files
from tests.weights.hub_kit import TARGET, make_target

MIB = 1 << 20


def run(kit, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def plan_of(sizes, room, xet_room=None):
    reports = tuple(
        FileReport(
            file=ModelFile(path=f"{n}.safetensors", size_bytes=s, sha256=str(n)), status=FileStatus.MISSING
        )
        for n, s in enumerate(sizes)
    )
    model = ModelPlan(role="target", label="a/b", repo="a/b", commit="c", folder="/x", files=reports)
    return WeightsPlan(models=(model, model), room=room, access=Access(endpoint="e"), xet_room=xet_room)


@pytest.mark.parametrize(
    ("free", "files", "writable", "expected"),
    [
        (2100, None, True, []),
        (2099, None, True, ["weights.disk_full"]),
        (2100, 12, True, []),
        (2100, 11, True, ["weights.inodes"]),
        (2100, None, False, ["weights.read_only"]),
        (0, 0, False, ["weights.read_only", "weights.disk_full", "weights.inodes"]),
    ],
)
def test_both_models_and_five_percent_must_fit(free, files, writable, expected):
    room = DiskRoom(path="/cache", mount="/", free_bytes=free, free_files=files, writable=writable)
    findings = plan_findings(plan_of([600, 400], room))
    assert [f.id for f in findings] == expected
    assert all("HF_HUB_CACHE" in f.fix for f in findings)


@pytest.mark.parametrize(
    ("mount", "free", "warned"), [("/home", 999, True), ("/home", 2000, False), ("/", 999, False)]
)
def test_a_small_filesystem_under_xets_own_cache_is_told(mount, free, warned):
    room = DiskRoom(path="/cache", mount="/", free_bytes=10**12)
    xet = DiskRoom(path="/home/u/xet", mount=mount, free_bytes=free)
    findings = plan_findings(plan_of([600, 400], room, xet))
    assert [f.id for f in findings] == (["weights.xet_cache"] if warned else [])


def test_nothing_is_asked_of_the_disk_when_nothing_is_missing():
    room = DiskRoom(path="/cache", mount="/", free_bytes=0, free_files=0, writable=False)
    assert plan_findings(plan_of([], room)) == ()


@pytest.fixture
def small_disk(kit):
    """The hub cache on a tmpfs of 20 MiB."""
    disk = kit.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m,mode=0777", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount a tmpfs: {done.stderr.strip()}")
    kit.environ["HF_HUB_CACHE"] = str(disk / "hub")
    yield kit
    subprocess.run(["umount", "-l", str(disk)], check=True)


def big_target(kit, shards):
    make_target(kit.folder / "repos" / "large", shards=shards, side=49152)
    kit.control["repos"][TARGET]["root"] = str(kit.folder / "repos" / "large")
    kit.save()


@pytest.mark.namespaces
def test_a_disk_too_small_is_refused_before_the_first_big_byte(small_disk):
    big_target(small_disk, 4)
    report = run(small_disk)
    assert report.exit_code is ExitCode.PERMANENT
    assert str(small_disk.folder / "disk") in report.errors[0].message
    assert not [r for r in small_disk.requests("GET") if r["path"].endswith(".safetensors")]
    planned = run(small_disk, plan=True)
    assert planned.exit_code is ExitCode.PERMANENT
    assert planned.data.plan.room.mount == str(small_disk.folder / "disk")
    assert planned.data.plan.room.free_bytes < planned.data.plan.needed_bytes


@pytest.mark.namespaces
def test_a_disk_that_somebody_else_fills_meanwhile_ends_the_fetch_cleanly(small_disk):
    """The plan fitted; then the room went away. No partial file stays, and the next fetch goes on."""
    big_target(small_disk, 3)
    filler = small_disk.folder / "disk" / "filler"
    env = small_disk.env()
    begin = env.hub.fetch

    def fetch_on_a_filling_disk(*order):
        filler.write_bytes(bytes(10 * MIB))
        return begin(*order)

    env.hub.fetch = fetch_on_a_filling_disk
    report = fetch(env, FetchOptions(profile="pair"))
    assert report.exit_code is ExitCode.PERMANENT
    assert "filled up" in report.errors[0].message
    assert partial_files(small_disk.folder / "disk" / "hub", TARGET) == ()
    filler.unlink()
    assert run(small_disk).exit_code is ExitCode.OK


@pytest.mark.namespaces
def test_what_dead_transfers_left_is_swept_when_it_stands_in_the_way(small_disk):
    big_target(small_disk, 2)
    blobs = small_disk.folder / "disk" / "hub" / f"models--{TARGET.replace('/', '--')}" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{'1' * 64}.0000aaaa.incomplete").write_bytes(bytes(10 * MIB))
    assert run(small_disk).exit_code is ExitCode.OK


@pytest.mark.namespaces
def test_a_read_only_filesystem_is_refused_for_a_fetch_and_fine_for_a_start(small_disk):
    assert run(small_disk).exit_code is ExitCode.OK
    disk = small_disk.folder / "disk"
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    small_disk.lock.unlink()
    shutil.rmtree(small_disk.folder / "state")
    assert run(small_disk, offline=True).exit_code is ExitCode.OK
    assert run(small_disk).exit_code is ExitCode.OK
    small_disk.control["repos"][TARGET]["commits"] = {"main": "c" * 40}
    small_disk.save()
    small_disk.write_profile(target={"repo": TARGET, "revision": "c" * 40})
    report = run(small_disk)
    assert report.exit_code is ExitCode.PERMANENT
    assert "cannot be written" in report.errors[0].message


def test_a_cache_place_that_cannot_be_made_is_told(kit):
    (kit.folder / "file").write_text("in the way")
    kit.environ["HF_HUB_CACHE"] = str(kit.folder / "file" / "hub")
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert "cannot be written" in report.errors[0].message
