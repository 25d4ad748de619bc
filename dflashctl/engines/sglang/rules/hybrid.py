"""Rules about linear-attention hybrids, Kimi-K3 above all: verify kernels, ReplaySSM, cached states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_SMALLEST_CUTEDSL_BLOCK = 2
_LARGEST_CUTEDSL_BLOCK = 8
_REPLAY = "srt/arg_groups/attention_hook.py"
_POOL = "sglang 0.5.23: srt/mem_cache/memory_pool.py:824"
_KDA_VERIFY = ("triton", "helion", "nv_cutedsl", "flashinfer")


def _cutedsl(s: Situation) -> bool:
    return s.speculative and s.linear_verify == "nv_cutedsl" and (s.is_kda or s.architecture is None)


def _state_not_fp32(s: Situation) -> bool:
    return s.is_("--mamba-ssm-dtype", "bfloat16", "float16")


def _ptx_kda_off(s: Situation) -> bool:
    if not s.is_("--linear-attn-prefill-backend", "ptx_kda") or s.capability is None:
        return False
    allowed = ((10, 0), (10, 3)) if s.among("0.5.22") else ((10, 3),)
    return s.capability not in allowed


def _ring_wrong(s: Situation) -> bool:
    kda = s.is_kda or s.architecture is None
    return s.replayssm and s.speculative and kda and (s.ring < 2 * s.block or s.ring & (s.ring - 1) != 0)


def _track_interval(s: Situation) -> int:
    return int(s.number("--mamba-track-interval") or 256)


def _buffered(s: Situation) -> bool:
    return s.is_hybrid and s.radix and s.state_strategy.startswith("extra_buffer")


def _short_interval(s: Situation) -> bool:
    return _buffered(s) and s.speculative and _track_interval(s) < s.block


def _final_page(s: Situation) -> int:
    page = s.page_size or 1
    return 64 if "trtllm_mla" in (s.attention, s.decode_attention) and page not in (32, 64) else page


RULES: tuple[Rule, ...] = (
    Rule(
        id="verify_cutedsl_block",
        when=lambda s: _cutedsl(s) and not _SMALLEST_CUTEDSL_BLOCK <= s.block <= _LARGEST_CUTEDSL_BLOCK,
        since="0.5.17",
        severity=Severity.WARNING,
        consequence=(
            "the nv_cutedsl verify kernel takes 2 to 8 draft tokens; with a block of {s.block} "
            "the linear-attention layers will really be verified by Triton"
        ),
        fix="--block-size 8 uses nv_cutedsl; --set backends.linear_verify=triton says what runs",
        source="sglang 0.5.23: srt/layers/attention/linear/kda_backend.py:1743",
        flag="--linear-attn-verify-backend",
        becomes="triton",
    ),
    Rule(
        id="verify_cutedsl_capability",
        when=lambda s: _cutedsl(s) and s.sm10x is False,
        since="0.5.17",
        severity=Severity.WARNING,
        consequence=(
            "the nv_cutedsl verify kernel needs compute capability 10.x, these GPUs are {s.capability_text}: "
            "the linear-attention layers will really be verified by Triton"
        ),
        fix="--set backends.linear_verify=triton says what runs",
        source="sglang 0.5.23: srt/layers/attention/linear/kda_backend.py:1737",
        flag="--linear-attn-verify-backend",
        becomes="triton",
    ),
    Rule(
        id="verify_cutedsl_state",
        when=lambda s: _cutedsl(s) and _state_not_fp32(s),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence="the nv_cutedsl verify kernel needs float32 states: with this --mamba-ssm-dtype Triton will really run",
        fix="leave --mamba-ssm-dtype out",
        source="sglang 0.5.23: srt/layers/attention/linear/kda_backend.py:1743",
        flag="--linear-attn-verify-backend",
        becomes="triton",
    ),
    Rule(
        id="verify_backend_default",
        when=lambda s: s.is_k3 and s.speculative and not s.has("--linear-attn-verify-backend"),
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="no verify backend given: Kimi-K3 verifies with nv_cutedsl",
        source="sglang 0.5.23: srt/arg_groups/kimi_k3_hook.py:32",
        flag="--linear-attn-verify-backend",
        becomes="nv_cutedsl",
    ),
    Rule(
        id="verify_backend_unknown_to_kda",
        when=lambda s: (
            s.is_kda and s.speculative and s.linear_verify is not None and s.linear_verify not in _KDA_VERIFY
        ),
        since="0.5.17",
        severity=Severity.ERROR,
        consequence="{s.linear_verify} cannot verify KDA layers: SGLang would die while it loads the model",
        fix="--set backends.linear_verify=triton (or nv_cutedsl, helion, flashinfer)",
        source="sglang 0.5.23: srt/layers/attention/linear/kda_backend.py:192",
    ),
    Rule(
        id="ptx_kda_capability",
        when=_ptx_kda_off,
        since="0.5.17",
        severity=Severity.WARNING,
        consequence=(
            "ptx_kda prefill of SGLang {s.release} is not for compute capability {s.capability_text}: Triton will really run"
        ),
        fix="--set backends.linear_prefill=triton says what runs",
        source="sglang 0.5.23: srt/layers/attention/linear/kernels/kda_ptx.py:65",
        flag="--linear-attn-prefill-backend",
        becomes="triton",
    ),
    Rule(
        id="replayssm_needs_kda",
        when=lambda s: s.replayssm and s.dflash and s.architecture is not None and not s.is_kda,
        since="0.5.17",
        severity=Severity.ERROR,
        consequence="ReplaySSM verification with DFLASH is for KDA models; {s.architecture} is none",
        fix="--set backends.replayssm=false",
        source="sglang 0.5.23: srt/mem_cache/kv_cache_configurator.py:1715",
    ),
    Rule(
        id="replayssm_ring",
        when=_ring_wrong,
        since="0.5.16",
        severity=Severity.ERROR,
        consequence=(
            "ReplaySSM ring length {s.ring} is too short or no power of two for a block of {s.block}: "
            "SGLang would die after loading all weights"
        ),
        fix="--set backends.replayssm_cache_len={s.ring_needed}",
        source=_POOL,
    ),
    Rule(
        id="replayssm_decode_backend",
        when=lambda s: s.replayssm and s.linear_decode not in ("triton", "flashinfer"),
        since="0.5.16",
        severity=Severity.ERROR,
        consequence="ReplaySSM verification needs linear decode by triton or flashinfer, not {s.linear_decode}",
        fix="--set backends.linear_decode=triton",
        source=_REPLAY,
    ),
    Rule(
        id="replayssm_twice",
        when=lambda s: s.replayssm and s.has("--enable-linear-replayssm"),
        since="0.5.16",
        severity=Severity.ERROR,
        consequence="--enable-linear-replayssm is another feature and excludes --enable-linear-replayssm-spec",
        fix="leave --enable-linear-replayssm out",
        source=_REPLAY,
    ),
    Rule(
        id="replayssm_state_type",
        when=lambda s: s.replayssm and _state_not_fp32(s),
        since="0.5.16",
        until="0.5.16",
        severity=Severity.ERROR,
        consequence="ReplaySSM verification needs float32 states",
        fix="leave --mamba-ssm-dtype out",
        source="sglang 0.5.16: srt/server_args.py",
    ),
    Rule(
        id="replayssm_state_type",
        when=lambda s: s.replayssm and _state_not_fp32(s),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence="ReplaySSM verification is made for float32 states: accept length may fall with this --mamba-ssm-dtype",
        fix="leave --mamba-ssm-dtype out",
        source=_REPLAY,
    ),
    Rule(
        id="replayssm_state_default",
        when=lambda s: s.replayssm and not s.has("--mamba-ssm-dtype"),
        since="0.5.16",
        severity=Severity.NOTE,
        consequence="ReplaySSM verification keeps the linear-attention states in float32",
        source=_REPLAY,
        flag="--mamba-ssm-dtype",
        becomes="float32",
    ),
    Rule(
        id="linear_flashinfer_state_type",
        when=lambda s: (
            "flashinfer" in (s.value("--linear-attn-decode-backend"), s.value("--linear-attn-verify-backend"))
            and s.capability is not None
            and s.capability[0] >= 10  # noqa: PLR2004 - compute capability
            and not s.is_("--mamba-ssm-dtype", "bfloat16")
        ),
        since="0.5.10",
        severity=Severity.ERROR,
        consequence="linear attention by flashinfer on these GPUs needs --mamba-ssm-dtype bfloat16",
        fix="--set backends.linear_decode=triton --set backends.linear_verify=triton",
        source="sglang 0.5.23: srt/arg_groups/attention_hook.py:334",
    ),
    Rule(
        id="state_cache_default",
        when=lambda s: (
            s.is_hybrid
            and s.radix
            and (s.value("--mamba-radix-cache-strategy") or "auto") == "auto"
            and s.state_strategy == "extra_buffer"
        ),
        since="0.5.14",
        severity=Severity.NOTE,
        consequence="prefix-cached linear-attention states use extra buffers (strategy extra_buffer)",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:477",
        flag="--mamba-radix-cache-strategy",
        becomes="extra_buffer",
    ),
    Rule(
        id="state_cache_disables_overlap",
        when=lambda s: (
            s.is_hybrid
            and s.radix
            and (s.value("--mamba-radix-cache-strategy") or "auto") == "auto"
            and s.state_strategy == "no_buffer"
            and s.overlap
        ),
        since="0.5.14",
        severity=Severity.WARNING,
        consequence="the state cache resolves to no_buffer, which turns overlapped scheduling off",
        fix="leave --linear-attn-backend at triton",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:477",
        flag="--disable-overlap-schedule",
        becomes="",
    ),
    Rule(
        id="track_interval_short",
        when=lambda s: _short_interval(s) and s.has("--speculative-num-draft-tokens"),
        since="0.5.14",
        severity=Severity.ERROR,
        consequence="--mamba-track-interval must be at least the block of {s.block}",
        fix="leave --mamba-track-interval out (256)",
        source="sglang 0.5.23: srt/arg_groups/mamba_hook.py:133",
    ),
    Rule(
        id="track_interval_short_unchecked",
        when=lambda s: _short_interval(s) and not s.has("--speculative-num-draft-tokens"),
        since="0.5.14",
        severity=Severity.WARNING,
        consequence=(
            "--mamba-track-interval is shorter than the block of {s.block}; SGLang checks that only for "
            "--speculative-num-draft-tokens and goes on here"
        ),
        fix="leave --mamba-track-interval out (256)",
        source="sglang 0.5.23: srt/arg_groups/mamba_hook.py:133",
    ),
    Rule(
        id="track_interval_page",
        when=lambda s: _buffered(s) and s.page_size is not None and _track_interval(s) % s.page_size != 0,
        since="0.5.14",
        severity=Severity.ERROR,
        consequence="--mamba-track-interval must be a multiple of the page size",
        fix="leave --mamba-track-interval out (256), or --set memory.page_size=64",
        source="sglang 0.5.23: srt/arg_groups/mamba_hook.py:135",
    ),
    Rule(
        id="track_interval_page_unchecked",
        when=lambda s: _buffered(s) and s.page_size is None and _track_interval(s) % _final_page(s) != 0,
        since="0.5.14",
        severity=Severity.WARNING,
        consequence=(
            "--mamba-track-interval is no multiple of the page of 64 tokens that will be used; "
            "SGLang checks only a page size that is given and goes on here"
        ),
        fix="leave --mamba-track-interval out (256)",
        source="sglang 0.5.23: srt/arg_groups/mamba_hook.py:135",
    ),
    Rule(
        id="no_buffer_refused",
        when=lambda s: (
            s.is_hybrid
            and s.radix
            and s.is_("--mamba-radix-cache-strategy", "no_buffer")
            and (_final_page(s) > 1 or s.overlap or "trtllm_mha" in s.attentions)
        ),
        since="0.5.14",
        severity=Severity.ERROR,
        consequence=(
            "state strategy no_buffer needs page size 1, no overlapped scheduling and neither trtllm_mla nor trtllm_mha"
        ),
        fix="leave --mamba-radix-cache-strategy out",
        source="sglang 0.5.23: srt/arg_groups/mamba_hook.py:157",
    ),
    Rule(
        id="k3_moe_default",
        when=lambda s: s.is_k3 and s.sm10x and not s.has("--moe-runner-backend"),
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="no MoE runner given: Kimi-K3 runs flashinfer_mxfp4 on these GPUs for an MXFP4 checkpoint",
        source="sglang 0.5.23: srt/arg_groups/model_overrides/kimi_k3.py",
    ),
    Rule(
        id="gdn_replayssm_spec_kind",
        when=lambda s: s.replayssm and s.is_kda,
        since="0.5.16",
        until="0.5.16",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} has ReplaySSM verification for GDN models only, not for KDA",
        fix="--set backends.replayssm=false, or SGLang 0.5.17 or later",
        source="sglang 0.5.16: srt/server_args.py:2195",
    ),
)
