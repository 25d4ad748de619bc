"""A lock that contradicts the Hub: said at once, nothing fetched twice, and the advice ends it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.report import failure

SHARD = "model-00002-of-00003.safetensors"
INDEX = "model.safetensors.index.json"


def run(kit, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def tamper(kit, path, **change):
    lock = json.loads(kit.lock.read_text())
    next(f for f in lock["target"]["files"] if f["path"] == path).update(change)
    kit.lock.write_text(json.dumps(lock))


def gotten(kit, path):
    return [r for r in kit.requests("GET", "/resolve/") if r["path"].endswith(path)]


@pytest.mark.parametrize("path", [SHARD, "tokenizer.json", INDEX, "config.json"])
@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"size_bytes": 77}], ids=["content", "size"])
@pytest.mark.parametrize("there", [True, False], ids=["there", "not there"])
def test_a_lock_that_contradicts_the_hub_is_named_and_never_leads_in_a_circle(kit, path, change, there):
    run(kit)
    tamper(kit, path, **change)
    if not there:
        blob = kit.blob(path)
        (kit.snapshot() / path).unlink()
        blob.unlink()
    kit.forget_requests()
    for options in ({"repair": True}, {}, {"repair": True}, {"verify": True}):
        report = run(kit, **options)
        assert report.exit_code is ExitCode.CHECK_FAILED, options
        assert "the lock is wrong" in report.errors[0].message
        assert path in report.errors[0].message
        assert "--repair" not in report.errors[0].hint
    if path == SHARD:
        assert len(gotten(kit, path)) == (0 if there else 1)
    assert not (kit.snapshot().parent.parent / "set-aside").exists()
    named = re.search(r"rm (\S+),", report.errors[0].hint)
    (Path(named[1]) if named else kit.lock).unlink()
    assert run(kit).exit_code is ExitCode.OK
    assert run(kit, verify=True).exit_code is ExitCode.OK


def test_a_damaged_file_under_a_right_lock_is_still_repaired(kit):
    run(kit)
    blob = kit.blob(SHARD)
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)
    assert "--repair" in run(kit).errors[0].hint
    assert run(kit, repair=True).exit_code is ExitCode.OK
