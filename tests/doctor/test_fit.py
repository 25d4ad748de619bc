"""The memory fit against what real servers logged, and its verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dflashctl.core.fit import GIB, FitRequest, FitVerdict
from dflashctl.core.fit_cells import (
    draft_kv_bytes_per_token,
    kv_bytes_per_token,
    replay_bytes,
    state_bytes,
)
from dflashctl.core.fit_verdict import default_fraction, judge_fit
from dflashctl.core.known_models import KNOWN_MODELS
from dflashctl.core.kv_geometry import Geometry, LinearState, geometry_of
from dflashctl.core.serving import Serving, serving
from tests.doctor import DATA

H200_BYTES = 150109880320
B300_BYTES = 274040 << 20
TINY = Geometry(attention_layers=4, kv_heads=2, head_dim=64, v_head_dim=64, context_tokens=4096)
TINY_DRAFT = Geometry(attention_layers=2, kv_heads=2, head_dim=64, v_head_dim=64)
RECORDINGS = yaml.safe_load((DATA / "fit_recordings.yaml").read_text(encoding="utf-8"))
PACKAGE = Path(__file__).parents[2] / "dflashctl"


def tiny(argv, *, block, memory=H200_BYTES):
    return FitRequest(
        serving=serving(argv.split(), speculates=block is not None, block_size=block),
        memory_bytes=memory,
        target=TINY,
        target_weights_bytes=20_000_000,
        draft=TINY_DRAFT if block else None,
        draft_weights_bytes=8_000_000 if block else None,
    )


def known(target, draft, argv, memory, weights=None, block=8):
    return FitRequest(
        serving=serving(argv.split(), speculates=True, block_size=block),
        memory_bytes=memory,
        target=KNOWN_MODELS[target].geometry,
        target_weights_bytes=weights or KNOWN_MODELS[target].weights_bytes,
        draft=KNOWN_MODELS[draft].geometry,
        draft_weights_bytes=KNOWN_MODELS[draft].weights_bytes,
    )


K3 = ("moonshotai/Kimi-K3", "modal-labs/Kimi-K3-DFlash")
K3_ARGV = (
    "--tp-size 8 --mem-fraction-static 0.88 --attention-backend trtllm_mla "
    "--enable-linear-replayssm-spec --linear-replayssm-cache-len 32"
)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r['name']} ({r['release']})")
def test_prediction_is_within_5_percent_of_what_the_server_logged(recording):
    fit = judge_fit(tiny(recording["argv"], block=recording["block"]))
    assert fit.verdict is FitVerdict.RUNS
    assert fit.kv_tokens == pytest.approx(recording["tokens"], rel=0.05)
    pools = {line.part: line.size_bytes / GIB for line in fit.lines}
    assert pools["target KV cache"] == pytest.approx(recording["target_kv_gib"], rel=0.05)
    assert pools.get("draft KV cache", 0) == pytest.approx(recording["draft_kv_gib"], rel=0.05)


def test_the_lines_add_up_to_the_gpu():
    fit = judge_fit(tiny("--mem-fraction-static 0.1", block=8))
    assert sum(line.size_bytes for line in fit.lines) == pytest.approx(H200_BYTES, rel=0.001)


def test_the_fraction_that_died_of_out_of_memory_is_refused():
    """A server with 0.999 died while it allocated the draft's cache."""
    fit = judge_fit(tiny("--mem-fraction-static 0.999", block=8))
    assert fit.verdict is FitVerdict.RUNS_IF_CHANGED
    assert fit.fix == "--set memory.static_fraction=0.98"
    assert judge_fit(tiny("--mem-fraction-static 0.98", block=8)).verdict is FitVerdict.RUNS


def test_kimi_k3_runs_on_b300_with_the_48_requests_its_engine_allows():
    fit = judge_fit(known(*K3, K3_ARGV, B300_BYTES))
    assert fit.verdict is FitVerdict.RUNS
    assert fit.max_running_requests == 48
    assert fit.kv_tokens % 64 == 0
    assert 800_000 < fit.kv_tokens < 1 << 20
    assert "one request of the whole context (1,048,576 tokens) is more than that" in fit.summary
    assert fit.estimated


@pytest.mark.parametrize(("memory", "gpus"), [(H200_BYTES, 16), (182559 << 20, 16), (81008 << 20, 32)])
def test_kimi_k3_needs_what_the_cookbook_uses(memory, gpus):
    """The published layouts: two nodes of H200 or B200, four of H100."""
    fit = judge_fit(known(*K3, K3_ARGV, memory))
    assert fit.verdict is FitVerdict.DOES_NOT_FIT
    assert fit.fix.startswith(f"{gpus} GPUs of this kind (--set parallel.tensor={gpus})")


