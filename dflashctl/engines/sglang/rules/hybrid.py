"""Rules about kernels of linear-attention hybrids, Kimi-K3 above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_SMALLEST_CUTEDSL_BLOCK = 2
_LARGEST_CUTEDSL_BLOCK = 8
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
        id="k3_moe_default",
        when=lambda s: s.is_k3 and s.sm10x and not s.has("--moe-runner-backend"),
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="no MoE runner given: Kimi-K3 runs flashinfer_mxfp4 on these GPUs for an MXFP4 checkpoint",
        source="sglang 0.5.23: srt/arg_groups/model_overrides/kimi_k3.py",
    ),
)
