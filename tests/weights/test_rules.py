"""The pure rules of fetching, by tables: selection, pair, stall, retry, headers, configs, the lock's text."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from dflashctl.core.errors import Permanent
from dflashctl.core.findings import Severity
from dflashctl.core.model_config import indexed_shards, parse_config, parse_config_text
from dflashctl.core.model_files import FileStatus, ModelFile, total_bytes
from dflashctl.core.pair import Pair, fc_finding, pair_findings
from dflashctl.core.profile import Engine, EngineName, Memory, ModelRef, Profile, Speculative
from dflashctl.core.proof import judged_bytes
from dflashctl.core.retry import Attempt, asked_wait_s, wait_before_next_s
from dflashctl.core.safetensors_header import header_bytes, problem_of_header
from dflashctl.core.selection import choose, lacking_shards
from dflashctl.core.stall import Growth, excused, grown, stalled_s
from dflashctl.core.weights_lock import Lock, code_changes, difference, dump, is_safe_path, locked, parse
from tests.weights.hub_kit import DRAFT_CONFIG, TARGET_CONFIG

BUILTIN = Path(__file__).resolve().parent.parent.parent / "dflashctl" / "reference" / "tiny"


def files(*paths):
    return tuple(ModelFile(path=p, size_bytes=1, sha256=p) for p in paths)


# Files of real repositories of this kind, and what serving needs of them.
KIMI = (
    ".gitattributes", "LICENSE", "README.md", "THIRD_PARTY_NOTICES.md", "chat_template.jinja", "config.json",
    "configuration_kimi.py", "docs/deploy_guidance.md", "figures/logo.png", "generation_config.json",
    "model-00001-of-000002.safetensors", "model-00002-of-000002.safetensors", "model.safetensors.index.json",
    "modeling_kimi.py", "tiktoken.model", "tokenization_kimi.py", "tokenizer_config.json", "special_tokens_map.json",
)  # fmt: skip
MIXED = (
    "config.json", "consolidated.safetensors", "flax_model.msgpack", "merges.txt", "model-00001-of-00001.safetensors",
    "model.safetensors.index.json", "onnx/model.onnx", "original/consolidated.00.pth", "original/params.json",
    "pytorch_model-00001-of-00002.bin", "tf_model.h5", "vocab.json", "mask_embedding.pt", "model.q4.gguf",
)  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "ref", "indexed", "expected"),
    [
        (
            KIMI,
            {"trust_remote_code": True},
            ["model-00001-of-000002.safetensors", "model-00002-of-000002.safetensors"],
            set(KIMI)
            - {".gitattributes", "LICENSE", "README.md", "THIRD_PARTY_NOTICES.md", "docs/deploy_guidance.md", "figures/logo.png"},
        ),
        (
            MIXED,
            {},
            ["model-00001-of-00001.safetensors"],
            {"config.json", "merges.txt", "model-00001-of-00001.safetensors", "model.safetensors.index.json", "vocab.json"},
        ),
        (
            MIXED,
            {"allow_patterns": ("mask_embedding.pt", "*.bin", "original/*")},
            ["model-00001-of-00001.safetensors"],
            {"config.json", "merges.txt", "model-00001-of-00001.safetensors", "model.safetensors.index.json", "vocab.json",
             "mask_embedding.pt", "original/params.json"},
        ),
        (("config.json", "model.safetensors", "a/model.safetensors"), {}, None, {"config.json", "model.safetensors"}),
        (("config.json", "model.safetensors", "x.py"), {"ignore_patterns": ("*",)}, None, {"config.json"}),
    ],
)  # fmt: skip
def test_serving_gets_what_it_needs_and_no_duplicates(listed, ref, indexed, expected):
    selection = choose(files(*listed), ModelRef(repo="a/b", **ref), indexed)
    assert {f.path for f in selection.chosen} == expected
    assert {path for path, _ in selection.left_out} == set(listed) - expected


@pytest.mark.parametrize(
    ("listed", "ignored", "indexed", "expected"),
    [
        (["a", "b"], (), ["a", "b", "c"], ("c",)),
        (["a", "b"], ("c*",), ["a", "b", "c"], ()),
        (["m-1-of-3.safetensors"], (), None, ("m-2-of-3.safetensors", "m-3-of-3.safetensors")),
        (["x/m-00002-of-00002.safetensors"], (), None, ("x/m-00001-of-00002.safetensors",)),
        (["m-1-of-2.safetensors"], (), ["m-1-of-2.safetensors"], ()),  # the index knows better
        (["m-1-of-2.safetensors"], ("*-2-of-*",), None, ()),
        (["m-1-of-999999999.safetensors"], (), None, ()),  # no count of shards
        (["model.safetensors"], (), None, ()),
    ],
)
def test_lacking_shards_are_those_that_the_index_names_or_the_names_count(listed, ignored, indexed, expected):
    ref = ModelRef(repo="a/b", ignore_patterns=ignored)
    assert lacking_shards(files(*listed), ref, indexed) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"weight_map": {"x": "b", "y": "a", "z": "a"}}, ("a", "b")),
        ({"weight_map": {}}, None),
        ([], None),
        ("<html>", None),
    ],
)
def test_an_index_names_its_shards(data, expected):
    assert indexed_shards(data) == expected


def test_a_shared_content_counts_once():
    assert (
        total_bytes(
            (ModelFile(path="a", size_bytes=5, sha256="x"), ModelFile(path="b", size_bytes=5, sha256="x"))
        )
        == 5
    )


def pair(target=None, draft=None, **profile):
    t, d = copy.deepcopy(TARGET_CONFIG), copy.deepcopy(DRAFT_CONFIG)
    t.update(target or {})
    for key, value in (draft or {}).items():
        d["dflash_config" if key in d["dflash_config"] else key] = (
            {**d["dflash_config"], key: value} if key in d["dflash_config"] else value
        )
    made = Profile(
        name="p",
        summary="",
        engine=Engine(name=EngineName.SGLANG),
        target=ModelRef(repo="a/t"),
        draft=ModelRef(repo="a/d"),
        **profile,
    )
    return Pair(
        target=parse_config(t), draft=parse_config(d), target_name="a/t", draft_name="a/d", profile=made
    )


@pytest.mark.parametrize(
    ("case", "severity", "words"),
    [
        (pair(draft={"hidden_size": 128}), "error", ["hidden_size 128", "hidden_size 64", "a/d", "a/t"]),
        (pair(draft={"vocab_size": 500}), "error", ["vocab_size 500", "vocab_size 512"]),
        (pair(draft={"draft_vocab_size": 100}), "error", ["draft_vocab_size 100", "512"]),
        (pair(draft={"num_target_layers": 9}), "error", ["num_target_layers 9", "num_hidden_layers 8"]),
        (pair(draft={"target_layer_ids": [1, 8]}), "error", ["do not exist: 8", "num_hidden_layers 8"]),
        (pair(draft={"target_layer_ids": [-1, 4]}), "error", ["do not exist: -1"]),
        (pair(draft={"target_layer_ids": [4, 4]}), "error", ["twice"]),
        (pair(draft={"mask_token_id": None}), "error", ["no mask_token_id"]),
        (pair(draft={"mask_token_id": 512}), "error", ["outside", "mask_token_id 512", "vocab_size 512"]),
        (pair(draft={"mask_token_id": -1}), "error", ["outside"]),
        (pair(draft={"mask_token_id": 2}), "error", ["mask token 2 is also eos_token_id"]),
        (pair(draft={"mask_token_id": 0}), "error", ["mask token 0 is also pad_token_id"]),
        (pair(target={"eos_token_id": [7, 3]}), "error", ["also eos_token_id", "a/t"]),
        (pair(speculative=Speculative(block_size=17)), "warning", ["17", "16", "--block-size 16"]),
        (pair(speculative=Speculative(draft_window_size=8)), "error", ["window of 8", "block of 16"]),
        (
            pair(draft={"sliding_window": 64}, speculative=Speculative(draft_window_size=128)),
            "warning",
            ["128", "64"],
        ),
        (pair(memory=Memory(context_length=8192)), "error", ["8192", "4096", "memory.context_length"]),
        (
            pair(
                memory=Memory(context_length=8192),
                environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
            ),
            "warning",
            ["8192"],
        ),
        (
            pair(target={"max_position_embeddings": 8192}),
            "error",
            ["8192", "config.json of a/t", "--set memory.context_length=4096"],
        ),
        (
            pair(
                target={"max_position_embeddings": 8192},
                environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "Yes"},
            ),
            "warning",
            ["8192", "4096"],
        ),
        (pair(target={"auto_map": {"AutoConfig": "c.C"}}), "warning", ["trust_remote_code is off", "c.C"]),
    ],
)
def test_a_misfit_is_told_with_both_values_and_where_they_stand(case, severity, words):
    findings = pair_findings(case)
    assert [f.severity for f in findings] == [Severity(severity)]
    text = f"{findings[0].summary} {findings[0].detail} {findings[0].fix}"
    assert [w for w in words if w not in text] == []


def test_a_block_shorter_than_the_trained_one_fits():
    assert pair_findings(pair(speculative=Speculative(block_size=8))) == ()


@pytest.mark.parametrize(
    "case",
    [
        pair(),
        pair(speculative=Speculative(block_size=16, draft_window_size=16)),
        pair(memory=Memory(context_length=4096)),
        pair(draft={"rope_scaling": {"type": "linear", "factor": 4.0}}, memory=Memory(context_length=16384)),
        pair(draft={"hidden_size": 32, "target_hidden_size": 64}),
    ],
)
def test_a_pair_that_fits_is_not_complained_of(case):
    assert pair_findings(case) == ()


def test_the_pair_that_ships_fits():
    target = parse_config_text((BUILTIN / "target" / "config.json").read_bytes())
    draft = parse_config_text((BUILTIN / "draft" / "config.json").read_bytes())
    case = pair()
    assert (
        pair_findings(Pair(target=target, draft=draft, target_name="t", draft_name="d", profile=case.profile))
        == ()
    )


@pytest.mark.parametrize(("shape", "bad"), [((64, 128), False), ((64, 192), True), (None, False)])
def test_the_drafts_fc_takes_all_target_layers(shape, bad):
    assert bool(fc_finding(pair(), shape)) is bad


def test_a_multimodal_config_keeps_its_numbers_one_level_down():
    config = parse_config(
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "auto_map": {"AutoConfig": "configuration_kimi.KimiConfig"},
            "text_config": {
                "hidden_size": 7168,
                "num_hidden_layers": 61,
                "vocab_size": 163840,
                "max_position_embeddings": 131072,
                "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
                "eos_token_id": [163585, 163586],
            },
        }
    )
    assert (config.facts.hidden_size, config.facts.num_hidden_layers, config.facts.vocab_size) == (
        7168,
        61,
        163840,
    )
    assert config.facts.context_tokens == 131072
    assert config.special_ids == (("eos_token_id", 163585), ("eos_token_id", 163586))
    assert config.code == ("configuration_kimi.KimiConfig",)


# What get_context_length of SGLang 0.5.23 answered for a Qwen3Config of transformers 5.19 with these values.
LINEAR, YARN = {"type": "linear", "factor": 4.0}, {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 40960}, 40960),
        ({"max_position_embeddings": 40960, "rope_scaling": None}, 40960),
        ({"max_position_embeddings": 40960, "rope_scaling": LINEAR}, 163840),
        ({"max_position_embeddings": 40960, "rope_parameters": LINEAR}, 163840),
        ({"max_position_embeddings": 40960, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, 81920),
        ({"max_position_embeddings": 40960, "rope_scaling": {"rope_type": "mrope", "factor": 3}}, 122880),
        ({"max_position_embeddings": 40960, "rope_scaling": {"rope_type": "mrope"}}, 40960),
        ({"max_position_embeddings": 40960, "rope_scaling": YARN}, 40960),
        (
            {
                "max_position_embeddings": 40960,
                "rope_scaling": {**YARN, "original_max_position_embeddings": 40960},
            },
            40960,
        ),
        (
            {
                "max_position_embeddings": 40960,
                "rope_scaling": {**LINEAR, "original_max_position_embeddings": 4096},
            },
            40960,
        ),
        ({"max_position_embeddings": 8192, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 8192),
        ({"max_position_embeddings": 40960, "rope_parameters": {"full_attention": LINEAR}}, 40960),
        ({"max_position_embeddings": 40960, "rope_parameters": {"rope_type": "default"}}, 40960),
        ({"seq_length": 100, "max_position_embeddings": 40960}, 100),
        ({"model_max_length": 100, "max_position_embeddings": 40960}, 100),
        ({"max_position_embeddings": 40960, "rope_scaling": {"type": "linear", "factor": None}}, 40960),
        ({}, None),  # the class's own default, which config.json does not say
    ],
)
def test_a_models_context_is_derived_as_sglang_derives_it(config, expected):
    for data in (config, {"text_config": config}):
        assert parse_config(data).facts.context_tokens == expected


@pytest.mark.parametrize("text", [b"<!DOCTYPE html><html></html>", b"", b"[]", b"\xff\xfe"])
def test_what_is_no_config_is_not_taken_for_one(text):
    assert parse_config_text(text) is None


@pytest.mark.parametrize(
    ("steps", "stalled"),
    [
        ([(10, 0), (20, 0), (31, 0)], True),
        ([(10, 0), (20, 30000), (31, 30000)], True),  # less than the least rate over the window
        ([(10, 0), (20, 40000), (45, 40000)], False),
        ([(29, 40000), (58, 80000)], False),
        ([(29, -500), (45, -500)], False),  # a restarted file begins at zero
    ],
)
def test_a_transfer_is_stalled_when_the_disk_does_not_grow(steps, stalled):
    growth = Growth(since_s=0.0, mark_bytes=1000)
    for now, more in steps:
        growth = grown(growth, now, 1000 + more, window_s=30.0)
    assert (stalled_s(growth, steps[-1][0]) > 30.0) is stalled


def test_waiting_that_the_server_asked_for_is_no_stall():
    growth = excused(Growth(since_s=0.0, mark_bytes=0), 500.0)
    assert stalled_s(growth, 510.0) == 10.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, 10.0),
        ({"Retry-After": "soon"}, None),
        ({"RateLimit": '"api";r=0;t=55'}, 55.0),
        ({"RateLimit": '"api";r=7;t=55'}, None),
        ({"RateLimit": "nonsense;=;;t"}, None),
        ({}, None),
    ],
)
def test_the_servers_own_waiting_time_is_read(headers, expected):
    assert asked_wait_s(headers, 1000.0) == expected


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (Attempt(number=1), 1.0),
        (Attempt(number=4), 8.0),
        (Attempt(number=5), None),
        (Attempt(number=1, status=404), None),
        (Attempt(number=1, status=503), 1.0),
        (Attempt(number=1, status=429, asked_wait_s=30.0), 31.0),
        (Attempt(number=1, status=429, asked_wait_s=4000.0), None),
    ],
)
def test_the_next_try_waits_as_asked_or_backs_off(attempt, expected):
    assert wait_before_next_s(attempt, attempts=5) == expected


def header(**tensors):
    return json.dumps(
        {n: {"dtype": "BF16", "shape": [1], "data_offsets": o} for n, o in tensors.items()}
    ).encode()


@pytest.mark.parametrize(
    ("text", "size", "problem"),
    [
        (header(a=[0, 10], b=[10, 30]), 8 + len(header(a=[0, 10], b=[10, 30])) + 30, None),
        (header(a=[0, 10]), 8 + len(header(a=[0, 10])) + 9, "the header describes"),
        (b"not json", 100, "not JSON"),
        (b"[1]", 100, "not a JSON object"),
        (b'{"__metadata__": {"a": "b"}}', 36, None),
    ],
)
def test_a_safetensors_header_fits_its_file(text, size, problem):
    found = problem_of_header(text, size)
    assert found is None if problem is None else problem in found


@pytest.mark.parametrize(
    ("first", "size"), [(b"", 0), (b"version ", 134), (b"\xff" * 8, 1000), (b"\1" + b"\0" * 7, 1000)]
)
def test_an_impossible_header_length_is_seen(first, size):
    assert header_bytes(first, size) is None


def test_git_and_lfs_hashes_both_prove_a_small_file():
    import subprocess

    content = b"hello weights\n"
    git = (
        subprocess.run(["git", "hash-object", "--stdin"], input=content, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )
    good = ModelFile(path="a", size_bytes=len(content), git_sha1=git)
    assert judged_bytes(good, content).status is FileStatus.VERIFIED
    assert judged_bytes(good, content + b"!").status is FileStatus.WRONG_CONTENT
    assert judged_bytes(good, b"<html>").status is FileStatus.WEB_PAGE


def lock_of(**ref):
    made = ModelRef(**{"repo": "a/b", "revision": "a" * 40, **ref})
    entries = (
        ModelFile(path="z.py", size_bytes=2, sha256="1" * 64, git_sha1="2" * 40),
        ModelFile(path="config.json", size_bytes=3, sha256="3" * 64),
    )
    return made, locked(made, "a" * 40, entries)


def test_a_lock_survives_its_text_and_is_the_same_for_the_same_content():
    _, entry = lock_of(trust_remote_code=True, allow_patterns=("x",))
    lock = Lock(profile="p", target=entry, draft=entry)
    text = dump(lock)
    assert dump(parse(text, where="here")) == text
    assert re.search(r'"sha256": "1{64}"', text)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, None),
        ({"revision": "main"}, None),
        ({"revision": None}, None),
        ({"revision": "b" * 40}, "commit"),
        ({"repo": "a/c"}, "a/c"),
        ({"trust_remote_code": True}, "trust_remote_code"),
        ({"allow_patterns": ("*.pt",)}, "allow_patterns"),
        ({"ignore_patterns": ("*.pt",)}, "ignore_patterns"),
    ],
)
def test_a_lock_stands_for_the_profile_it_was_made_from(change, word):
    _, entry = lock_of()
    ref, _ = lock_of(**change)
    found = difference(ref, entry)
    assert found is None if word is None else word in found


A, B, C = "a" * 40, "b" * 40, "c" * 40


@pytest.mark.parametrize(
    ("steps", "own", "others"),
    [
        ([(A, True)], A, []),
        ([(A, True), (C, False)], A, [C]),
        ([(C, False), (A, True)], A, [C]),
        ([(C, False)], None, [C]),
        ([(A, True), (A, False)], A, []),
        ([(A, True), (C, False), (C, True)], C, []),
        ([(A, True), (C, False), (C, False)], A, [C]),
        ([(A, True), (B, True)], B, []),
    ],
)
def test_what_options_ask_for_stands_beside_what_the_profile_names(steps, own, others):
    lock = Lock(profile="p")
    for commit, by_profile in steps:
        ref = ModelRef(repo="a/b", revision=commit)
        lock = lock.with_entry("target", ref, locked(ref, commit, ()), own=by_profile)
        assert lock.fitting("target", ref) is not None
    assert (lock.target.commit if lock.target else None) == own
    assert [e.commit for e in lock.others] == others
    assert parse(dump(lock), where="here") == lock


def test_changed_code_is_named():
    _, old = lock_of(trust_remote_code=True)
    assert code_changes(old, old.code) == ()
    assert code_changes(old, ()) == ("z.py (gone)",)
    _, untrusted = lock_of()
    assert code_changes(untrusted, old.code) == ()


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a/../b", "..", "a//b", "a\\b", "./a", "a\0b"])
def test_a_path_that_leaves_its_model_is_refused(path):
    assert not is_safe_path(path)
    text = dump(
        Lock(
            profile="p",
            target=locked(ModelRef(repo="a/b"), None, (ModelFile(path=path, size_bytes=1, sha256="x"),)),
        )
    )
    with pytest.raises(Permanent, match="damaged"):
        parse(text, where="here")


def engine_case(architecture, build=None, draft="DFlashDraftModel"):
    from dflashctl.commands.weights_engine import engine_findings
    from dflashctl.core.weights import ModelPlan

    models = [
        ModelPlan(role=role, label=f"a/{role}", repo=None, commit=None, folder="/x", files=())
        for role in ("target", "draft")
    ]
    configs = [parse_config({"architectures": [name] if name else []}) for name in (architecture, draft)]
    return engine_findings(pair().profile, models, configs, build)


@pytest.mark.parametrize(
    ("architecture", "release", "draft", "expected"),
    [
        ("KimiK3ForConditionalGeneration", "0.5.20", "DFlashDraftModel", ["pair.hook"]),
        ("KimiK3ForConditionalGeneration", "0.5.21", "DFlashDraftModel", []),
        ("KimiK3ForConditionalGeneration", "0.5.16", "DFlashDraftModel", ["pair.architecture"]),
        ("KimiK3ForConditionalGeneration", None, "DFlashDraftModel", []),
        ("KimiLinearForCausalLM", None, "DFlashDraftModel", ["pair.hook"]),
        ("KimiLinearForCausalLM", "0.5.23", "DFlashDraftModel", ["pair.hook"]),
        ("Qwen3ForCausalLM", "0.5.17", "DFlash2DraftModel", ["pair.architecture"]),
        ("Qwen3ForCausalLM", "0.5.19", "DFlash2DraftModel", []),
        ("NobodyKnowsForCausalLM", None, "DFlashDraftModel", ["pair.architecture"]),
        (None, None, "DFlashDraftModel", ["pair.architecture"]),
        ("Qwen3ForCausalLM", "9.9.9", "DFlashDraftModel", []),
    ],
)
def test_the_engine_must_have_both_classes_and_the_hook(architecture, release, draft, expected):
    from dflashctl.core.engine import EngineBuild

    build = EngineBuild(release=release) if release else None
    assert [f.id for f in engine_case(architecture, build, draft)] == expected


def test_a_changed_build_is_judged_by_its_own_classes():
    from dflashctl.core.engine import EngineBuild

    hooks = (("KimiK3ForConditionalGeneration", ("dflash",)), ("DFlashDraftModel", ()))
    build = EngineBuild(release="0.5.20", known=False, model_hooks=hooks)
    assert engine_case("KimiK3ForConditionalGeneration", build) == ()
    bare = EngineBuild(release="0.5.23", known=False, model_hooks=())
    assert {f.severity for f in engine_case("KimiK3ForConditionalGeneration", bare)} == {Severity.ERROR}
