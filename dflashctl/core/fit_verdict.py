"""The verdict on a fit: runs, runs with another option, or does not fit and what would."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dflashctl.core.fit import (
    GIB,
    LEAST_SLACK_BYTES,
    MIB,
    RESIDUE_BYTES,
    Division,
    Fit,
    FitLine,
    FitRequest,
    FitVerdict,
    divide,
    engine_requests,
    start_bytes,
)

if TYPE_CHECKING:
    from dflashctl.core.kv_geometry import Geometry
    from dflashctl.core.serving import Serving

# Fewer tokens than this and not even the engine's own warm-up and smoke prompts fit.
_LEAST_TOKENS = 4096
_FRACTION_STEP = 0.01


def judge_fit(request: FitRequest) -> Fit:
    """The table and the verdict for one GPU of the plan."""
    target, weights = request.target, request.target_weights_bytes
    if target is None or weights is None:
        missing = "its weights' size" if weights is None else "its config"
        return Fit(
            verdict=FitVerdict.UNKNOWN,
            summary=f"the memory fit cannot be judged before the target is fetched: {missing} is not known",
            fix="dflashctl fetch PROFILE",
        )
    fraction = request.serving.static_fraction or default_fraction(request)
    division = divide(request, target, weights, fraction)
    greedy = division.slack_bytes < _slack_floor(request.serving)
    if greedy and _fraction_that_fits(request, target, weights) is not None:
        return _too_greedy(request, division)
    if greedy or division.tokens < _LEAST_TOKENS or engine_requests(division, request.serving) == 0:
        return _too_small(request, target, weights, division)
    return _runs(request, target, division)


def untold_fit() -> Fit:
    """The answer for GPUs of which one does not tell how much memory it has."""
    return Fit(
        verdict=FitVerdict.UNKNOWN,
        summary="the memory fit cannot be judged: the driver does not tell how much memory the GPUs have",
        fix="look at: nvidia-smi -q -d MEMORY",
    )


def default_fraction(request: FitRequest) -> float:
    """The fraction SGLang takes when none is given (arg_groups/memory_hook.py, `handle_gpu_memory_settings`)."""
    memory, serving = request.memory_bytes / MIB, request.serving
    chunk, graph_requests = _gpu_defaults(memory, serving.tensor)
    graph_requests = min(graph_requests, serving.max_running_requests or graph_requests)
    mla = request.target is not None and request.target.mla_dim is not None
    reserve = 512 + max(chunk, 2048) * 1.5 + serving.tensor * serving.pipeline / 8 * 1024
    reserve += graph_requests * 2 + (1536 if mla else 58 * 8)
    if memory > 60 * 1024:
        reserve = max(reserve, 10 * 1024)
    return round((memory - reserve) / memory, 3)


def _gpu_defaults(memory_mib: float, tensor: int) -> tuple[int, int]:
    """Chunked prefill size in tokens and largest decode graph in requests, by GPU memory."""
    many = tensor >= 4  # noqa: PLR2004 - the boundary of the engine's own table
    for limit, chunk, graph in (
        (20, 2048, 8),
        (35, 4096, 160 if many else 48),
        (60, 4096, 160 if many else 32),
        (160, 8192, 512 if many else 256),
    ):
        if memory_mib < limit * 1024:
            return chunk, graph
    return 16384, 512


def _slack_floor(serving: Serving) -> int:
    return LEAST_SLACK_BYTES + int(serving.tensor * serving.pipeline / 8 * GIB)


def _runs(request: FitRequest, target: Geometry, division: Division) -> Fit:
    serving = request.serving
    tokens = _usable_tokens(division, serving)
    context = serving.context_tokens or target.context_tokens
    running = engine_requests(division, serving)
    summary = f"runs: {tokens:,} tokens of KV cache" + (_full_requests(tokens, context) if context else "")
    asked = serving.context_tokens
    changed = asked is not None and tokens < asked
    fix = f"--set memory.context_length={tokens // 1024 * 1024}" if changed else None
    if changed:
        summary = f"runs with a smaller context: {tokens:,} tokens of KV cache, {asked:,} were asked for"
    return Fit(
        verdict=FitVerdict.RUNS_IF_CHANGED if changed else FitVerdict.RUNS,
        summary=summary,
        lines=_lines(request, division),
        kv_tokens=tokens,
        context_tokens=context,
        full_requests=round(tokens / context, 2) if context else None,
        max_running_requests=running,
        static_fraction=division.fraction,
        slack_bytes=division.slack_bytes,
        fix=fix,
        estimated=_estimated(request),
    )


def _usable_tokens(division: Division, serving: Serving) -> int:
    tokens = division.tokens // serving.page_size * serving.page_size
    return min(tokens, serving.max_total_tokens or tokens)


def _full_requests(tokens: int, context: int) -> str:
    count = tokens // context
    if count == 0:
        return f"; one request of the whole context ({context:,} tokens) is more than that"
    return f", {count} request{'s' if count > 1 else ''} of {context:,} tokens"


def _too_greedy(request: FitRequest, division: Division) -> Fit:
    """So much is static that graphs and activations have no room: the engine dies of CUDA out of memory."""
    best = _floor_fraction(request)
    return Fit(
        verdict=FitVerdict.RUNS_IF_CHANGED,
        summary=(
            f"does not start: a static fraction of {division.fraction:g} leaves "
            f"{division.slack_bytes / GIB:.1f} GiB for CUDA graphs and activations, "
            f"{_slack_floor(request.serving) / GIB:.1f} GiB is the least"
        ),
        lines=_lines(request, division),
        static_fraction=division.fraction,
        slack_bytes=division.slack_bytes,
        fix=f"--set memory.static_fraction={best:.2f}",
        estimated=_estimated(request),
    )


def _too_small(request: FitRequest, target: Geometry, weights: int, division: Division) -> Fit:
    """The static part does not hold weights and a useful cache: a larger fraction may, or nothing here does."""
    fraction = _fraction_that_fits(request, target, weights)
    need = request.target_weights_bytes or 0
    if fraction is not None:
        return Fit(
            verdict=FitVerdict.RUNS_IF_CHANGED,
            summary=(
                f"does not start: a static fraction of {division.fraction:g} holds the weights "
                f"and {max(0, division.kv_bytes) / GIB:.1f} GiB of KV cache"
            ),
            lines=_lines(request, division),
            static_fraction=division.fraction,
            slack_bytes=division.slack_bytes,
            fix=f"--set memory.static_fraction={fraction:.2f}",
            estimated=_estimated(request),
        )
    held = (division.target_bytes + division.draft_bytes) / 1e9
    return Fit(
        verdict=FitVerdict.DOES_NOT_FIT,
        summary=(
            f"does not fit: the weights take {held:.0f} GB of each GPU's {request.memory_bytes / 1e9:.0f} GB "
            f"at tensor parallel {request.serving.tensor}"
        ),
        lines=_lines(request, division),
        static_fraction=division.fraction,
        slack_bytes=division.slack_bytes,
        fix=_what_would(request, need),
        estimated=_estimated(request),
    )


def _fraction_that_fits(request: FitRequest, target: Geometry, weights: int) -> float | None:
    """The smallest fraction, in steps of 0.01, that gives a useful cache and leaves the floor free."""
    top = _floor_fraction(request)
    steps = round(top / _FRACTION_STEP)
    for step in range(1, steps + 1):
        fraction = step * _FRACTION_STEP
        division = divide(request, target, weights, fraction)
        if division.tokens >= _LEAST_TOKENS and engine_requests(division, request.serving) != 0:
            return fraction
    return None


def _floor_fraction(request: FitRequest) -> float:
    start = start_bytes(request.memory_bytes, request.serving)
    return math.floor((1 - _slack_floor(request.serving) / max(start, 1)) / _FRACTION_STEP) * _FRACTION_STEP


def _what_would(request: FitRequest, weights: int) -> str:
    """The next tensor-parallel size that holds the weights, or the memory a GPU would need."""
    start = start_bytes(request.memory_bytes, request.serving)
    room = start - _slack_floor(request.serving) - RESIDUE_BYTES
    total = weights + (request.draft_weights_bytes or 0)
    need = 1
    while room > 0 and total / need > room:
        need *= 2
    each = total / (request.serving.tensor * request.serving.pipeline)
    gpu = (each + _slack_floor(request.serving)) / 1e9
    if room <= 0:
        return f"GPUs of at least {math.ceil(gpu)} GB"
    return (
        f"{need} GPUs of this kind (--set parallel.tensor={need}), or GPUs of more than {math.ceil(gpu)} GB"
    )


def _weights_note(serving: Serving) -> str:
    """Attention groups keep whole attention weights, whose share of the files no config tells."""
    more = ", attention's more than that" if serving.attention_data > 1 else ""
    return f"1/{serving.tensor} of the files{more}"


def _estimated(request: FitRequest) -> bool:
    return request.serving.attention_data > 1 or any(
        geometry is not None and geometry.estimated for geometry in (request.target, request.draft)
    )


def _lines(request: FitRequest, division: Division) -> tuple[FitLine, ...]:
    outside = request.memory_bytes - division.start_bytes
    target_cell = division.cell_bytes - division.draft_cell_bytes
    cache = max(0, division.kv_bytes)
    lines = [
        FitLine(
            part="target weights",
            size_bytes=division.target_bytes,
            note=_weights_note(request.serving),
        ),
        FitLine(part="draft weights", size_bytes=division.draft_bytes),
        FitLine(part="multimodal buffers", size_bytes=division.multimodal_bytes),
        FitLine(
            part="linear-attention state",
            size_bytes=division.state_bytes,
            note=None if division.state_slots is None else f"{division.state_slots} slots",
        ),
        FitLine(
            part="target KV cache",
            size_bytes=cache * target_cell // division.cell_bytes,
            note=f"{target_cell:,} bytes a token",
        ),
        FitLine(
            part="draft KV cache",
            size_bytes=cache * division.draft_cell_bytes // division.cell_bytes,
            note=f"{division.draft_cell_bytes:,} bytes a token",
        ),
        FitLine(
            part="graphs, activations",
            size_bytes=division.slack_bytes,
            note=f"1 - static fraction {division.fraction:g}",
        ),
        FitLine(part="CUDA, communication", size_bytes=outside + RESIDUE_BYTES),
    ]
    return tuple(line for line in lines if line.size_bytes)
