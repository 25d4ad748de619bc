"""Caches with links in them: what is moved, removed or continued is the cache's own, never what a link leads to."""

from __future__ import annotations

import os
import shutil

import pytest

from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.report import failure
from dflashctl.edges import hub_cache
from dflashctl.edges.weight_store import FileWeightStore
from tests.weights.hub_kit import TARGET, make_target

NAME = "tokenizer.json"
SHARD = "model-00002-of-00003.safetensors"


def run(kit, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def spoil(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def tree(folder):
    """Names, contents and where links point."""
    return {
        p.relative_to(folder): os.readlink(p) if p.is_symlink() else p.is_file() and p.read_bytes()
        for p in folder.rglob("*")
    }


def link_file(kit, outside, name):
    """The snapshot's file is a link to a file of somebody else's."""
    mine = kit.snapshot() / name
    shutil.copy(mine, outside / name)
    mine.unlink()
    mine.symlink_to(outside / name)


def link_file_by_way_back(kit, outside, name):
    """The same by a relative link that passes through the repository's own blobs."""
    link_file(kit, outside, name)
    mine = kit.snapshot() / name
    mine.unlink()
    mine.symlink_to("../../blobs/" + os.path.relpath(outside / name, kit.snapshot().parent.parent / "blobs"))


def link_blob(kit, outside, name):
    """The blob itself is a link to a file of somebody else's."""
    blob = kit.blob(name)
    shutil.move(blob, outside / name)
    blob.symlink_to(outside / name)


def hard_link(kit, outside, name):
    os.link(kit.blob(name), outside / name)


def chain_of_links(kit, outside, name):
    link_file(kit, outside, name)
    (outside / "hop").symlink_to(name)
    mine = kit.snapshot() / name
    mine.unlink()
    mine.symlink_to(outside / "hop")


def link_snapshot(kit, outside, name):
    """The snapshot's whole folder is somebody else's."""
    shutil.copytree(kit.snapshot(), outside / "snapshot")
    shutil.rmtree(kit.snapshot())
    kit.snapshot().symlink_to(outside / "snapshot")


def link_blobs(kit, outside, name):
    blobs = kit.snapshot().parent.parent / "blobs"
    shutil.move(blobs, outside / "blobs")
    blobs.symlink_to(outside / "blobs")


def link_repository(kit, outside, name):
    repository = kit.snapshot().parent.parent
    shutil.move(repository, outside / repository.name)
    repository.symlink_to(outside / repository.name)


@pytest.mark.parametrize("name", [NAME, SHARD])
@pytest.mark.parametrize(
    ("link", "repairs"),
    [
        (link_file, True),
        (link_file_by_way_back, True),
        (link_blob, True),
        (chain_of_links, True),
        (hard_link, True),
        (link_snapshot, False),
        (link_blobs, False),
        (link_repository, False),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_repair_never_touches_what_a_link_leads_to(kit, link, repairs, name):
    assert run(kit).exit_code is ExitCode.OK
    outside = kit.folder / "shared"
    outside.mkdir()
    link(kit, outside, name)
    spoil(kit.snapshot() / name)
    before = tree(outside)
    report = run(kit, repair=True)
    assert tree(outside) == before
    if repairs:
        assert report.exit_code is ExitCode.OK, report.errors
        assert (kit.snapshot() / name).read_bytes() == (kit.root() / name).read_bytes()
    else:
        assert report.exit_code is ExitCode.PERMANENT
        assert "leads out of this cache" in report.errors[0].message
        assert str(outside) in report.errors[0].message


def test_a_cache_that_is_itself_behind_a_link_is_repaired(kit):
    """HF_HOME on another disk is the usual case: what counts is whether a link leads out of the cache."""
    assert run(kit).exit_code is ExitCode.OK
    shutil.move(kit.cache, kit.folder / "disk")
    kit.cache.symlink_to(kit.folder / "disk")
    spoil(kit.blob(NAME))
    report = run(kit, repair=True)
    assert report.exit_code is ExitCode.OK, report.errors
    assert len(report.data.set_aside) == 1


@pytest.mark.parametrize("linked", ["partial", "blobs", "repository"])
def test_no_partial_file_behind_a_link_is_removed_or_continued(kit, linked):
    outside = kit.folder / "shared"
    outside.mkdir()
    repository = kit.snapshot().parent.parent
    blobs = repository / "blobs"
    name = f"{'1' * 64}.0000aaaa{hub_cache.PARTIAL}"
    (outside / name).write_bytes(b"x" * 5_000_000)
    blobs.mkdir(parents=True)
    if linked == "partial":
        (blobs / name).symlink_to(outside / name)
    elif linked == "blobs":
        blobs.rmdir()
        blobs.symlink_to(outside)
    else:
        shutil.move(repository, outside / "repository")
        shutil.copy(outside / name, outside / "repository" / "blobs" / name)
        repository.symlink_to(outside / "repository")
    before = tree(outside)
    assert hub_cache.partial_files(kit.cache, TARGET) == ()
    assert hub_cache.sweep(kit.cache, TARGET) == 0
    assert tree(outside) == before


def test_a_killed_transfer_is_not_continued_through_a_link(kit):
    """The file that the link points to would be appended to."""
    make_target(kit.folder / "repos" / "large", side=49152)
    kit.control["repos"][TARGET]["root"] = str(kit.folder / "repos" / "large")
    kit.save()
    import hashlib

    whole = (kit.root() / SHARD).read_bytes()
    outside = kit.folder / "mine.bin"
    outside.write_bytes(whole[:5_000_000])
    blobs = kit.snapshot().parent.parent / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{hashlib.sha256(whole).hexdigest()}.0000aaaa{hub_cache.PARTIAL}").symlink_to(outside)
    assert run(kit).exit_code is ExitCode.OK
    assert outside.read_bytes() == whole[:5_000_000]


@pytest.mark.parametrize("name", ["dflashctl.lock", f"{'1' * 64}.lock"])
def test_a_lock_that_is_a_link_is_not_followed(kit, name):
    locks = kit.cache / ".locks" / f"models--{TARGET.replace('/', '--')}"
    locks.mkdir(parents=True)
    outside = kit.folder / "precious"
    outside.write_text("keep me")
    (locks / name).symlink_to(outside)
    if name == "dflashctl.lock":
        with (
            pytest.raises(DflashError, match="lock"),
            FileWeightStore(environ=kit.environ).exclusive(kit.cache, TARGET, print),
        ):
            pass
        assert run(kit).exit_code is ExitCode.PERMANENT
    else:
        with hub_cache.unheld(kit.cache, TARGET, "1" * 64) as free:
            assert not free
    assert outside.read_text() == "keep me"
