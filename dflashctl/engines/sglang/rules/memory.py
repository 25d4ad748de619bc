"""Rules about KV pages and types, request limits and context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_LONGER_CONTEXT = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
_PAGES = "sglang 0.5.23: srt/arg_groups/overrides.py:1161"


def _uses_mla(s: Situation) -> bool:
    return "trtllm_mla" in (s.attention, s.decode_attention)


def _uses_mha(s: Situation) -> bool:
    return "trtllm_mha" in (*s.attentions, s.draft_attention)


def _fa4_target(s: Situation) -> bool:
    return "fa4" in s.attentions and not s.is_mla and bool(s.sm10x)


def _short_draft(s: Situation) -> bool:
    longest, asked = s.draft.context_tokens, s.number("--context-length")
    wanted = asked if asked is not None else s.target.context_tokens
    allowed = s.environment.get(_LONGER_CONTEXT, "").lower() in ("1", "true", "yes", "y")
    return s.dflash and longest is not None and wanted is not None and wanted > longest and not allowed


RULES: tuple[Rule, ...] = (
    Rule(
        id="requests_limited",
        when=lambda s: s.dflash and not s.has("--max-running-requests"),
        since="0.5.11",
        severity=Severity.NOTE,
        consequence="no limit of running requests given: with DFLASH SGLang runs at most 48 at once",
        fix="--set memory.max_running_requests=N",
        source="sglang 0.5.23: srt/arg_groups/speculative_hook.py:443",
        flag="--max-running-requests",
        becomes="48",
    ),
    Rule(
        id="page_size_forced",
        when=lambda s: _uses_mla(s) and s.page_size is not None and s.page_size not in (32, 64),
        severity=Severity.WARNING,
        consequence="trtllm_mla takes pages of 32 or 64 tokens: page size {s.page_size} really becomes 64",
        fix="--set memory.page_size=64",
        source=_PAGES,
        flag="--page-size",
        becomes="64",
    ),
    Rule(
        id="page_size_default",
        when=lambda s: _uses_mla(s) and s.page_size is None,
        severity=Severity.NOTE,
        consequence="trtllm_mla makes KV pages of 64 tokens",
        source=_PAGES,
        flag="--page-size",
        becomes="64",
    ),
    Rule(
        id="page_size_forced",
        when=lambda s: _uses_mha(s) and not _uses_mla(s) and s.page_size not in (None, 16, 32, 64, 128),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence="trtllm_mha takes pages of 16 to 128 tokens: page size {s.page_size} really becomes 64",
        fix="--set memory.page_size=64",
        source=_PAGES,
        flag="--page-size",
        becomes="64",
    ),
    Rule(
        id="page_size_default",
        when=lambda s: _uses_mha(s) and not _uses_mla(s) and s.page_size is None,
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="trtllm_mha makes KV pages of 64 tokens",
        source=_PAGES,
        flag="--page-size",
        becomes="64",
    ),
    Rule(
        id="page_size_forced",
        when=lambda s: _fa4_target(s) and s.page_size not in (None, 128),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence="fa4 takes pages of 128 tokens for this model: page size {s.page_size} really becomes 128",
        fix="--set memory.page_size=128",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:1294",
        flag="--page-size",
        becomes="128",
    ),
    Rule(
        id="page_size_default",
        when=lambda s: _fa4_target(s) and s.page_size is None,
        since="0.5.17",
        severity=Severity.NOTE,
        consequence="fa4 makes KV pages of 128 tokens for this model",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:1294",
        flag="--page-size",
        becomes="128",
    ),
    Rule(
        id="kv_type_refused",
        when=lambda s: (
            _uses_mla(s)
            and s.has("--kv-cache-dtype")
            and not s.is_("--kv-cache-dtype", "auto", "bf16", "fp8_e4m3")
        ),
        severity=Severity.ERROR,
        consequence="trtllm_mla takes a KV cache of type auto, bf16 or fp8_e4m3 only",
        fix="--set memory.kv_cache_dtype=fp8_e4m3",
        source="sglang 0.5.23: srt/arg_groups/overrides.py:1218",
    ),
    Rule(
        id="kv_nvfp4_refused",
        when=lambda s: s.dflash and s.is_("--kv-cache-dtype", "nvfp4") and s.sm10x,
        severity=Severity.ERROR,
        consequence="DFLASH does not run with an NVFP4 KV cache on these GPUs",
        fix="--set memory.kv_cache_dtype=fp8_e4m3",
        source="sglang 0.5.23: srt/arg_groups/kv_cache_hook.py:165",
    ),
    Rule(
        id="mixed_chunk_off",
        when=lambda s: s.dflash and s.has("--enable-mixed-chunk"),
        since="0.5.11",
        until="0.5.18",
        severity=Severity.WARNING,
        consequence="SGLang {s.release} turns --enable-mixed-chunk off with DFLASH",
        fix="leave it out, or SGLang 0.5.19 or later",
        source="sglang 0.5.18: srt/arg_groups/speculative_hook.py",
    ),
    Rule(
        id="lm_head_quantized",
        when=lambda s: s.dflash and s.target.quantized_lm_head and (s.number("--tp-size") or 1) > 1,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="the target's lm_head is quantized, which DFLASH takes on one GPU only: the first request would fail",
        fix="use a checkpoint with a dense lm_head, or --set parallel.tensor=1",
        source="sglang 0.5.23: srt/speculative/dflash_worker_v2.py:1581",
    ),
    Rule(
        id="context_beyond_draft",
        when=_short_draft,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence=(
            "the context length (--context-length, else the target's own) is longer than the draft's "
            "{s.draft.context_tokens}: SGLang loads the target and then refuses to load the draft"
        ),
        fix=(
            "--set memory.context_length={s.draft.context_tokens}, or "
            "--set environment.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 (accept length falls beyond that length)"
        ),
        source="sglang 0.5.23: srt/configs/model_config.py:1291",
    ),
)
