"""Rules about attention backends of the target and the draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_DRAFT = "srt/arg_groups/speculative_hook.py: _resolve_dflash_draft_attention_backend"
_KNOWN_DRAFT = ("flashinfer", "fa3", "fa4", "triton", "ascend", "trtllm_mha")


def _draft_unsupported(s: Situation) -> bool:
    backend = s.draft_attention
    allowed = (*_KNOWN_DRAFT, "intel_xpu") if s.among("0.5.20") else _KNOWN_DRAFT
    return s.dflash and backend is not None and backend not in allowed


def _inherits_mla(s: Situation) -> bool:
    return s.dflash and s.draft_attention is None and s.prefill_attention in _NOT_FOR_DRAFT


_NOT_FOR_DRAFT = ("trtllm_mla", "cutedsl_mla", "flashmla", "cutlass_mla", "torch_native", "flex_attention")


def _mha(s: Situation, *, sliding: bool | None) -> bool:
    return s.dflash and s.draft_asked == "trtllm_mha" and s.draft_all_sliding is sliding


RULES: tuple[Rule, ...] = (
    Rule(
        id="draft_backend_falls_back",
        when=_draft_unsupported,
        since="0.5.11",
        severity=Severity.WARNING,
        consequence="the draft cannot use attention backend {s.draft_attention}: it will really run flashinfer (triton on ROCm)",
        fix="--set backends.draft_attention=flashinfer, or fa3, fa4, triton",
        source=_DRAFT,
        flag="--speculative-draft-attention-backend",
        becomes="flashinfer",
    ),
    Rule(
        id="draft_backend_inherited",
        when=_inherits_mla,
        since="0.5.11",
        severity=Severity.WARNING,
        consequence="no draft backend given: the target's {s.prefill_attention} is not for drafts, so the draft runs flashinfer",
        fix="--set backends.draft_attention=flashinfer says so; fa4 or triton are the choices",
        source=_DRAFT,
        flag="--speculative-draft-attention-backend",
        becomes="flashinfer",
    ),
    Rule(
        id="draft_trtllm_mha_absent",
        when=lambda s: s.dflash and s.draft_asked == "trtllm_mha",
        since="0.5.11",
        until="0.5.16",
        severity=Severity.WARNING,
        consequence="SGLang {s.release} cannot run a draft with trtllm_mha: it will really run flashinfer (triton on ROCm)",
        fix="--set backends.draft_attention=flashinfer, or SGLang 0.5.17 or later",
        source=_DRAFT,
        flag="--speculative-draft-attention-backend",
        becomes="flashinfer",
    ),
    Rule(
        id="draft_trtllm_mha_not_sliding",
        when=lambda s: _mha(s, sliding=False) and not (s.sm10x and s.among("0.5.23")),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence=(
            "trtllm_mha is for drafts whose every layer slides or that are causal, and this draft is neither: "
            "it will really run flashinfer (triton on ROCm)"
        ),
        fix="--set backends.draft_attention=flashinfer",
        source=_DRAFT,
        flag="--speculative-draft-attention-backend",
        becomes="flashinfer",
    ),
    Rule(
        id="draft_trtllm_mha_not_sliding",
        when=lambda s: _mha(s, sliding=False) and bool(s.sm10x),
        since="0.5.23",
        severity=Severity.WARNING,
        consequence=(
            "trtllm_mha is for drafts whose every layer slides or that are causal, and this draft is neither: "
            "it will really run fa4"
        ),
        fix="--set backends.draft_attention=fa4",
        source=_DRAFT,
        flag="--speculative-draft-attention-backend",
        becomes="fa4",
    ),
    Rule(
        id="draft_trtllm_mha_unknown",
        when=lambda s: _mha(s, sliding=None),
        since="0.5.17",
        severity=Severity.NOTE,
        consequence=(
            "trtllm_mha stays the draft's backend only if every draft layer slides or the draft is causal, "
            "which its config tells (not here yet); otherwise it runs another one, and the start says which"
        ),
        fix="dflashctl fetch, then plan again",
        source=_DRAFT,
    ),
    Rule(
        id="trtllm_mla_not_blackwell",
        when=lambda s: "trtllm_mla" in (s.attention, s.decode_attention) and s.blackwell is False,
        severity=Severity.ERROR,
        consequence="attention backend trtllm_mla needs Blackwell GPUs; these have compute capability {s.capability_text}",
        fix="--set backends.attention=flashmla (or fa3, triton), or a Blackwell machine",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:1212",
    ),
    Rule(
        id="trtllm_mla_prefill_sm12x",
        when=lambda s: s.prefill_attention == "trtllm_mla" and s.blackwell is True and s.sm10x is False,
        severity=Severity.ERROR,
        consequence=(
            "trtllm_mla prefill kernels exist for compute capability 10.x only; these GPUs are {s.capability_text}"
        ),
        fix="add --prefill-attention-backend triton after --, or use B200 or B300",
        source="flashinfer: TllmGenFmhaRunner, unsupported architecture",
    ),
    Rule(
        id="trtllm_mha_capability",
        when=lambda s: (
            "trtllm_mha" in s.attentions and s.capability is not None and s.capability[0] not in (9, 10, 12)
        ),
        since="0.5.23",
        severity=Severity.ERROR,
        consequence="attention backend trtllm_mha needs compute capability 9.0, 10.x or 12.x, not {s.capability_text}",
        fix="--set backends.attention=triton",
        source="sglang 0.5.23: srt/arg_groups/attention_hook.py:200",
    ),
    Rule(
        id="cutedsl_mla_not_sm100",
        when=lambda s: "cutedsl_mla" in s.attentions and s.sm10x is False,
        since="0.5.13",
        severity=Severity.ERROR,
        consequence="attention backend cutedsl_mla needs compute capability 10.x, not {s.capability_text}",
        fix="--set backends.attention=triton",
        source="sglang 0.5.23: srt/arg_groups/overrides.py",
    ),
    Rule(
        id="k3_attention_default",
        when=lambda s: s.k3_attention_default,
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="no attention backend given: Kimi-K3 runs trtllm_mla on these GPUs",
        source="sglang 0.5.23: srt/arg_groups/model_overrides/kimi_k3.py:129",
        flag="--attention-backend",
        becomes="trtllm_mla",
    ),
)
