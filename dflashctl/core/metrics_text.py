"""Metrics text: the figures of an engine's Prometheus page that say how it is doing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"sglang:([a-z_]+)(?:\{([^}]*)\})? (\S+)")
_MOVING = (
    "generation_tokens_total",
    "prompt_tokens_total",
    "inter_token_latency_seconds_count",
    "time_to_first_token_seconds_count",
    "spec_verify_calls_total",
    "token_usage",
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, kw_only=True)
class LiveFigures:
    """None is unknown. `tokens_total` counts the tokens of finished requests; `kv_use` is a share of 1.

    `activity` changes whenever tokens come: SGLang counts generated tokens only when a request has ended, so the
    latencies it observes meanwhile and the pool's use count too.
    """

    running: int | None = None
    queued: int | None = None
    output_tokens_per_s: float | None = None
    accept_length: float | None = None
    kv_use: float | None = None
    tokens_total: float | None = None
    activity: float | None = None


def live_figures(text: str) -> LiveFigures:
    """From the page's text; data-parallel ranks are added up, the other ranks repeat the first and are left out."""
    samples: dict[str, list[float]] = {}
    for found in _SAMPLE.finditer(text):
        if _counts(found[2] or ""):
            samples.setdefault(found[1], []).append(_number(found[3]))
    running, queued = samples.get("num_running_reqs"), samples.get("num_queue_reqs")
    accept = [value for value in samples.get("spec_accept_length", []) if value > 0]
    return LiveFigures(
        running=int(sum(running)) if running else None,
        queued=int(sum(queued)) if queued else None,
        output_tokens_per_s=_sum(samples.get("gen_throughput")),
        accept_length=sum(accept) / len(accept) if accept else None,
        kv_use=max(samples["token_usage"]) if samples.get("token_usage") else None,
        tokens_total=_sum(samples.get("generation_tokens_total")),
        activity=_sum([value for name in _MOVING for value in samples.get(name, ())] or None),
    )


def _sum(values: list[float] | None) -> float | None:
    return sum(values) if values else None


def _counts(labels: str) -> bool:
    ranks = {
        name: value for name, value in _LABEL.findall(labels) if name in {"tp_rank", "pp_rank", "moe_ep_rank"}
    }
    return all(value in {"0", ""} for value in ranks.values())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
