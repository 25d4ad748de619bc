"""The whole command: shipped profiles, raw arguments, environment, builds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.engine import EngineBuild, ModelFacts
from dflashctl.core.findings import Severity
from dflashctl.core.option import Option
from dflashctl.core.profile import Algorithm, Speculative
from dflashctl.engines import ENGINES
from dflashctl.engines.sglang import command, effective, endpoints

from .asking import B300, H100, profile, request

CARD_K3 = (
    "--speculative-algorithm DFLASH --speculative-draft-model-path modal-labs/Kimi-K3-DFlash "
    "--speculative-dflash-block-size 16 --speculative-draft-attention-backend trtllm_mha "
    "--attention-backend trtllm_mla --linear-attn-prefill-backend ptx_kda --linear-attn-decode-backend triton "
    "--linear-attn-verify-backend triton --enable-linear-replayssm-spec --linear-replayssm-cache-len 32 "
    "--moe-runner-backend flashinfer_mxfp4 --cuda-graph-backend-prefill breakable --cuda-graph-max-bs-prefill 16384 "
    "--tp-size 8 --mem-fraction-static 0.88 --host 0.0.0.0 --port 30000 --trust-remote-code"
)


def errors(made):
    return [finding.id for finding in made.findings if finding.severity is Severity.ERROR]


def words(made):
    return " ".join(made.module_argv)


def groups(text):
    found, current = set(), ""
    for word in text.split():
        if word.startswith("--"):
            found.add(current.strip())
            current = word
        else:
            current += " " + word
    return (found | {current.strip()}) - {""}


def test_the_k3_profile_with_block_16_is_the_card_s_command_to_the_letter():
    mine = profile("kimi-k3-b300")
    mine = replace(mine, speculative=replace(mine.speculative, block_size=16))
    made = command(request("kimi-k3-b300", "0.5.23", profile=mine, capability=B300))
    assert errors(made) == []
    assert groups(CARD_K3) <= groups(words(made))
    assert dict(made.env) == {"SGLANG_ENABLE_OVERLAP_PLAN_STREAM": "1"}


@pytest.mark.parametrize("release", ["0.5.17", "0.5.18", "0.5.19", "0.5.20"])
def test_k3_is_refused_where_the_model_cannot_feed_a_dflash_draft(release):
    made = command(request("kimi-k3-b300", release))
    assert errors(made) == ["target_without_dflash_hook"]
    (finding,) = [f for f in made.findings if f.severity is Severity.ERROR]
    assert "0.5.21 and later" in finding.fix


def test_dead_variables_are_dropped_with_a_reason():
    made = command(request("kimi-k2.5-b200", "0.5.23"))
    assert dict(made.env) == {"SGLANG_ENABLE_OVERLAP_PLAN_STREAM": "1"}
    reasons = {t.from_: t.reason for t in made.translations}
    assert "overlapped speculation is on" in reasons["SGLANG_ENABLE_SPEC_V2=1"]
    assert "no release reads it" in reasons["SGLANG_ENABLE_DFLASH_SPEC_V2=1"]


def test_a_variable_that_turned_overlap_off_becomes_the_option():
    mine = replace(profile("tiny-gpu"), environment={"SGLANG_ENABLE_SPEC_V2": "0"})
    made = command(request("tiny-gpu", "0.5.23", profile=mine))
    assert "--disable-overlap-schedule" in made.module_argv
    assert made.env == ()


def test_a_mistyped_variable_is_told_its_nearest_name_and_a_foreign_one_is_left_alone():
    mine = replace(
        profile("tiny-gpu"), environment={"SGLANG_ENABLE_OVERLAP_PLAN_STREEM": "1", "NCCL_DEBUG": "INFO"}
    )
    made = command(request("tiny-gpu", "0.5.23", profile=mine))
    assert dict(made.env) == {"NCCL_DEBUG": "INFO"}
    (finding,) = [f for f in made.findings if f.id == "variable_unknown"]
    assert "SGLANG_ENABLE_OVERLAP_PLAN_STREAM" in finding.fix


def test_a_raw_argument_wins_over_the_profile_and_its_alias():
    made = command(
        request(
            "tiny-gpu", "0.5.23", raw=("--speculative-num-draft-tokens", "8", "--mem-fraction-static", "0.2")
        )
    )
    assert "--speculative-num-draft-tokens 8" in words(made)
    assert "--speculative-dflash-block-size" not in words(made)
    assert "--mem-fraction-static 0.2" in words(made)
    origins = {argument.flag: argument.origin for argument in made.arguments}
    assert origins["--mem-fraction-static"] == "after --"


@pytest.mark.parametrize(
    "raw",
    [
        ("--model-path", "x"),
        ("--model=x",),
        ("--revision", "main"),
        ("--speculative-draft-model-path", "x"),
        ("--speculative-draft-model", "x"),
        ("--speculative-draft-model-revision", "main"),
        ("--speculative-draft-model-rev", "main"),
    ],
)
@pytest.mark.parametrize("name", ["tiny-gpu", "kimi-k3-b300"])
def test_raw_arguments_cannot_swap_the_models_under_the_plan(name, raw):
    assert "model_in_raw_arguments" in errors(command(request(name, "0.5.23", raw=raw)))
    mine = replace(profile(name), extra_args=raw)
    assert "model_in_raw_arguments" in errors(command(request(name, "0.5.23", profile=mine)))


@pytest.mark.parametrize(
    ("inherited", "own", "refusals"),
    [
        ({"SGLANG_RAGGED_VERIFY_MODE": "bogus"}, {}, ["ragged_mode_unknown"]),
        ({"SGLANG_RAGGED_VERIFY_MODE": "static"}, {}, []),
        ({"SGLANG_RAGGED_VERIFY_MODE": "bogus"}, {"SGLANG_RAGGED_VERIFY_MODE": "static"}, []),
        (
            {"SGLANG_RAGGED_VERIFY_MODE": "static"},
            {"SGLANG_RAGGED_VERIFY_MODE": "bogus"},
            ["ragged_mode_unknown"],
        ),
    ],
)
def test_settings_of_the_caller_s_environment_are_judged_as_the_server_gets_them(inherited, own, refusals):
    mine = replace(profile("tiny-gpu"), environment=own)
    made = command(request("tiny-gpu", "0.5.23", profile=mine, inherited=inherited))
    assert errors(made) == refusals
    assert dict(made.env) == own


@pytest.mark.parametrize(
    ("raw", "path", "value"),
    [
        (("--port", "31000"), "server.port", 31000),
        (("--port=31000",), "server.port", 31000),
        (("--tp", "2"), "parallel.tensor", 2),
        (("--served-model-name", "n"), "server.served_model_name", "n"),
        (("--speculative-num-draft-tokens", "4"), "speculative.block_size", 4),
        (("--speculative-dflash-draft-window-size", "64"), "speculative.draft_window_size", 64),
        (("--port", "x"), "server.port", 30000),
    ],
)
def test_the_plan_knows_what_raw_arguments_set(raw, path, value):
    found = effective(profile("tiny-gpu"), raw, EngineBuild(release="0.5.23"))
    section, name = path.split(".")
    assert getattr(getattr(found, section), name) == value


def test_a_target_in_a_folder_keeps_its_repository_s_name():
    asked = replace(request("kimi-k3-b300", "0.5.23"), target_model="/hub/snapshots/x")
    made = command(asked)
    assert "--model-path /hub/snapshots/x --served-model-name moonshotai/Kimi-K3" in words(made)
    assert "--revision" not in made.module_argv


def test_without_speculation_nothing_of_the_draft_is_left():
    mine = replace(profile("kimi-k3-b300"), speculative=Speculative(algorithm=Algorithm.NONE))
    made = command(request("kimi-k3-b300", "0.5.23", profile=mine, capability=B300))
    assert errors(made) == []
    assert "speculative" not in words(made)
    assert "replayssm" not in words(made)


def test_extra_args_of_a_profile_are_checked_like_raw_ones():
    mine = replace(profile("tiny-gpu"), extra_args=("--no-such", "1"))
    assert errors(command(request("tiny-gpu", "0.5.23", profile=mine))) == ["option_unknown"]


def test_a_loose_word_is_refused():
    assert errors(command(request("tiny-gpu", "0.5.23", raw=("oops",)))) == ["word_without_option"]


def test_what_was_read_from_a_config_counts_more_than_what_is_known_by_name():
    read = ModelFacts(architecture="Qwen3ForCausalLM")
    assert "target_without_dflash_hook" not in errors(
        command(request("kimi-k3-b300", "0.5.20", target_facts=read))
    )


def branch(*options, hooks):
    """A build of its own, such as an image made of a branch."""
    usual = tuple(
        Option(strings=(flag,), dest=flag[2:].replace("-", "_"), nargs=None if takes else 0)
        for flag, takes in options
    )
    return EngineBuild(
        release="0.5.17",
        known=False,
        local_version="0.5.17.dev9+gabc",
        options=usual,
        model_hooks=hooks,
        installed=True,
    )


def test_a_changed_build_is_spoken_to_in_its_own_options_and_judged_by_its_own_models():
    flags = [(a.flag, bool(a.values)) for a in command(request("kimi-k3-b300", "0.5.23")).arguments]
    flags = [
        ("--enable-gdn-replayssm-spec", False) if f == "--enable-linear-replayssm-spec" else (f, t)
        for f, t in flags
    ]
    can = (("KimiK3ForConditionalGeneration", ("dflash",)), ("DFlashDraftModel", ()))
    made = command(request("kimi-k3-b300", "", build=branch(*flags, hooks=can)))
    assert errors(made) == []
    assert "--enable-gdn-replayssm-spec" in made.module_argv
    assert "engine_build_changed" in [finding.id for finding in made.findings]
    cannot = (("KimiK3ForConditionalGeneration", ("dspark",)), ("DFlashDraftModel", ()))
    made = command(request("kimi-k3-b300", "", build=branch(*flags, hooks=cannot)))
    assert errors(made) == ["target_without_dflash_hook"]


def test_a_release_that_nobody_knows_is_judged_as_its_neighbour_and_that_is_said():
    made = command(request("tiny-gpu", "0.5.99"))
    (finding,) = [f for f in made.findings if f.id == "engine_build_unknown"]
    assert "judged as 0.5.23" in finding.summary
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("release", "ready", "codes"),
    [
        ("0.5.11", None, (-9, 137)),
        ("0.5.18", None, (-9, 137)),
        ("0.5.19", None, (0,)),
        ("0.5.20", "/ready", (0,)),
    ],
)
def test_readiness_and_exit_codes_by_release(release, ready, codes):
    found = endpoints(release)
    assert (found.ready, found.orderly_exit_codes) == (ready, codes)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_engine_offers_what_the_plan_asks_for(name):
    engine = ENGINES[name]
    assert name == engine.NAME
    assert engine.NEWEST_RELEASE in engine.RELEASES
    assert engine.install_hint(engine.NEWEST_RELEASE)
    assert engine.endpoints(engine.NEWEST_RELEASE).health == "/health"
    assert (
        engine.effective(
            profile("tiny-gpu"), ("--port", "1234"), EngineBuild(release=engine.NEWEST_RELEASE)
        ).server.port
        == 1234
    )


def test_hopper_gets_no_blackwell_backend():
    assert "trtllm_mla_not_blackwell" in errors(command(request("kimi-k2.5-b200", "0.5.23", capability=H100)))