def test_the_suggested_fraction_is_the_smallest_that_runs():
    request = known("Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", "--mem-fraction-static 0.1", 81008 << 20)
    fit = judge_fit(request)
    fraction = float(fit.fix.partition("=")[2])
    for value, runs in ((fraction, True), (round(fraction - 0.01, 2), False)):
        argv = f"--mem-fraction-static {value}"
        again = judge_fit(known("Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", argv, 81008 << 20))
        assert (again.verdict is FitVerdict.RUNS) is runs


def test_a_context_that_does_not_fit_gets_the_one_that_does():
    argv = "--mem-fraction-static 0.24 --context-length 40960"
    fit = judge_fit(known("Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", argv, 81008 << 20))
    assert fit.verdict is FitVerdict.RUNS_IF_CHANGED
    context = int(fit.fix.partition("=")[2])
    assert context <= fit.kv_tokens < 40960


def test_without_the_replay_ring_the_state_leaves_room_for_fewer_requests():
    with_ring = judge_fit(known(*K3, K3_ARGV, B300_BYTES))
    without = judge_fit(known(*K3, "--tp-size 8 --mem-fraction-static 0.88", B300_BYTES))
    assert without.max_running_requests < with_ring.max_running_requests


def test_unknown_sizes_are_no_verdict():
    request = FitRequest(serving=Serving(), memory_bytes=H200_BYTES, target=TINY, target_weights_bytes=None)
    assert judge_fit(request).verdict is FitVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("geometry", "tensor", "dtype", "size"),
    [
        (TINY, 1, None, 2048),
        (TINY, 2, None, 1024),
        (TINY, 8, None, 1024),
        (TINY, 1, "fp8_e4m3", 1024),
        (KNOWN_MODELS["moonshotai/Kimi-K2.5"].geometry, 8, None, 576 * 61 * 2),
        (KNOWN_MODELS["moonshotai/Kimi-K3"].geometry, 8, "auto", 576 * 24 * 2),
    ],
)
def test_bytes_of_a_token(geometry, tensor, dtype, size):
    assert kv_bytes_per_token(geometry, Serving(tensor=tensor, kv_dtype=dtype)) == size


@pytest.mark.parametrize(
    ("argv", "target", "draft"),
    [
        ("--tp-size 8", 576 * 61 * 2, 3072),
        ("--tp-size 8 --dp-size 2", 576 * 61 * 2, 3072),
        ("--tp-size 8 --enable-dp-attention --dp-size 8", 576 * 61 * 2, 24576),
        ("--tp-size 8 --attn-dp-size 8", 576 * 61 * 2, 24576),
        ("--tp-size 8 --attn-dp-size 2", 576 * 61 * 2, 6144),
        ("--tp-size 8 --kv-cache-dtype fp8_e4m3", 576 * 61, 1536),
        ("--tp-size 8 --kv-cache-dtype fp8_e4m3 --speculative-draft-kv-cache-dtype bf16", 576 * 61, 3072),
        ("--tp-size 8 --kv-cache-dtype fp8_e4m3 --speculative-draft-kv-cache-dtype auto", 576 * 61, 3072),
        ("--tp-size 8 --speculative-draft-kv-cache-dtype fp8_e4m3", 576 * 61 * 2, 1536),
        ("--tp-size 8 --kv-cache-dtype fp8_e4m3 --speculative-draft-attention-backend fa4", 576 * 61, 3072),
    ],
)
def test_bytes_of_a_token_of_each_cache_by_the_arguments(argv, target, draft):
    serve = serving(argv.split(), speculates=True)
    assert kv_bytes_per_token(KNOWN_MODELS["moonshotai/Kimi-K2.5"].geometry, serve) == target
    assert draft_kv_bytes_per_token(KNOWN_MODELS["z-lab/Kimi-K2.5-DFlash"].geometry, serve) == draft


@pytest.mark.parametrize(
    ("argv", "ranks", "heads_over"),
    [
        ("", 1, 1),
        ("--tp-size 8", 8, 8),
        ("--tp-size 4 --dp-size 2", 8, 4),
        ("--tp-size 8 --dp-size 8 --enable-dp-attention", 8, 1),
        ("--tp-size 8 --attn-dp-size 4", 8, 2),
        ("--tp-size 16 --nnodes 2", 8, 16),
    ],
)
def test_ranks_and_the_gpus_that_share_the_heads(argv, ranks, heads_over):
    serve = serving(argv.split(), speculates=True)
    assert (serve.ranks, serve.attention_tensor) == (ranks, heads_over)


def test_without_the_prefix_cache_a_running_request_has_one_slot():
    """SGLang then takes as many slots as requests (mem_cache/kv_cache_configurator.py), and leaves the rest to KV."""
    with_cache = judge_fit(known(*K3, K3_ARGV, B300_BYTES))
    without = judge_fit(known(*K3, f"{K3_ARGV} --disable-radix-cache", B300_BYTES))
    lines = {line.part: line for line in without.lines}
    assert lines["linear-attention state"].note == "48 slots"
    assert lines["linear-attention state"].size_bytes / GIB == pytest.approx(4.4, abs=0.1)
    assert without.max_running_requests == 48
    assert without.kv_tokens > with_cache.kv_tokens


