"""Rules about ReplaySSM verification: the ring instead of a state for each draft token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_REPLAY = "srt/arg_groups/attention_hook.py"
_POOL = "sglang 0.5.23: srt/mem_cache/memory_pool.py:824"


def _state_not_fp32(s: Situation) -> bool:
    return s.is_("--mamba-ssm-dtype", "bfloat16", "float16")


def _ring_wrong(s: Situation) -> bool:
    kda = s.is_kda or s.architecture is None
    return s.replayssm and s.speculative and kda and (s.ring < 2 * s.block or s.ring & (s.ring - 1) != 0)


RULES: tuple[Rule, ...] = (
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
