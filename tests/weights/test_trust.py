"""Tokens, endpoints, remote code and the lock: what may go where, and what has to be agreed to again."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from dflashctl.commands.ensure_weights import ensure_weights
from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError, ExitCode, Permanent, UsageProblem
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.report import envelope, failure
from dflashctl.ports.hub import TokenRules
from tests.weights.hub_kit import DRAFT, TARGET, TARGET_COMMIT, ended, make_target, spawn

TOKEN = "hf_SentinelSentinelSentinel42"


def run(kit, **options):
    try:
        return fetch(kit.env(), FetchOptions(profile="pair", **options))
    except DflashError as error:
        return failure("fetch", error)


def sent_tokens(kit):
    return {r["authorization"] for r in kit.requests()}


@pytest.mark.parametrize("where", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file", "named file"])
def test_a_foreign_endpoint_gets_no_token_unless_told(kit, where):
    if where == "file":
        (kit.folder / "hf").mkdir()
        (kit.folder / "hf" / "token").write_text(TOKEN + "\n")
    elif where == "named file":
        (kit.folder / "tok").write_text(TOKEN)
        kit.environ["HF_TOKEN_PATH"] = str(kit.folder / "tok")
    else:
        kit.environ[where] = TOKEN
    report = run(kit)
    assert report.exit_code is ExitCode.OK
    assert sent_tokens(kit) == {None}
    assert report.data.plan.access.token is not None
    assert report.data.plan.access.sends_token is False
    assert run(kit, send_token_to="example.org").exit_code is ExitCode.OK
    assert sent_tokens(kit) == {None}
    kit.lock.unlink()
    assert run(kit, send_token_to=kit.environ["HF_ENDPOINT"].removeprefix("http://")).exit_code is ExitCode.OK
    assert f"Bearer {TOKEN}" in sent_tokens(kit)


def test_a_descriptor_can_hold_the_token(kit):
    read, write = os.pipe()
    os.write(write, TOKEN.encode() + b"\n")
    os.close(write)
    report = run(kit, token_fd=read, send_token_to="127.0.0.1")
    os.close(read)
    assert report.exit_code is ExitCode.OK
    assert sent_tokens(kit) == {f"Bearer {TOKEN}"}


def test_a_descriptor_that_is_not_open_is_a_usage_problem(kit):
    with pytest.raises(UsageProblem, match="descriptor 999"):
        fetch(kit.env(), FetchOptions(profile="pair", token_fd=999))


def test_the_real_hub_gets_the_token_and_a_look_alike_does_not(kit):
    rules = TokenRules()
    for endpoint, sends in [
        ("https://huggingface.co", True),
        ("https://huggingface.co/", True),
        ("http://huggingface.co", False),
        ("https://huggingface.co.evil.example", False),
        ("https://user@evil.example/huggingface.co", False),
        ("https://huggingface.co:8443", False),
    ]:
        access = kit.env(HF_ENDPOINT=endpoint, HF_TOKEN=TOKEN).hub.access(rules)
        assert access.sends_token is sends, endpoint


def test_the_token_appears_nowhere(kit):
    """Not in argv or environment of any process, not in the answer, the lock or any file that was written."""
    kit.environ |= {"HF_TOKEN": TOKEN, "DFLASHCTL_SEND_TOKEN_TO": "127.0.0.1"}
    make_target(kit.folder / "repos" / "large", shards=2, side=49152)
    kit.control["repos"][TARGET]["root"] = str(kit.folder / "repos" / "large")
    kit.control["rate_bytes_per_s"] = 8e6
    kit.save()
    process = spawn(kit)
    seen = set()
    while process.poll() is None:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                seen |= _shown(entry, process.pid)
        time.sleep(0.05)
    answer = process.communicate()
    assert json.loads(answer[0])["outcome"] == "ok"
    assert seen == {"looked"}
    assert TOKEN not in "".join(answer)
    assert f"Bearer {TOKEN}" in sent_tokens(kit)
    (kit.folder / "control.json.log").unlink()  # the fake Hub's own diary
    for path in kit.folder.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


def _shown(entry, parent):
    try:
        if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) != parent:
            return set()
        shown = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
    except OSError:
        return set()
    return {"looked", "TOKEN SHOWN"} if TOKEN.encode() in shown else {"looked"}


def test_an_error_does_not_show_the_token(kit):
    kit.environ |= {"HF_TOKEN": TOKEN, "DFLASHCTL_SEND_TOKEN_TO": "127.0.0.1"}
    kit.control["token"] = "another"
    kit.save()
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert TOKEN not in json.dumps(envelope(report))


def trust(kit, **more):
    kit.write_profile(target={"repo": TARGET, "revision": TARGET_COMMIT, "trust_remote_code": True, **more})


def test_remote_code_is_listed_with_its_hashes_and_recorded(kit):
    trust(kit)
    report = run(kit)
    assert report.exit_code is ExitCode.OK
    expected = hashlib.sha256((kit.root() / "modeling_big.py").read_bytes()).hexdigest()
    assert [(c.path, c.sha256) for c in report.data.models[0].code] == [("modeling_big.py", expected)]
    lock = json.loads(kit.lock.read_text())
    assert {"modeling_big.py"} == {f["path"] for f in lock["target"]["files"] if f["path"].endswith(".py")}


def test_code_that_is_not_trusted_is_not_even_fetched(kit):
    run(kit)
    assert not kit.requests(part="modeling_big.py")


@pytest.mark.parametrize("revision", [None, "main"])
def test_trust_needs_a_full_commit(kit, revision):
    profile = {"repo": TARGET, "trust_remote_code": True}
    kit.write_profile(target=profile | ({"revision": revision} if revision else {}))
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT


def test_changed_code_must_be_agreed_to_again(kit):
    trust(kit)
    run(kit)
    new = "c" * 40
    kit.control["repos"][TARGET]["commits"] = {"main": new}
    (kit.root() / "modeling_big.py").write_text("import os\n")
    kit.save()
    trust(kit, revision=new)
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert "modeling_big.py (changed)" in report.errors[0].message
    assert report.errors[0].hint == "dflashctl fetch pair --accept-code"
    assert run(kit, accept_code=True).exit_code is ExitCode.OK
    assert run(kit).exit_code is ExitCode.OK


def test_a_new_commit_with_the_same_code_asks_nothing(kit):
    trust(kit)
    run(kit)
    kit.control["repos"][TARGET]["commits"] = {"main": "c" * 40}
    kit.save()
    trust(kit, revision="c" * 40)
    assert run(kit).exit_code is ExitCode.OK


def test_up_refuses_a_lock_of_another_commit_and_fetch_renews_it(kit):
    run(kit)
    kit.control["repos"][TARGET]["commits"] = {"main": "c" * 40}
    kit.save()
    kit.write_profile(target={"repo": TARGET, "revision": "c" * 40})
    env = kit.env()
    with pytest.raises(Permanent, match="does not fit the profile") as caught:
        ensure_weights(env, env.profiles.load("pair"))
    assert caught.value.hint == "dflashctl fetch pair"
    assert TARGET_COMMIT in caught.value.message
    assert run(kit).exit_code is ExitCode.OK
    assert ensure_weights(env, env.profiles.load("pair")).target.commit == "c" * 40


@pytest.mark.parametrize(
    "text", ["", "{", '{"lock_version": 99}', '{"lock_version": 1, "target": []}', "null"]
)
def test_a_damaged_or_newer_lock_is_told_and_not_overwritten(kit, text):
    kit.lock.write_text(text)
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert "pair.lock.json" in report.errors[0].message
    assert kit.lock.read_text() == text


def test_a_lock_cannot_point_outside_its_model(kit):
    run(kit)
    lock = json.loads(kit.lock.read_text())
    lock["target"]["files"][0]["path"] = "../../../etc/passwd"
    kit.lock.write_text(json.dumps(lock))
    assert "damaged" in run(kit).errors[0].message


def test_a_pickled_file_comes_only_when_it_is_named_literally(kit):
    kit.write_profile(target={"repo": TARGET, "revision": TARGET_COMMIT, "allow_patterns": ["*.bin"]})
    run(kit)
    assert not (kit.snapshot() / "pytorch_model.bin").exists()
    kit.write_profile(
        target={"repo": TARGET, "revision": TARGET_COMMIT, "allow_patterns": ["pytorch_model.bin"]}
    )
    assert run(kit).exit_code is ExitCode.OK
    assert (kit.snapshot() / "pytorch_model.bin").exists()


def test_a_pair_that_does_not_fit_is_refused_before_any_weight(kit):
    config = json.loads((kit.root(DRAFT) / "config.json").read_text())
    config["num_target_layers"] = 7
    (kit.root(DRAFT) / "config.json").write_text(json.dumps(config))
    report = run(kit)
    assert report.exit_code is ExitCode.PERMANENT
    assert "num_target_layers 7" in report.errors[0].detail
    assert "num_hidden_layers 8" in report.errors[0].detail
    assert not [r for r in kit.requests("GET") if r["path"].endswith(".safetensors")]


def test_a_spawned_fetch_answers_one_json_object(kit):
    answer = ended(spawn(kit, plan=True))
    assert answer["command"] == "fetch"
    plan = answer["data"]["plan"]
    assert plan["bytes_needed"] >= plan["bytes_wanted"] > 0
    assert {m["role"] for m in plan["models"]} == {"target", "draft"}
