"""Every fault of the Hub and the network: the fetch ends right, or says what is wrong and leaves nothing wrong behind."""

from __future__ import annotations

import base64
import json

import pytest

from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.model_files import FileStatus
from dflashctl.core.report import failure
from tests.weights.hub_kit import DRAFT, TARGET, TARGET_COMMIT, safetensors

SHARD = "model-00002-of-00003.safetensors"


def run(kit, **options):
    """As main does it: an error becomes a report."""
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def assert_whole(kit, report):
    assert report.errors == ()
    assert report.exit_code is ExitCode.OK
    for locked in json.loads(kit.lock.read_text())["target"]["files"]:
        assert (kit.snapshot() / locked["path"]).read_bytes() == (kit.root() / locked["path"]).read_bytes()


def note_texts(kit):
    return " | ".join(e.text for e in kit.events)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "truncate", "after": 1000, "method": "GET"},
        {"kind": "truncate", "after": 1000, "method": "GET", "times": 3},
        {"kind": "wrong_bytes", "method": "GET"},
        {"kind": "login_page", "method": "GET"},
        {"kind": "login_page", "method": "GET", "keep_length": True},
        {"kind": "status", "status": 503, "method": "GET"},
        {"kind": "status", "status": 503, "method": "HEAD"},
        {"kind": "status", "status": 500, "method": "GET", "times": 2},
        {"kind": "status", "status": 429, "method": "GET"},
        {"kind": "status", "status": 429, "method": "GET", "headers": {"Retry-After": "1"}},
        {"kind": "status", "status": 429, "method": "GET", "headers": {"RateLimit": '"resolvers";r=0;t=1'}},
        {"kind": "reset", "method": "GET"},
        {"kind": "reset", "after": 2000, "method": "GET"},
        {"kind": "reset", "method": "HEAD"},
        {"kind": "not_found", "method": "GET"},
        {"kind": "wrong_etag", "times": None},
    ],
    ids=lambda f: "-".join(str(v) for v in f.values()),
)
def test_a_fault_that_passes_is_survived(kit, fault):
    kit.fault(match=SHARD, **fault)
    assert_whole(kit, run(kit))


@pytest.mark.parametrize(
    ("headers", "least_s"), [({"Retry-After": "3"}, 3), ({"RateLimit": '"api";r=0;t=2'}, 2), ({}, 1)]
)
def test_a_throttled_listing_waits_as_long_as_the_server_says(kit, headers, least_s):
    kit.fault("status", "/api/models/" + TARGET, status=429, headers=headers)
    assert_whole(kit, run(kit))
    first, second = kit.requests("GET", f"/api/models/{TARGET}/revision/")[:2]
    assert second["at_s"] - first["at_s"] >= least_s
    assert "waiting" in note_texts(kit)


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [
        ("wrong_bytes", FileStatus.WRONG_CONTENT, "expected"),
        ("login_page", FileStatus.WEB_PAGE, "web page"),
    ],
)
def test_lasting_wrong_content_of_the_right_length_is_never_accepted(kit, kind, status, word):
    kit.fault(kind, SHARD, times=None, keep_length=True, method="GET")
    report = run(kit)
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert SHARD in report.errors[0].message
    assert word in report.errors[0].detail
    statuses = {r.file.path: r.status for r in report.data.models[0].files}
    assert statuses.pop(SHARD) is status
    assert set(statuses.values()) == {FileStatus.VERIFIED}
    assert not kit.lock.exists()
    kit.heal()
    assert run(kit).exit_code is ExitCode.CHECK_FAILED  # bad files lie there: say so, touch nothing
    kit.forget_requests()
    assert_whole(kit, run(kit, repair=True))
    fetched = {r["path"].rsplit("/", 1)[-1] for r in kit.requests("GET", "/resolve/")}
    assert fetched == {SHARD}


def test_a_lasting_failure_names_the_file_and_keeps_the_others(kit):
    kit.environ["DFLASHCTL_FETCH_ATTEMPTS"] = "1"
    kit.fault("truncate", SHARD, times=None, after=10, method="GET")
    report = run(kit)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert SHARD in report.errors[0].message
    kit.heal()
    kit.forget_requests()
    assert_whole(kit, run(kit))
    assert not [r for r in kit.requests("GET", "model-00001") if r["sent"]]


def test_a_login_page_instead_of_the_config_is_told_before_anything_is_fetched(kit):
    kit.fault("login_page", "config.json", times=None, keep_length=True)
    report = run(kit)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert "web page" in report.errors[0].message
    assert not kit.cache.exists()


def test_a_login_page_instead_of_the_listing_is_told(kit):
    kit.environ["DFLASHCTL_FETCH_ATTEMPTS"] = "2"
    kit.fault("login_page", "/api/models/", times=None)
    report = run(kit)
    assert report.exit_code in (ExitCode.UNAVAILABLE, ExitCode.PERMANENT)
    assert "HF_ENDPOINT" in report.errors[0].hint


