"""Rules about the block, the draft window and the speculative counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_HOOK = "srt/arg_groups/speculative_hook.py: _handle_dflash"


def _differ(s: Situation) -> bool:
    block, tokens = s.number("--speculative-dflash-block-size"), s.number("--speculative-num-draft-tokens")
    return s.dflash and None not in (block, tokens) and block != tokens


def _longer_block(s: Situation) -> bool:
    trained, given = s.draft.block_size, s.given_block
    return s.dflash and trained is not None and given is not None and given > trained


def _shorter_block(s: Situation) -> bool:
    trained, given = s.draft.block_size, s.given_block
    return s.dflash and trained is not None and given is not None and 0 < given < trained


def _not_one(s: Situation, flag: str) -> bool:
    number = s.number(flag)
    return s.dflash and number is not None and number != 1


RULES: tuple[Rule, ...] = (
    Rule(
        id="block_not_positive",
        when=lambda s: s.dflash and s.given_block is not None and s.given_block <= 0,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="block size {s.given_block} is not positive",
        fix="--block-size 8",
        source=_HOOK,
    ),
    Rule(
        id="block_given_twice",
        when=_differ,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="--speculative-dflash-block-size and --speculative-num-draft-tokens differ; for DFLASH they are the same",
        fix="give only --block-size",
        source=_HOOK,
    ),
    Rule(
        id="block_unknown",
        when=lambda s: s.dflash and s.given_block is None and s.draft.block_size is None,
        since="0.5.11",
        severity=Severity.WARNING,
        consequence="no block size given: SGLang takes the draft's own, and 16 when its config names none",
        fix="--block-size 8",
        source=_HOOK,
        flag="--speculative-num-draft-tokens",
        becomes="the draft's block_size, else 16",
    ),
    Rule(
        id="block_from_draft",
        when=lambda s: s.dflash and s.given_block is None and s.draft.block_size is not None,
        since="0.5.11",
        severity=Severity.NOTE,
        consequence="no block size given: the draft's own, {s.draft.block_size}, is used",
        source=_HOOK,
        flag="--speculative-num-draft-tokens",
        becomes="{s.draft.block_size}",
    ),
    Rule(
        id="block_mismatch",
        when=_longer_block,
        since="0.5.11",
        severity=Severity.WARNING,
        consequence=(
            "block size {s.given_block}, but the draft was trained for {s.draft.block_size}: "
            "SGLang only warns, and accept length is not what the card promises"
        ),
        fix="--block-size {s.draft.block_size}",
        source="sglang 0.5.23: srt/speculative/dflash_worker_v2.py:519",
    ),
    Rule(
        id="block_shorter",
        when=_shorter_block,
        since="0.5.11",
        severity=Severity.NOTE,
        consequence=(
            "block size {s.given_block} of the {s.draft.block_size} that the draft was trained for: it works, "
            "and SGLang logs a mismatch; published figures name their block size"
        ),
        source="sglang 0.5.23: srt/speculative/dflash_worker_v2.py:519",
    ),
    Rule(
        id="window_not_positive",
        when=lambda s: s.dflash and s.window is not None and s.window <= 0,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="draft window {s.window} is not positive",
        fix="--window-size 4096, or leave it out for full attention",
        source=_HOOK,
    ),
    Rule(
        id="window_below_block",
        when=lambda s: s.dflash and s.window is not None and 0 < s.window < s.block,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="draft window {s.window} is smaller than the block of {s.block}",
        fix="--window-size {s.block} or more (4096 is usual)",
        source=_HOOK,
    ),
    Rule(
        id="num_steps_forced",
        when=lambda s: _not_one(s, "--speculative-num-steps"),
        since="0.5.11",
        severity=Severity.WARNING,
        consequence="DFLASH has no draft steps: --speculative-num-steps becomes 1",
        fix="leave --speculative-num-steps out",
        source=_HOOK,
        flag="--speculative-num-steps",
        becomes="1",
    ),
    Rule(
        id="topk_forced",
        when=lambda s: _not_one(s, "--speculative-eagle-topk"),
        since="0.5.11",
        severity=Severity.WARNING,
        consequence="DFLASH verifies a chain, not a tree: --speculative-eagle-topk becomes 1",
        fix="leave --speculative-eagle-topk out",
        source=_HOOK,
        flag="--speculative-eagle-topk",
        becomes="1",
    ),
    Rule(
        id="rejection_sampling_idle",
        when=lambda s: s.dflash and s.has("--speculative-use-rejection-sampling"),
        severity=Severity.WARNING,
        consequence="--speculative-use-rejection-sampling is accepted but does nothing with DFLASH",
        fix="leave it out",
        source="observed at argument resolution in 0.5.19 and 0.5.23",
    ),
    Rule(
        id="block_verification_idle",
        when=lambda s: s.dflash and s.has("--speculative-use-block-verification"),
        since="0.5.22",
        severity=Severity.WARNING,
        consequence="--speculative-use-block-verification does nothing for a draft that proposes greedily, as DFlash drafts do",
        fix="leave it out",
        source="sglang 0.5.23: srt/arg_groups/speculative_hook.py",
    ),
    Rule(
        id="sink_idle",
        when=lambda s: s.dflash and s.has("--speculative-draft-sink-size"),
        since="0.5.21",
        severity=Severity.WARNING,
        consequence="--speculative-draft-sink-size does nothing with DFLASH",
        fix="leave it out",
        source="sglang 0.5.23: srt/server_args.py",
    ),
    Rule(
        id="ragged_mode_unknown",
        when=lambda s: (
            s.speculative
            and s.environment.get("SGLANG_RAGGED_VERIFY_MODE", "static")
            not in ("static", "cap-accept", "compact")
        ),
        since="0.5.16",
        severity=Severity.ERROR,
        consequence="SGLANG_RAGGED_VERIFY_MODE must be static, cap-accept or compact",
        fix="take SGLANG_RAGGED_VERIFY_MODE out of the environment",
        source="sglang 0.5.16: srt/environ.py",
    ),
)
