"""Rules about cached linear-attention states: strategy, buffers, tracking interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation


def _track_interval(s: Situation) -> int:
    return max(1, int(s.number("--mamba-track-interval") or 256))


def _buffered(s: Situation) -> bool:
    return s.is_hybrid and s.radix and s.state_strategy.startswith("extra_buffer")


def _short_interval(s: Situation) -> bool:
    return _buffered(s) and s.speculative and _track_interval(s) < s.block


def _final_page(s: Situation) -> int:
    page = s.page_size or 1
    return 64 if "trtllm_mla" in (s.attention, s.decode_attention) and page not in (32, 64) else page


RULES: tuple[Rule, ...] = (
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
)
