"""memory_fit: whether weights, drafter, caches and state fit the GPUs of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.fit import FitVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "memory_fit"
NEEDS = ("fit", "gpus")
SOURCE = (
    "vllm-project/recipes#698: Kimi-K3 on 8x H200 dies of a bare out-of-memory error after the weights; "
    "sgl-project/sglang#34234: the drafter's cache takes 8.6 GiB beside the target's 27.5"
)


def check(facts: Facts) -> Iterator[Finding]:
    fit = facts.fit
    if fit is None:
        return
    if fit.verdict is FitVerdict.UNKNOWN:
        yield found(ID, Severity.NOTE, fit.summary, fix=fit.fix)
    elif fit.verdict is FitVerdict.DOES_NOT_FIT:
        yield found(ID, Severity.ERROR, fit.summary, fix=fit.fix)
    elif fit.verdict is FitVerdict.RUNS_IF_CHANGED:
        starts = fit.kv_tokens is not None
        yield found(ID, Severity.WARNING if starts else Severity.ERROR, fit.summary, fix=fit.fix)
    elif fit.max_running_requests and facts.serving and facts.serving.max_running_requests:
        wanted = facts.serving.max_running_requests
        if fit.max_running_requests < wanted:
            yield found(
                ID,
                Severity.NOTE,
                f"the linear-attention state holds {fit.max_running_requests} requests at once, {wanted} were planned",
                fix="--set memory.static_fraction (higher), or fewer draft tokens: --block-size",
            )