def test_attention_groups_share_requests_and_slots():
    argv = f"{K3_ARGV} --attn-dp-size 8 --max-mamba-cache-size 400"
    fit = judge_fit(known(*K3, argv, B300_BYTES))
    assert {line.note for line in fit.lines} >= {"50 slots", "1/8 of the files, attention's more than that"}
    assert fit.max_running_requests == 48
    assert fit.estimated


@pytest.mark.parametrize(
    ("argv", "config", "size"),
    [
        ("", None, 4),
        ("--mamba-ssm-dtype bfloat16", None, 2),
        ("--mamba-ssm-dtype float16", None, 2),
        ("--mamba-ssm-dtype float32", "bfloat16", 4),
        ("", "bfloat16", 2),
        ("--enable-linear-replayssm-spec", "bfloat16", 4),
        ("--enable-linear-replayssm-spec --mamba-ssm-dtype bfloat16", None, 2),
    ],
)
def test_the_states_have_the_type_that_is_asked_for(argv, config, size):
    linear = LinearState(
        **{**KNOWN_MODELS["moonshotai/Kimi-K3"].geometry.linear.__dict__, "state_dtype": config}
    )
    serve = serving(["--tp-size", "8", *argv.split()], speculates=True)
    assert state_bytes(linear, serve) == (12 * 128 * 128 * size + 3 * 4608 * 2) * 69


def test_bytes_of_a_state():
    """Kimi-K3 on 8 GPUs: 12 heads of 128 x 128 in fp32, a window of 3 over 3 x 1536 channels in bf16, 69 layers."""
    linear = KNOWN_MODELS["moonshotai/Kimi-K3"].geometry.linear
    serve = Serving(tensor=8, replay_length=32)
    assert state_bytes(linear, serve) == (12 * 128 * 128 * 4 + 3 * 4608 * 2) * 69
    assert replay_bytes(linear, serve) == (12 * 32) * (4 * 128 * 2 + 4 + 128 * 4) * 69
    assert replay_bytes(LinearState(**{**linear.__dict__, "kind": "gdn"}), serve) == 0


def test_default_fraction_is_the_engines_own_rule():
    """0.5.23 on an H200: max(512 + 8192 x 1.5 + 1/8 GiB + graphs, 10 GiB) is set aside."""
    request = tiny("", block=8)
    reserve = 512 + 8192 * 1.5 + 128 + 48 * 2 + 58 * 8
    mib = H200_BYTES / (1 << 20)
    assert default_fraction(request) == round((mib - reserve) / mib, 3)


def test_geometry_of_the_shipped_tiny_pair():
    target = json.loads((PACKAGE / "reference/tiny/target/config.json").read_text())
    draft = json.loads((PACKAGE / "reference/tiny/draft/config.json").read_text())
    assert geometry_of(target) == TINY
    assert geometry_of(draft).attention_layers == 2


GDN = {
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
KDA = {
    "text_config": {
        "num_hidden_layers": 4,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "max_position_embeddings": 1048576,
        "linear_attn_config": {
            "kda_layers": [1, 2, 3],
            "full_attn_layers": [4],
            "num_heads": 96,
            "head_dim": 128,
        },
    },
    "vision_config": {},
}


def test_geometry_of_hybrid_models():
    kda = geometry_of(KDA)
    assert (kda.attention_layers, kda.mla_dim, kda.linear.layers, kda.multimodal) == (1, 576, 3, True)
    gdn = geometry_of(GDN)
    assert (gdn.attention_layers, gdn.linear.layers, gdn.linear.kind) == (12, 36, "gdn")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"num_hidden_layers": 4},
        {**GDN, "layer_types": ["sliding_attention", "full_attention"] * 24},
    ],
)
def test_geometry_that_this_arithmetic_does_not_know(config):
    assert geometry_of(config) is None


@pytest.mark.parametrize(
    ("argv", "field", "value"),
    [
        (["--tp-size", "8"], "tensor", 8),
        (["--tp-size", "8", "--tp-size=4"], "tensor", 4),
        (["--mem-fraction-static", "0.9", "--mem-fraction-static", "0.8"], "static_fraction", 0.8),
        (["--attention-backend", "trtllm_mla"], "page_size", 64),
        (["--attention-backend", "triton"], "page_size", 1),
        (["--speculative-dflash-block-size", "16"], "block_size", 16),
        ([], "max_running_requests", 48),
        (["--max-running-requests", "4"], "max_running_requests", 4),
        (["--disable-radix-cache"], "radix_cache", False),
        (["--context-length"], "context_tokens", None),
        (["--mem-fraction-static", "much"], "static_fraction", None),
    ],
)
def test_settings_are_read_from_the_arguments(argv, field, value):
    assert getattr(serving(argv, speculates=True), field) == value
