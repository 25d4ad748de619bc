"""Rules against the newest release itself: its own argument resolution says the same, on GPUs that it is told of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dflashctl
from dflashctl.core.engine import ModelFacts
from dflashctl.core.findings import Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.rules import judge
from dflashctl.engines.sglang.situation import Situation
from dflashctl.engines.sglang.translate import modernised
from dflashctl.engines.sglang.words import read_words

pytestmark = pytest.mark.real_parsers
TINY = Path(dflashctl.__file__).parent / "reference" / "tiny"
B300, H100, A100 = (10, 3), (9, 0), (8, 0)
ALIASES = {"speculative_dflash_block_size": "speculative_num_draft_tokens"}


@pytest.fixture(scope="module")
def k3(tmp_path_factory):
    """A target of Kimi-K3's shape and a draft whose every layer slides; configs and a tokenizer, no weights."""
    target, draft = tmp_path_factory.mktemp("target"), tmp_path_factory.mktemp("draft")
    linear = {
        "kda_layers": [layer for layer in range(1, 13) if layer % 4],
        "full_attn_layers": [4, 8, 12],
        "num_heads": 4,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
    }
    text = {
        "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "vocab_size": 1024, "hidden_size": 256,
        "head_dim": 64, "intermediate_size": 512, "num_hidden_layers": 12, "num_attention_heads": 4,
        "num_key_value_heads": 4, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": True, "num_experts": 8, "num_experts_per_token": 2,
        "moe_intermediate_size": 64, "max_position_embeddings": 131072, "linear_attn_config": linear,
    }  # fmt: skip
    whole = {
        "architectures": ["KimiK3ForConditionalGeneration"],
        "model_type": "kimi_k3",
        "text_config": text,
        "vision_config": {},
    }
    (target / "config.json").write_text(json.dumps({**whole, "torch_dtype": "bfloat16"}))
    config = json.loads((TINY / "draft" / "config.json").read_text())
    config |= {
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention"] * 6,
        "sliding_window": 4096,
        "block_size": 8,
    }
    (draft / "config.json").write_text(json.dumps(config))
    for folder in (target, draft):
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(TINY / "target" / name, folder / name)
    return target, draft


def ours(words, capability, env, target, draft):
    have = catalogue.catalogue(catalogue.newest())
    read = read_words(words, have, "")
    return judge(
        Situation(
            release=have.release,
            have=have,
            options={one.flag: one.values for one in modernised(read.wishes)},
            environment=env,
            capabilities=(capability,),
            wants_dflash=True,
            target=target,
            draft=draft,
        )
    )


class Compared:
    def __init__(self, real, judgement):
        self.error, self.said, self.fields = real["error"], real["said"], real["resolved"]
        self.refused = [f.id for f in judgement.findings if f.severity is Severity.ERROR]
        self.ids = [f.id for f in judgement.findings]
        self.resolved = judgement.resolved


@pytest.fixture
def tiny(resolution):
    facts = (
        ModelFacts(architecture="Qwen3ForCausalLM"),
        ModelFacts(architecture="DFlashDraftModel", block_size=16, num_hidden_layers=2, hidden_size=256),
    )

    def compare(text, capability=B300, env=None):
        return compared(resolution, text, capability, env or {}, (TINY / "target", TINY / "draft"), facts)

    return compare


@pytest.fixture
def kimi(resolution, k3):
    facts = (
        ModelFacts(architecture="KimiK3ForConditionalGeneration"),
        ModelFacts(
            architecture="DFlashDraftModel",
            block_size=8,
            num_hidden_layers=6,
            layer_types=("sliding_attention",) * 6,
        ),
    )

    def compare(text, capability=B300, env=None):
        return compared(resolution, text, capability, env or {}, k3, facts)

    return compare