def test_a_stalled_transfer_is_killed_and_begun_again_without_xet(kit):
    kit.stall_s = 2.0
    kit.fault("stall", SHARD, after=2000, method="GET", times=1)
    report = run(kit)
    assert_whole(kit, report)
    assert report.data.restarts == 1
    assert report.data.transport == "http"
    assert "without Xet" in note_texts(kit)


def test_a_transfer_that_stalls_twice_gives_up_and_says_what_is_left(kit):
    kit.stall_s = 1.5
    kit.fault("stall", SHARD, after=2000, method="GET", times=None)
    report = run(kit)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert "stalled" in report.errors[0].message
    assert SHARD in report.errors[0].detail


def test_a_trickle_counts_as_a_stall(kit):
    kit.stall_s = 2.0
    kit.fault("trickle", SHARD, every_s=0.2, method="GET", times=1)
    report = run(kit)
    assert_whole(kit, report)
    assert report.data.restarts == 1


def test_a_redirect_to_another_host_gets_no_token(kit):
    kit.control["token"] = "hf_secretsecretsecretsecret"
    kit.control["cdn"] = kit.environ["HF_ENDPOINT"].replace("127.0.0.1", "localhost")
    kit.save()
    kit.environ["HF_TOKEN"] = "hf_secretsecretsecretsecret"
    host = kit.environ["HF_ENDPOINT"].removeprefix("http://")
    report = run(kit, send_token_to=host)
    assert_whole(kit, report)
    assert {r["authorization"] for r in kit.requests("GET", "/cdn/")} == {None}
    assert {r["authorization"] for r in kit.requests("HEAD", "/resolve/")} == {
        "Bearer hf_secretsecretsecretsecret"
    }


@pytest.mark.parametrize(
    ("repo", "change", "token", "word", "hint"),
    [
        (TARGET, {"gated": True}, None, "gated", "HF_TOKEN"),
        (DRAFT, {"gated": True}, None, "gated", "HF_TOKEN"),
        (DRAFT, {"gated": "refused"}, "hf_good", "gated", "accept the licence"),
        (TARGET, {"private": True}, None, "needs a token", "HF_TOKEN"),
        (TARGET, {}, "hf_wrong", "not accepted", "hf auth"),
    ],
)
def test_missing_access_to_either_model_is_told_before_the_first_big_byte(
    kit, repo, change, token, word, hint
):
    kit.control["repos"][repo].update(change)
    kit.control["token"] = "hf_good"
    kit.save()
    if token:
        kit.environ |= {"HF_TOKEN": token, "DFLASHCTL_SEND_TOKEN_TO": "127.0.0.1"}
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert word in report.errors[0].message
    assert repo in report.errors[0].message
    assert hint in report.errors[0].hint
    assert not [r for r in kit.requests("GET") if r["path"].endswith(".safetensors")]
    assert not (kit.cache / "blobs").exists()


def test_an_unknown_repository_and_an_unknown_commit_are_told_apart(kit):
    kit.write_profile(target={"repo": "acme/none", "revision": TARGET_COMMIT})
    assert "acme/none" in run(kit).errors[0].message
    kit.write_profile(target={"repo": TARGET, "revision": "c" * 40})
    report = run(kit)
    assert "no commit" in report.errors[0].message
    assert report.exit_code is ExitCode.PERMANENT


def test_a_renamed_repository_works_and_is_told(kit):
    kit.control["repos"]["acme/bigger"] = dict(kit.control["repos"][TARGET])
    kit.control["repos"][TARGET]["renamed_to"] = "acme/bigger"
    kit.save()
    report = run(kit)
    assert_whole(kit, report)
    assert [f.id for f in report.findings] == ["weights.renamed"]


def test_a_moved_branch_does_not_move_a_locked_profile(kit):
    run(kit)
    kit.control["repos"][TARGET]["commits"] = {"main": "d" * 40}
    kit.save()
    assert_whole(kit, run(kit))


def test_a_file_that_changes_between_plan_and_fetch_is_not_accepted(kit):
    other = kit.folder / "other.safetensors"
    safetensors(other, {"layers.1.weight": (64, 64)})
    kit.fault("swap", SHARD, content=base64.b64encode(other.read_bytes()).decode(), times=None, method="GET")
    report = run(kit)
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert SHARD in report.errors[0].message


def test_a_missing_shard_is_found_from_the_index_before_the_download(kit):
    (kit.root() / SHARD).unlink()
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert SHARD in report.errors[0].message
    assert not [r for r in kit.requests("GET") if r["path"].endswith(".safetensors")]


def test_a_hostile_listing_is_refused(kit):
    kit.control["repos"][TARGET]["extra_rows"] = [
        {"type": "file", "path": "../../evil.json", "size": 3, "oid": "0" * 40}
    ]
    kit.save()
    report = run(kit)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert "outside itself" in report.errors[0].message


def test_a_hub_that_cannot_be_reached_is_unavailable(kit):
    kit.environ |= {"HF_ENDPOINT": "http://127.0.0.1:9", "DFLASHCTL_FETCH_ATTEMPTS": "2"}
    report = run(kit)
    assert report.exit_code is ExitCode.UNAVAILABLE
    assert "127.0.0.1:9" in report.errors[0].message
