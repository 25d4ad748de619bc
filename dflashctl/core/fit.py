"""Fit: GPU memory as SGLang divides it among weights, linear-attention state, KV caches and the rest.

The arithmetic is that of SGLang 0.5.23: `_profile_available_bytes` and `_handle_max_mamba_cache` in
mem_cache/kv_cache_configurator.py, cell sizes in model_executor/pool_configurator.py, state sizes in
configs/mamba_utils.py. All sizes are bytes on one GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.fit_cells import draft_kv_bytes_per_token, kv_bytes_per_token, replay_bytes, state_bytes

if TYPE_CHECKING:
    from dflashctl.core.kv_geometry import Geometry
    from dflashctl.core.serving import Serving

GIB = 1 << 30
MIB = 1 << 20
# Measured with SGLang 0.5.17 on H200: the CUDA context took 0.50 GiB; what loading leaves behind 0.1 GiB.
CONTEXT_BYTES = GIB // 2
RESIDUE_BYTES = GIB // 10
# Same servers: communication set-up took 0.09 GiB for one rank and 1.07 GiB a rank for two.
DISTRIBUTED_BYTES = (GIB // 11, int(1.07 * GIB))
# SGLANG_VLM_CACHE_SIZE_MB and SGLANG_MM_FEATURE_CACHE_MB (environ.py), set aside for multimodal targets.
MULTIMODAL_BYTES = (100 + 1024) * MIB
# mem_cache/kv_cache_configurator.py: slots a request may hold with the prefix cache and two tracking buffers.
SLOTS_PER_REQUEST = 5
# The least that SGLang itself leaves free beside the static part (arg_groups/memory_hook.py).
LEAST_SLACK_BYTES = 1536 * MIB


class FitVerdict(str, Enum):
    RUNS = "runs"
    RUNS_IF_CHANGED = "runs_if_changed"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """`memory_bytes` is what CUDA can use of the smallest GPU: its total less the driver's reserve.

    Weights are of the whole model. `draft` and `draft_weights_bytes` are None without speculation.
    """

    serving: Serving
    memory_bytes: int
    target: Geometry | None
    target_weights_bytes: int | None
    draft: Geometry | None = None
    draft_weights_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class FitLine:
    """One line of the table: a part of the memory; `note` says how the figure came about."""

    part: str
    size_bytes: int
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fit:
    """`kv_tokens` fit both caches together; `full_requests` is how many requests of `context_tokens` that is.

    `max_running_requests` is None where the engine finds it; `fix` is the option that would make it run.
    """

    verdict: FitVerdict
    summary: str
    lines: tuple[FitLine, ...] = ()
    kv_tokens: int | None = None
    context_tokens: int | None = None
    full_requests: float | None = None
    max_running_requests: int | None = None
    static_fraction: float | None = None
    slack_bytes: int | None = None
    fix: str | None = None
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Division:
    """The memory of one GPU divided; `kv_bytes` may be negative, which means that it does not fit."""

    start_bytes: int
    fraction: float
    target_bytes: int
    draft_bytes: int
    multimodal_bytes: int
    state_bytes: int
    state_slots: int | None
    kv_bytes: int
    cell_bytes: int
    draft_cell_bytes: int

    @property
    def slack_bytes(self) -> int:
        return int(self.start_bytes * (1 - self.fraction))

    @property
    def tokens(self) -> int:
        return max(0, self.kv_bytes // self.cell_bytes)


def start_bytes(memory_bytes: int, serving: Serving) -> int:
    """What is free when the engine measures, after CUDA and the communicators took theirs."""
    together = serving.tensor * serving.pipeline > 1
    return memory_bytes - CONTEXT_BYTES - DISTRIBUTED_BYTES[together]


def divide(request: FitRequest, target: Geometry, weights_bytes: int, fraction: float) -> Division:
    """Divide as the engine does with `fraction` of the start memory for the static part."""
    serving = request.serving
    start = start_bytes(request.memory_bytes, serving)
    ranks = serving.tensor * serving.pipeline
    target_bytes = weights_bytes // ranks
    draft_bytes = (request.draft_weights_bytes or 0) // serving.tensor
    multimodal = MULTIMODAL_BYTES if target.multimodal else 0
    rest = int(start * fraction) - RESIDUE_BYTES - target_bytes - draft_bytes - multimodal
    state, slots, rest = _hybrid(rest, serving, target)
    draft_cell = draft_kv_bytes_per_token(request.draft, serving) if request.draft else 0
    return Division(
        start_bytes=start,
        fraction=fraction,
        target_bytes=target_bytes,
        draft_bytes=draft_bytes,
        multimodal_bytes=multimodal,
        state_bytes=state,
        state_slots=slots,
        kv_bytes=rest,
        cell_bytes=kv_bytes_per_token(target, serving) + draft_cell,
        draft_cell_bytes=draft_cell,
    )


def _hybrid(rest: int, serving: Serving, target: Geometry) -> tuple[int, int | None, int]:
    """State bytes, slots and what is left for KV, for a target with linear-attention layers.

    The state gets ratio/(1+ratio) of the rest; without the prefix cache it gets a slot a running request and no more.
    Each attention group has its own share of requests and slots. Without the replay ring every request in flight also keeps one state
    a draft token, solved together with the slots; with it a ring of recent inputs stands in each slot.
    """
    if target.linear is None:
        return 0, None, rest
    per_slot = state_bytes(target.linear, serving)
    ring = replay_bytes(target.linear, serving) if serving.replay_state else 0
    budget = rest * serving.hybrid_ratio / (1 + serving.hybrid_ratio)
    tokens = serving.block_size if serving.block_size and not serving.replay_state else 0
    share = SLOTS_PER_REQUEST if serving.radix_cache else 1
    wanted = requests_of_a_group(serving)
    if serving.hybrid_slots is not None:
        slots = serving.hybrid_slots // serving.attention_data
    elif not serving.radix_cache and wanted is not None:
        slots = wanted
    else:
        each = per_slot * (1 + tokens / share) + ring
        slots = int((budget - per_slot * (1 + tokens) - ring) // each)
    requests = min(wanted or slots, slots // share)
    scratch = per_slot * (requests + 1) * tokens if tokens else 0
    state = max(0, (slots + 1) * (per_slot + ring) + scratch)
    return state, slots, rest - state


def requests_of_a_group(serving: Serving) -> int | None:
    """The running requests that one attention group is asked to hold."""
    asked = serving.max_running_requests
    return None if asked is None else max(1, asked // serving.attention_data)


def engine_requests(division: Division, serving: Serving) -> int | None:
    """How many requests run at once: what was asked, or fewer when the state slots bind."""
    if division.state_slots is None:
        return serving.max_running_requests
    share = SLOTS_PER_REQUEST if serving.radix_cache else 1
    held = max(0, division.state_slots // share) * serving.attention_data
    return min(serving.max_running_requests or held, held)