def compared(resolution, text, capability, env, folders, facts):
    models = [
        "--model-path", str(folders[0]), "--device", "cuda", "--trust-remote-code",
        "--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", str(folders[1]),
    ]  # fmt: skip
    words = [*models, *text.split()]
    real = resolution.ask({"args": words, "capability": capability, "env": env})
    return Compared(real, ours(words, capability, env, *facts))


def agree(found):
    """Nothing is refused on either side, and every option that a rule says the engine sets has that value there."""
    assert found.error is None
    assert found.refused == []
    for argument in found.resolved:
        name = argument.flag[2:].replace("-", "_")
        if name in found.fields:
            assert str(found.fields[name]) == argument.values[0], argument


TINY_REFUSED = [
    ("--attention-backend triton --pp-size 2", B300, "pipeline_parallel", "pp_size == 1"),
    ("--attention-backend triton --speculative-dflash-block-size 0", B300, "block_not_positive", "to be positive"),
    (
        "--attention-backend triton --speculative-dflash-block-size 8 --speculative-num-draft-tokens 16", B300,
        "block_given_twice", "they differ",
    ),
    ("--attention-backend triton --speculative-draft-window-size 8", B300, "window_below_block", "window_size=8"),
    ("--attention-backend triton --speculative-draft-window-size 0", B300, "window_not_positive", "must be positive"),
    ("--attention-backend triton --attn-dp-size 2 --tp-size 2", B300, "dp_attention_without_lm_head", "--enable-dp-lm-head"),
    (
        "--attention-backend triton --attn-dp-size 2 --tp-size 4 --enable-dp-lm-head --attn-cp-size 2", B300,
        "dp_attention_with_context_parallel", "context parallel",
    ),
    ("--attention-backend triton --speculative-algorithm BOGUS", B300, "algorithm_unknown", "Unknown speculative algorithm"),
    (
        "--attention-backend triton --dp-size 2 --attn-dp-size 2 --tp-size 2 --enable-dp-lm-head", B300,
        "replicas_with_attention_groups", "--attn-dp-size",
    ),
    ("--attention-backend trtllm_mla", H100, "trtllm_mla_not_blackwell", "only supported on Blackwell"),
    ("--attention-backend trtllm_mha", A100, "trtllm_mha_capability", "requires Hopper"),
    ("--attention-backend trtllm_mla --kv-cache-dtype fp8_e5m2", B300, "kv_type_refused", "kv-cache-dtype"),
    (
        "--attention-backend triton --linear-attn-decode-backend flashinfer", B300,
        "linear_flashinfer_state_type", "--mamba-ssm-dtype bfloat16",
    ),
    (
        "--attention-backend triton --disaggregation-mode decode --disaggregation-decode-enable-radix-cache", B300,
        "pd_decode_radix", "radix",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "capability", "rule", "said"), TINY_REFUSED)
def test_what_sglang_refuses_we_refuse_for_the_same_reason(tiny, text, capability, rule, said):
    found = tiny(text, capability)
    assert said in (found.error or "accepted")
    assert rule in found.refused


