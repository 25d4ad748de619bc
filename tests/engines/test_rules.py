"""Every rule: a situation in which it speaks, and a near one in which it is silent."""

from __future__ import annotations

import re

import pytest

from dflashctl.core.engine import ModelFacts
from dflashctl.core.findings import Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.rules import ALL_RULES, judge
from dflashctl.engines.sglang.situation import Situation
from dflashctl.engines.sglang.translate import modernised
from dflashctl.engines.sglang.words import read_words

B300, B200, H100, RTX = (10, 3), (10, 0), (9, 0), (12, 0)
K3 = ModelFacts(architecture="KimiK3ForConditionalGeneration")
K25 = ModelFacts(architecture="KimiK25ForConditionalGeneration")
QWEN = ModelFacts(architecture="Qwen3ForCausalLM")
B16 = ModelFacts(architecture="DFlashDraftModel", block_size=16)
SLIDING = ModelFacts(num_hidden_layers=2, layer_types=("sliding_attention",) * 2, hidden_size=1)
FULL = ModelFacts(num_hidden_layers=2, layer_types=("sliding_attention", "full_attention"), hidden_size=1)
SPEC = "--speculative-algorithm DFLASH --speculative-draft-model-path d "


def situation(words, release="0.5.23", *, gpu=None, env=None, dflash=True, **facts):
    have = catalogue.catalogue(release)
    newest = catalogue.catalogue("0.5.23")
    read = read_words((SPEC * dflash + words).split(), newest if release == "0.5.9" else have, "")
    assert not read.findings, read.findings
    return Situation(
        release=release,
        have=have,
        options={one.flag: one.values for one in modernised(read.wishes)},
        environment=env or {},
        capabilities=(gpu,) if gpu else (),
        wants_dflash=dflash,
        **facts,
    )


def ids(*args, **kwargs):
    return {finding.id for finding in judge(situation(*args, **kwargs)).findings}


def case(rule, speaks, silent):
    return pytest.param(rule, speaks, silent, id=f"{rule}-{speaks.get('release', '0.5.23')}")


def at(words="", release="0.5.23", **given):
    return {"words": words, "release": release, **given}


