"""Rules about CUDA graphs for prefill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_HOOK = "sglang 0.5.23: srt/arg_groups/cuda_graph_hook.py:148"


def _asked(s: Situation) -> bool:
    return s.has("--cuda-graph-backend-prefill")


RULES: tuple[Rule, ...] = (
    Rule(
        id="prefill_graph_off",
        when=lambda s: not _asked(s) and (s.is_kda or s.is_multimodal or (s.number("--pp-size") or 1) > 1),
        since="0.5.14",
        severity=Severity.NOTE,
        consequence="no prefill graph given: SGLang runs this model's prefill without one",
        fix="--set backends.prefill_graph=breakable forces it",
        source=_HOOK,
        flag="--cuda-graph-backend-prefill",
        becomes="disabled",
    ),
    Rule(
        id="prefill_graph_unchecked",
        when=lambda s: s.is_("--cuda-graph-backend-prefill", "breakable") and (s.is_kda or s.is_multimodal),
        since="0.5.14",
        severity=Severity.NOTE,
        consequence="an explicit prefill graph skips SGLang's own check of whether this model can have one",
        fix="--set backends.prefill_graph=disabled if the start fails while it captures",
        source=_HOOK,
    ),
    Rule(
        id="prefill_graph_sizes_idle",
        when=lambda s: (
            s.has("--cuda-graph-max-bs-prefill") and s.is_("--cuda-graph-backend-prefill", "disabled")
        ),
        since="0.5.14",
        severity=Severity.WARNING,
        consequence="the prefill graph is disabled, so its largest size does nothing",
        fix="--set backends.prefill_graph_max_tokens=null",
        source=_HOOK,
    ),
)