def test_coordination_in_the_environment_is_refused_by_both(tiny):
    found = tiny(
        "--attention-backend triton --attn-dp-size 2 --tp-size 2 --enable-dp-lm-head",
        env={"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "1"},
    )
    assert "coordination" in found.error
    assert "dp_attention_with_coordination" in found.refused


TINY_CHANGED = [
    ("--attention-backend triton", "requests_limited", "reset to 48"),
    ("--attention-backend triton --speculative-num-steps 3", "num_steps_forced", "num_steps"),
    ("--attention-backend triton --speculative-eagle-topk 4", "topk_forced", "eagle_topk"),
    ("--attention-backend triton --speculative-draft-attention-backend aiter", "draft_backend_falls_back", "Falling back"),
    ("--attention-backend trtllm_mla", "draft_backend_inherited", "Falling back"),
    (
        "--attention-backend triton --speculative-draft-attention-backend trtllm_mha",
        "draft_trtllm_mha_not_sliding", "Falling back to 'fa4'",
    ),
    ("--attention-backend trtllm_mha", "draft_trtllm_mha_not_sliding", "Falling back to 'fa4'"),
    ("--attention-backend trtllm_mla --page-size 16", "page_size_forced", "from 16 to 64"),
    ("--attention-backend trtllm_mha --page-size 8", "page_size_forced", "from 8 to 64"),
    ("--attention-backend fa4 --page-size 64", "page_size_forced", "from 64 to 128"),
    ("--attention-backend fa4", "page_size_default", "to 128"),
    ("--attention-backend trtllm_mla", "page_size_default", "to 64"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "said"), TINY_CHANGED)
def test_what_sglang_changes_we_tell_with_the_same_value(tiny, text, rule, said):
    found = tiny(text)
    assert rule in found.ids
    assert any(said in line for line in found.said), found.said
    agree(found)


@pytest.mark.parametrize(
    "text",
    [
        "--attention-backend triton --speculative-dflash-block-size 8 --max-running-requests 4",
        "--attention-backend triton --speculative-draft-window-size 16",
        "--attention-backend triton --enable-mixed-chunk",
        "--attention-backend triton --speculative-use-rejection-sampling",
        "--attention-backend triton --speculative-draft-attention-backend fa4",
    ],
)
def test_what_sglang_takes_we_take(tiny, text):
    agree(tiny(text))


CARD = (
    "--tp-size 8 --speculative-dflash-block-size 8 --speculative-draft-attention-backend trtllm_mha "
    "--attention-backend trtllm_mla --linear-attn-prefill-backend ptx_kda --linear-attn-decode-backend triton "
    "--linear-attn-verify-backend triton --enable-linear-replayssm-spec --linear-replayssm-cache-len 32 "
    "--cuda-graph-backend-prefill breakable --cuda-graph-max-bs-prefill 16384"
)


def test_the_card_of_kimi_k3_resolves_as_we_say(kimi):
    found = kimi(CARD)
    agree(found)
    assert found.fields["speculative_draft_attention_backend"] == "trtllm_mha"
    assert {"replayssm_state_default", "state_cache_default", "page_size_default", "requests_limited"} <= set(
        found.ids
    )


def test_kimi_k3_s_own_defaults_are_told(kimi):
    found = kimi("--tp-size 8 --moe-runner-backend triton")
    assert {"verify_backend_default", "k3_attention_default", "draft_backend_inherited"} <= set(found.ids)
    agree(found)


KIMI_REFUSED = [
    ("--mamba-radix-cache-strategy no_buffer", "no_buffer_refused", "no_buffer"),
    ("--mamba-track-interval 200 --page-size 64", "track_interval_page", "AssertionError"),
    ("--mamba-track-interval 8 --speculative-num-draft-tokens 16", "track_interval_short", "AssertionError"),
    (
        "--enable-linear-replayssm-spec --linear-attn-decode-backend cutedsl",
        "replayssm_decode_backend",
        "triton or flashinfer",
    ),
    ("--enable-linear-replayssm-spec --disaggregation-mode prefill", "pd_prefill_replayssm", "PD prefill"),
]


@pytest.mark.parametrize(("text", "rule", "said"), KIMI_REFUSED)
def test_what_sglang_refuses_for_kimi_k3_we_refuse(kimi, text, rule, said):
    found = kimi(text)
    assert said in (found.error or "accepted").replace("\n", " ")
    assert rule in found.refused


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("--speculative-dflash-block-size 16 --enable-linear-replayssm-spec", "replayssm_ring"),
        (
            "--speculative-dflash-block-size 16 --linear-attn-verify-backend nv_cutedsl",
            "verify_cutedsl_block",
        ),
        ("--mamba-track-interval 200", "track_interval_page_unchecked"),
        ("--mamba-track-interval 4", "track_interval_short_unchecked"),
    ],
)
def test_what_sglang_says_too_late_or_never_we_say_before(kimi, text, rule):
    found = kimi(text)
    assert found.error is None
    assert rule in found.ids