RING = "--enable-linear-replayssm-spec --linear-replayssm-cache-len "
CASES = [
    case("dflash_absent", at(release="0.5.10", words=""), at(release="0.5.11")),
    case(
        "dspark_absent",
        at("--speculative-algorithm DSPARK", "0.5.15"),
        at("--speculative-algorithm DSPARK", "0.5.16"),
    ),
    case("target_class_absent", at(release="0.5.16", target=K3), at(release="0.5.21", target=K3)),
    case("target_without_dflash_hook", at(release="0.5.20", target=K3), at(release="0.5.21", target=K3)),
    case(
        "draft_class_absent",
        at(release="0.5.18", draft=ModelFacts(architecture="DFlash2DraftModel")),
        at(release="0.5.19", draft=ModelFacts(architecture="DFlash2DraftModel")),
    ),
    case("overlap_off", at(release="0.5.13"), at(release="0.5.14")),
    case("device_refused", at("--device npu", "0.5.16"), at("--device npu", "0.5.17")),
    case("device_refused", at("--device xpu", "0.5.19"), at("--device xpu", "0.5.20")),
    case("device_refused", at("--device cpu"), at("--device cuda")),
    case("requests_without_grammar", at(release="0.5.16"), at(release="0.5.17")),
    case("requests_without_logprobs", at(release="0.5.17"), at(release="0.5.18")),
    case("pipeline_parallel", at("--pp-size 2"), at("--pp-size 1")),
    case(
        "dp_attention_refused", at("--enable-dp-attention --dp-size 2", "0.5.22"), at("--dp-size 2", "0.5.22")
    ),
    case("dp_attention_without_lm_head", at("--attn-dp-size 2"), at("--attn-dp-size 2 --enable-dp-lm-head")),
    case(
        "dp_attention_with_context_parallel", at("--attn-dp-size 2 --attn-cp-size 2"), at("--attn-cp-size 2")
    ),
    case(
        "dp_attention_with_coordination",
        at("--attn-dp-size 2", env={"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "1"}),
        at("--attn-dp-size 2", env={"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "0"}),
    ),
    case(
        "pd_absent",
        at("--disaggregation-mode decode", "0.5.17"),
        at("--disaggregation-mode decode", "0.5.18"),
    ),
    case("pd_experimental", at("--disaggregation-mode decode"), at("--disaggregation-mode null")),
    case(
        "pd_decode_radix",
        at("--disaggregation-mode decode --disaggregation-decode-enable-radix-cache"),
        at("--disaggregation-mode decode"),
    ),
    case(
        "pd_prefill_replayssm",
        at("--disaggregation-mode prefill --enable-linear-replayssm-spec"),
        at("--disaggregation-mode decode --enable-linear-replayssm-spec"),
    ),
    case("pd_role_switch", at("--enable-pd-role-switch"), at("--enable-pd-role-switch", dflash=False)),
    case("several_nodes", at("--nnodes 2"), at("--nnodes 1")),
    case(
        "k3_dcp_decode_backend",
        at("--dcp-size 8 --attention-backend trtllm_mla", target=K3),
        at("--dcp-size 8 --decode-attention-backend cutedsl_mla --attention-backend trtllm_mla", target=K3),
    ),
    case(
        "k3_dcp_symm_mem", at("--dcp-size 8 --enable-symm-mem", target=K3), at("--enable-symm-mem", target=K3)
    ),
    case(
        "lora_plan_stream",
        at("--enable-lora", env={"SGLANG_ENABLE_OVERLAP_PLAN_STREAM": "1"}),
        at(env={"SGLANG_ENABLE_OVERLAP_PLAN_STREAM": "1"}),
    ),
    case(
        "block_not_positive", at("--speculative-dflash-block-size 0"), at("--speculative-dflash-block-size 1")
    ),
    case(
        "block_given_twice",
        at("--speculative-dflash-block-size 8 --speculative-num-draft-tokens 16"),
        at("--speculative-dflash-block-size 8 --speculative-num-draft-tokens 8"),
    ),
    case("block_unknown", at(), at(draft=B16)),
    case("block_from_draft", at(draft=B16), at("--speculative-dflash-block-size 8", draft=B16)),
    case(
        "block_mismatch",
        at("--speculative-dflash-block-size 32", draft=B16),
        at("--speculative-dflash-block-size 8", draft=B16),
    ),
    case(
        "block_shorter",
        at("--speculative-dflash-block-size 8", draft=B16),
        at("--speculative-dflash-block-size 16", draft=B16),
    ),
    case(
        "window_not_positive",
        at("--speculative-draft-window-size 0"),
        at("--speculative-draft-window-size 16"),
    ),
    case(
        "window_below_block",
        at("--speculative-draft-window-size 8"),
        at("--speculative-draft-window-size 16"),
    ),
    case("num_steps_forced", at("--speculative-num-steps 15"), at("--speculative-num-steps 1")),
    case("topk_forced", at("--speculative-eagle-topk 4"), at("--speculative-eagle-topk 1")),
    case("rejection_sampling_idle", at("--speculative-use-rejection-sampling"), at()),
    case("block_verification_idle", at("--speculative-use-block-verification"), at()),
    case("sink_idle", at("--speculative-draft-sink-size 4"), at()),
    case(
        "ragged_mode_unknown",
        at(env={"SGLANG_RAGGED_VERIFY_MODE": "wild"}),
        at(env={"SGLANG_RAGGED_VERIFY_MODE": "static"}),
    ),
    case(
        "draft_backend_falls_back",
        at("--speculative-draft-attention-backend aiter"),
        at("--speculative-draft-attention-backend fa4"),
    ),
    case(
        "draft_backend_falls_back",
        at("--speculative-draft-attention-backend intel_xpu", "0.5.19"),
        at("--speculative-draft-attention-backend intel_xpu", "0.5.20"),
    ),
    case("draft_backend_inherited", at("--attention-backend trtllm_mla"), at("--attention-backend fa3")),
    case(
        "draft_trtllm_mha_absent",
        at("--speculative-draft-attention-backend trtllm_mha", "0.5.16"),
        at("--speculative-draft-attention-backend trtllm_mha", "0.5.17"),
    ),
    case(
        "draft_trtllm_mha_not_sliding",
        at("--speculative-draft-attention-backend trtllm_mha", draft=FULL),
        at("--speculative-draft-attention-backend trtllm_mha", draft=SLIDING),
    ),
    case(
        "draft_trtllm_mha_unknown",
        at("--speculative-draft-attention-backend trtllm_mha"),
        at("--speculative-draft-attention-backend trtllm_mha", draft=SLIDING),
    ),
    case(
        "trtllm_mla_not_blackwell",
        at("--attention-backend trtllm_mla", gpu=H100),
        at("--attention-backend trtllm_mla", gpu=B200),
    ),
    case(
        "trtllm_mla_prefill_sm12x",
        at("--attention-backend trtllm_mla", gpu=RTX),
        at("--attention-backend trtllm_mla --prefill-attention-backend triton", gpu=RTX),
    ),
    case(
        "trtllm_mha_capability",
        at("--attention-backend trtllm_mha", gpu=(8, 0)),
        at("--attention-backend trtllm_mha", gpu=H100),
    ),
    case(
        "cutedsl_mla_not_sm100",
        at("--decode-attention-backend cutedsl_mla", gpu=RTX),
        at("--decode-attention-backend cutedsl_mla", gpu=B200),
    ),
    case(
        "k3_attention_default",
        at(target=K3, gpu=B300),
        at("--attention-backend trtllm_mla", target=K3, gpu=B300),
    ),
    case(
        "verify_cutedsl_block",
        at("--speculative-dflash-block-size 16 --linear-attn-verify-backend nv_cutedsl", target=K3),
        at("--speculative-dflash-block-size 8 --linear-attn-verify-backend nv_cutedsl", target=K3),
    ),
    case(
        "verify_cutedsl_capability",
        at("--linear-attn-verify-backend nv_cutedsl", target=K3, gpu=H100),
        at("--linear-attn-verify-backend nv_cutedsl", target=K3, gpu=B300),
    ),
    case(
        "verify_cutedsl_state",
        at("--linear-attn-verify-backend nv_cutedsl --mamba-ssm-dtype bfloat16", target=K3),
        at("--linear-attn-verify-backend nv_cutedsl --mamba-ssm-dtype float32", target=K3),
    ),
    case("verify_backend_default", at(target=K3), at("--linear-attn-verify-backend triton", target=K3)),
    case(
        "verify_backend_unknown_to_kda",
        at("--linear-attn-verify-backend cutedsl", target=K3),
        at("--linear-attn-verify-backend cutedsl", target=QWEN),
    ),
    case(
        "ptx_kda_capability",
        at("--linear-attn-prefill-backend ptx_kda", "0.5.21", gpu=B200),
        at("--linear-attn-prefill-backend ptx_kda", "0.5.22", gpu=B200),
    ),
    case(
        "replayssm_needs_kda",
        at("--enable-linear-replayssm-spec", target=QWEN),
        at("--enable-linear-replayssm-spec", target=K3),
    ),
    case(
        "replayssm_ring",
        at("--speculative-dflash-block-size 16 --enable-linear-replayssm-spec", target=K3),
        at("--speculative-dflash-block-size 8 --enable-linear-replayssm-spec", target=K3),
    ),
    case("replayssm_ring", at(f"{RING}48", target=K3), at(f"{RING}32", target=K3)),
    case(
        "replayssm_decode_backend",
        at("--enable-linear-replayssm-spec --linear-attn-decode-backend cutedsl", target=K3),
        at("--enable-linear-replayssm-spec --linear-attn-decode-backend triton", target=K3),
    ),
    case(
        "replayssm_twice",
        at("--enable-linear-replayssm-spec --enable-linear-replayssm"),
        at("--enable-linear-replayssm-spec"),
    ),
    case(
        "replayssm_state_type",
        at("--enable-linear-replayssm-spec --mamba-ssm-dtype bfloat16"),
        at("--enable-linear-replayssm-spec --mamba-ssm-dtype float32"),
    ),
    case(
        "replayssm_state_type",
        at("--enable-gdn-replayssm-spec --mamba-ssm-dtype bfloat16", "0.5.16"),
        at("--enable-gdn-replayssm-spec", "0.5.16"),
    ),
    case(
        "replayssm_state_default",
        at("--enable-linear-replayssm-spec"),
        at("--enable-linear-replayssm-spec --mamba-ssm-dtype float32"),
    ),
    case(
        "linear_flashinfer_state_type",
        at("--linear-attn-decode-backend flashinfer", gpu=B200),
        at("--linear-attn-decode-backend flashinfer --mamba-ssm-dtype bfloat16", gpu=B200),
    ),
    case("state_cache_default", at(target=K3), at("--disable-radix-cache", target=K3)),
    case(
        "state_cache_disables_overlap",
        at("--linear-attn-backend flashinfer --linear-attn-decode-backend triton", target=K3),
        at("--linear-attn-backend triton", target=K3),
    ),
    case(
        "track_interval_short",
        at("--mamba-track-interval 8 --speculative-num-draft-tokens 16", target=K3),
        at("--mamba-track-interval 16 --speculative-num-draft-tokens 16", target=K3),
    ),
    case(
        "track_interval_short_unchecked",
        at("--mamba-track-interval 8", target=K3),
        at("--mamba-track-interval 16", target=K3),
    ),
    case(
        "track_interval_page",
        at("--mamba-track-interval 200 --page-size 64", target=K3),
        at("--mamba-track-interval 192 --page-size 64", target=K3),
    ),
    case(
        "track_interval_page_unchecked",
        at("--mamba-track-interval 200 --attention-backend trtllm_mla", target=K3),
        at("--mamba-track-interval 192 --attention-backend trtllm_mla", target=K3),
    ),
    case(
        "no_buffer_refused",
        at("--mamba-radix-cache-strategy no_buffer", target=K3),
        at("--mamba-radix-cache-strategy no_buffer --disable-overlap-schedule", target=K3),
    ),
    case("k3_moe_default", at(target=K3, gpu=B300), at("--moe-runner-backend triton", target=K3, gpu=B300)),
    case(
        "gdn_replayssm_spec_kind",
        at("--enable-gdn-replayssm-spec", "0.5.16", target=ModelFacts(architecture="KimiLinearForCausalLM")),
        at("--enable-gdn-replayssm-spec", "0.5.16", target=QWEN),
    ),
    case("requests_limited", at(), at("--max-running-requests 8")),
    case(
        "page_size_forced",
        at("--attention-backend trtllm_mla --page-size 16"),
        at("--attention-backend trtllm_mla --page-size 32"),
    ),
    case(
        "page_size_forced",
        at("--speculative-draft-attention-backend trtllm_mha --page-size 1", "0.5.22"),
        at("--speculative-draft-attention-backend trtllm_mha --page-size 16", "0.5.22"),
    ),
    case(
        "page_size_forced",
        at("--attention-backend fa4 --page-size 64", "0.5.21", gpu=B200, target=QWEN),
        at("--attention-backend fa4 --page-size 64", "0.5.21", gpu=B200, target=K25),
    ),
    case(
        "page_size_default",
        at("--attention-backend trtllm_mla"),
        at("--attention-backend trtllm_mla --page-size 64"),
    ),
    case(
        "page_size_default",
        at("--attention-backend trtllm_mha", "0.5.22"),
        at("--attention-backend triton", "0.5.22"),
    ),
    case(
        "page_size_default",
        at("--attention-backend fa4", gpu=B200, target=QWEN),
        at("--attention-backend fa4", gpu=H100, target=QWEN),
    ),
    case(
        "draft_trtllm_mha_not_sliding",
        at("--attention-backend trtllm_mha", draft=FULL),
        at("--attention-backend trtllm_mha --speculative-draft-attention-backend fa4", draft=FULL),
    ),
    case(
        "kv_type_refused",
        at("--attention-backend trtllm_mla --kv-cache-dtype fp8_e5m2"),
        at("--attention-backend trtllm_mla --kv-cache-dtype bf16"),
    ),
    case("kv_nvfp4_refused", at("--kv-cache-dtype nvfp4", gpu=B200), at("--kv-cache-dtype nvfp4", gpu=H100)),
    case("mixed_chunk_off", at("--enable-mixed-chunk", "0.5.18"), at("--enable-mixed-chunk", "0.5.19")),
    case(
        "lm_head_quantized",
        at("--tp-size 2", target=ModelFacts(quantized_lm_head=True)),
        at("--tp-size 1", target=ModelFacts(quantized_lm_head=True)),
    ),
    case(
        "context_beyond_draft",
        at("--context-length 65535", draft=ModelFacts(context_tokens=4096)),
        at(
            "--context-length 65535",
            draft=ModelFacts(context_tokens=4096),
            env={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
        ),
    ),
    case(
        "context_beyond_draft",
        at("", target=ModelFacts(context_tokens=262144), draft=ModelFacts(context_tokens=40960)),
        at(
            "--context-length 40960",
            target=ModelFacts(context_tokens=262144),
            draft=ModelFacts(context_tokens=40960),
        ),
    ),
    case(
        "context_beyond_draft",
        at("--context-length 65536", draft=ModelFacts(context_tokens=65535)),
        at("", draft=ModelFacts(context_tokens=40960)),
    ),
    case("prefill_graph_off", at(target=K25), at("--cuda-graph-backend-prefill breakable", target=K25)),
    case(
        "prefill_graph_unchecked",
        at("--cuda-graph-backend-prefill breakable", target=K3),
        at("--cuda-graph-backend-prefill breakable", target=QWEN),
    ),
    case(
        "prefill_graph_sizes_idle",
        at("--cuda-graph-backend-prefill disabled --cuda-graph-max-bs-prefill 512"),
        at("--cuda-graph-max-bs-prefill 512"),
    ),
    case("served_name_colon", at("--served-model-name a:b"), at("--served-model-name a-b")),
    case("grpc_port_same", at("--grpc-port 30000 --port 30000"), at("--grpc-port 30001 --port 30000")),
    *(
        case(
            "algorithm_unknown",
            at("--speculative-algorithm BOGUS", release),
            at("--speculative-algorithm dflash", release),
        )
        for release in ("0.5.12", "0.5.23")
    ),
    case(
        "nodes_without_address",
        at("--nnodes 2 --node-rank 0 --tp-size 16"),
        at("--nnodes 2 --node-rank 0 --tp-size 16 --dist-init-addr 10.0.0.1:5000"),
    ),
    case(
        "replicas_with_attention_groups",
        at("--dp-size 2 --attn-dp-size 8 --tp-size 8"),
        at("--attn-dp-size 8 --tp-size 8"),
    ),
    case("nodes_uneven", at("--nnodes 2 --tp-size 1"), at("--nnodes 2 --tp-size 8")),
    case("nodes_with_replicas", at("--nnodes 2 --dp-size 2"), at("--nnodes 2 --attn-dp-size 2")),
    *(
        case("port_out_of_range", at(f"{flag} {bad}"), at(f"{flag} {good}"))
        for flag, good, bad in (
            ("--nccl-port", "28000", "99999"),
            ("--grpc-port", "31000", "-5"),
            ("--dist-init-addr", "10.0.0.1:5000", "10.0.0.1:99999"),
            ("--disaggregation-bootstrap-port", "8998", "65536"),
            ("--engine-info-bootstrap-port", "6789", "0"),
        )
    ),
    *(
        case("number_out_of_range", at(f"{flag} {bad}"), at(f"{flag} {good}"))
        for flag, good, bad in (
            ("--nnodes", "1", "0"),
            ("--gpu-id-step", "2", "0"),
            ("--dcp-size", "1", "-1"),
            ("--attn-cp-size", "1", "0"),
            ("--attn-dp-size", "1", "0"),
            ("--max-mamba-cache-size", "10", "0"),
            ("--mamba-track-interval", "256", "0"),
            ("--node-rank", "0", "-1"),
            ("--base-gpu-id", "0", "-1"),
            ("--mamba-full-memory-ratio", "0.5", "0"),
            ("--mamba-full-memory-ratio", "0.5", "-1"),
            ("--mamba-full-memory-ratio", "0.5", "nan"),
            ("--mamba-full-memory-ratio", "0.5", "inf"),
        )
    ),
    case("options_in_file", at("--config f.yaml"), at()),
    case("key_in_arguments", at("--api-key k"), at()),
    case("warmup_skipped", at("--skip-server-warmup"), at()),
    case(
        "accept_simulated",
        at(env={"SGLANG_SIMULATE_ACC_LEN": "3"}),
        at(env={"SGLANG_SIMULATE_ACC_LEN": "0"}),
    ),
    case(
        "accept_simulated",
        at(release="0.5.17", env={"SGLANG_SIMULATE_ACC_LEN": "3"}),
        at(release="0.5.16", env={"SGLANG_SIMULATE_ACC_LEN": "3"}),
    ),
]


@pytest.mark.parametrize(("rule", "speaks", "silent"), CASES)
def test_a_rule_speaks_where_it_must_and_only_there(rule, speaks, silent):
    assert rule in ids(**speaks)
    assert rule not in ids(**silent)


def test_dflash_without_a_draft_is_refused():
    have = catalogue.catalogue("0.5.23")
    found = judge(Situation(release="0.5.23", have=have, options={}, wants_dflash=True)).findings
    assert "dflash_without_draft" in {finding.id for finding in found}


def test_every_rule_has_a_case():
    assert {rule.id for rule in ALL_RULES} - {param.values[0] for param in CASES} == {"dflash_without_draft"}


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_a_rule_says_what_happens_and_whatever_is_refused_says_what_to_do(rule):
    assert re.search(r"\w", rule.consequence)
    assert not rule.consequence.endswith(".")
    assert rule.source
    if rule.severity is Severity.ERROR and rule.id != "device_refused":
        assert rule.fix


def test_nothing_that_depends_on_unknown_gpus_is_refused():
    found = judge(situation("--attention-backend trtllm_mla", target=K25)).findings
    assert [finding for finding in found if finding.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("words", "facts", "flag", "becomes"),
    [
        (
            "--speculative-dflash-block-size 16 --linear-attn-verify-backend nv_cutedsl",
            {"target": K3},
            "--linear-attn-verify-backend",
            "triton",
        ),
        (
            "--speculative-draft-attention-backend aiter",
            {},
            "--speculative-draft-attention-backend",
            "flashinfer",
        ),
        (
            "--speculative-draft-attention-backend trtllm_mha",
            {"draft": FULL, "gpu": B300},
            "--speculative-draft-attention-backend",
            "fa4",
        ),
        (
            "--speculative-draft-attention-backend trtllm_mha",
            {"draft": FULL, "gpu": H100},
            "--speculative-draft-attention-backend",
            "flashinfer",
        ),
        ("", {"draft": B16}, "--speculative-num-draft-tokens", "16"),
        ("", {}, "--max-running-requests", "48"),
    ],
)
def test_what_really_runs_is_named(words, facts, flag, becomes):
    resolved = {argument.flag: argument.values for argument in judge(situation(words, **facts)).resolved}
    assert resolved[flag] == (becomes,)


@pytest.mark.parametrize(("block", "ring"), [(8, 16), (16, 32), (5, 16), (1, 2), (17, 64)])
def test_the_ring_that_is_advised_is_long_enough_and_a_power_of_two(block, ring):
    made = situation(f"--speculative-dflash-block-size {block}")
    assert made.ring_needed == ring
