"""Rules about what a release supports at all: the algorithm, the target's class, the draft's class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation


def _draft_class_missing(s: Situation) -> bool:
    name = s.draft.architecture
    return s.dflash and name is not None and s.hooks_of(name) is None


def _class_missing(s: Situation) -> bool:
    return (
        s.architecture is not None and s.hooks is None and bool(catalogue.releases_with_class(s.architecture))
    )


def _hook_missing(s: Situation) -> bool:
    return s.dflash and s.hooks is not None and "dflash" not in s.hooks


# SpeculativeAlgorithm and its aliases in 0.5.23; earlier releases know some of them.
_ALGORITHMS = (
    "DFLASH",
    "DSPARK",
    "EAGLE",
    "EAGLE3",
    "NEXTN",
    "FROZEN_KV_MTP",
    "STANDALONE",
    "NGRAM",
    "UNO",
    "NONE",
)

RULES: tuple[Rule, ...] = (
    Rule(
        id="dflash_absent",
        when=lambda s: s.wants_dflash or s.dflash,
        until="0.5.10",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} has no DFLASH; it came with 0.5.11",
        fix="use SGLang 0.5.11 or later",
        source="srt/speculative/spec_info.py",
    ),
    Rule(
        id="dspark_absent",
        when=lambda s: s.algorithm == "DSPARK",
        until="0.5.15",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} has no DSPARK; it came with 0.5.16",
        fix="use SGLang 0.5.16 or later",
        source="sglang 0.5.16: srt/speculative/spec_info.py:38",
    ),
    Rule(
        id="algorithm_unknown",
        when=lambda s: s.algorithm is not None and s.algorithm not in _ALGORITHMS,
        since="0.5.12",
        severity=Severity.ERROR,
        consequence="SGLang has no speculative algorithm {s.algorithm}",
        fix="--speculative-algorithm DFLASH, or leave it out",
        source="sglang 0.5.23: srt/speculative/spec_info.py:65",
    ),
    Rule(
        id="target_class_absent",
        when=_class_missing,
        severity=Severity.ERROR,
        consequence="SGLang {s.release} has no class {s.architecture}, which {s.target_name} needs",
        fix="releases with it and its DFLASH hook: {s.hook_releases}",
        source="srt/models",
    ),
    Rule(
        id="target_without_dflash_hook",
        when=_hook_missing,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence=(
            "{s.architecture} of SGLang {s.release} cannot hand hidden states to a DFLASH draft "
            "(no set_dflash_layers_to_capture): it would die after loading all weights"
        ),
        fix="releases that can: {s.hook_releases}",
        source="srt/model_executor/model_runner_components/attention_backend_setup.py",
    ),
    Rule(
        id="draft_class_absent",
        when=_draft_class_missing,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} has no draft class {s.draft.architecture}",
        fix="use a newer release, or a draft of class DFlashDraftModel",
        source="srt/models/dflash.py: EntryClass",
    ),
    Rule(
        id="dflash_without_draft",
        when=lambda s: (s.wants_dflash or s.dflash) and not s.has("--speculative-draft-model-path"),
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="DFLASH needs a draft model",
        fix="name the draft in the profile, or set speculative.algorithm to NONE",
        source="srt/arg_groups/speculative_hook.py: _handle_dflash",
    ),
    Rule(
        id="overlap_off",
        when=lambda s: s.dflash,
        since="0.5.11",
        until="0.5.13",
        severity=Severity.NOTE,
        consequence="SGLang {s.release} runs DFLASH without overlapped scheduling, so slower than from 0.5.14 on",
        fix="use SGLang 0.5.14 or later",
        source="sglang 0.5.13: srt/arg_groups/speculative_hook.py",
        flag="--disable-overlap-schedule",
        becomes="",
    ),
    Rule(
        id="device_refused",
        when=lambda s: s.dflash and s.has("--device") and not s.is_("--device", "cuda"),
        since="0.5.16",
        until="0.5.16",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} runs DFLASH on CUDA only",
        source="sglang 0.5.16: srt/arg_groups/speculative_hook.py",
    ),
    Rule(
        id="device_refused",
        when=lambda s: s.dflash and s.has("--device") and not s.is_("--device", "cuda", "npu"),
        since="0.5.17",
        until="0.5.19",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} runs DFLASH on CUDA and NPU only",
        source="sglang 0.5.19: srt/arg_groups/speculative_hook.py",
    ),
    Rule(
        id="device_refused",
        when=lambda s: s.dflash and s.has("--device") and not s.is_("--device", "cuda", "npu", "xpu"),
        since="0.5.20",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} runs DFLASH on CUDA, NPU and XPU only",
        source="sglang 0.5.23: srt/arg_groups/speculative_hook.py:290",
    ),
    Rule(
        id="requests_without_grammar",
        when=lambda s: s.dflash,
        since="0.5.11",
        until="0.5.16",
        severity=Severity.NOTE,
        consequence=(
            "SGLang {s.release} with DFLASH refuses requests with a grammar, a JSON schema, forced tools or logprobs"
        ),
        fix="use SGLang 0.5.18 or later for these",
        source="sglang 0.5.14: srt/speculative/dflash_utils.py:807",
    ),
    Rule(
        id="requests_without_logprobs",
        when=lambda s: s.dflash,
        since="0.5.17",
        until="0.5.17",
        severity=Severity.NOTE,
        consequence="SGLang {s.release} with DFLASH refuses requests for logprobs",
        fix="use SGLang 0.5.18 or later for these",
        source="sglang 0.5.17: srt/speculative/dflash_utils.py",
    ),
)
