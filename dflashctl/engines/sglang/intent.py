"""Data: which engine option each part of a profile becomes, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.profile import Algorithm
from dflashctl.engines.sglang.wish import Wish, wish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dflashctl.core.engine import EngineRequest
    from dflashctl.core.profile import Profile


@dataclass(frozen=True, kw_only=True)
class Part:
    """A profile path and its option in the newest spelling.

    `usual` is the engine's own default, for which nothing is said. `also` are other spellings of the same
    intent, understood when a command is read. `speculative` parts matter only with a draft.
    """

    path: str
    flag: str
    kind: type[str | int | float] = str
    switch: bool = False
    usual: object = None
    also: tuple[str, ...] = ()
    speculative: bool = False
    why: str | None = None


PARTS: tuple[Part, ...] = (
    Part(path="target.trust_remote_code", flag="--trust-remote-code", switch=True, usual=False),
    Part(path="server.served_model_name", flag="--served-model-name"),
    Part(
        path="speculative.block_size",
        kind=int,
        flag="--speculative-dflash-block-size",
        also=("--speculative-num-draft-tokens",),
        speculative=True,
        why="the newest token and the proposals, verified in one step",
    ),
    Part(
        path="speculative.draft_window_size",
        kind=int,
        flag="--speculative-draft-window-size",
        speculative=True,
        why="the draft attends to this many recent tokens",
    ),
    Part(path="backends.attention", flag="--attention-backend"),
    Part(path="backends.draft_attention", flag="--speculative-draft-attention-backend", speculative=True),
    Part(path="backends.linear_prefill", flag="--linear-attn-prefill-backend"),
    Part(path="backends.linear_decode", flag="--linear-attn-decode-backend"),
    Part(path="backends.linear_verify", flag="--linear-attn-verify-backend", speculative=True),
    Part(
        path="backends.replayssm",
        flag="--enable-linear-replayssm-spec",
        switch=True,
        usual=False,
        speculative=True,
        why="linear-attention states are replayed from a ring instead of being kept for each draft token",
    ),
    Part(
        path="backends.replayssm_cache_len",
        kind=int,
        flag="--linear-replayssm-cache-len",
        speculative=True,
        why="ring length; at least twice the block size",
    ),
    Part(path="backends.moe_runner", flag="--moe-runner-backend"),
    Part(path="backends.sampling", flag="--sampling-backend"),
    Part(path="backends.grammar", flag="--grammar-backend"),
    Part(path="backends.prefill_graph", flag="--cuda-graph-backend-prefill"),
    Part(
        path="backends.prefill_graph_max_tokens",
        kind=int,
        flag="--cuda-graph-max-bs-prefill",
        why="the longest prefill that runs as a graph, in tokens",
    ),
    Part(path="parallel.tensor", kind=int, flag="--tp-size", usual=1),
    Part(path="parallel.pipeline", kind=int, flag="--pp-size", usual=1),
    Part(path="parallel.data", kind=int, flag="--dp-size", usual=1),
    Part(path="parallel.expert", kind=int, flag="--ep-size", usual=1),
    Part(path="memory.static_fraction", kind=float, flag="--mem-fraction-static"),
    Part(path="memory.context_length", kind=int, flag="--context-length"),
    Part(path="memory.max_running_requests", kind=int, flag="--max-running-requests"),
    Part(path="memory.max_total_tokens", kind=int, flag="--max-total-tokens"),
    Part(path="memory.kv_cache_dtype", flag="--kv-cache-dtype"),
    Part(path="memory.page_size", kind=int, flag="--page-size"),
    Part(path="server.reasoning_parser", flag="--reasoning-parser"),
    Part(path="server.tool_call_parser", flag="--tool-call-parser"),
    Part(
        path="server.metrics",
        flag="--enable-metrics",
        switch=True,
        usual=False,
        why="live figures and bench read /metrics",
    ),
    Part(path="server.host", flag="--host"),
    Part(path="server.port", kind=int, flag="--port"),
)

BY_FLAG = {flag: part for part in PARTS for flag in (part.flag, *part.also)}


def value_at(profile: Profile, path: str) -> object:
    """The value at a path such as "speculative.block_size"."""
    found: object = profile
    for name in path.split("."):
        found = getattr(found, name)
    return found


def with_values(profile: Profile, values: Mapping[str, object]) -> Profile:
    """The profile with other values at some paths ("server.port")."""
    for path, value in values.items():
        section, name = path.split(".")
        profile = replace(profile, **{section: replace(getattr(profile, section), **{name: value})})
    return profile


def profile_wishes(request: EngineRequest) -> tuple[Wish, ...]:
    """What the profile asks of the engine, in the newest release's spelling."""
    return (*_models(request), *_parts(request))


def speculates(profile: Profile) -> bool:
    return profile.draft is not None and profile.speculative.algorithm is not Algorithm.NONE


def _models(request: EngineRequest) -> Iterator[Wish]:
    profile = request.profile
    origin = _origin(request, "target")
    yield wish("--model-path", request.target_model, origin=origin)
    if request.target_model == profile.target.repo and profile.target.revision:
        yield wish(
            "--revision", profile.target.revision, origin=_origin(request, "target.revision"), why=_PINNED
        )
    elif profile.server.served_model_name is None:
        name = profile.target.repo or profile.name
        yield wish(
            "--served-model-name", name, origin="rule", why="clients use this name wherever the files lie"
        )
    if not speculates(profile) or profile.draft is None or request.draft_model is None:
        return
    algorithm = profile.speculative.algorithm.value
    yield wish("--speculative-algorithm", algorithm, origin=_origin(request, "speculative.algorithm"))
    yield wish("--speculative-draft-model-path", request.draft_model, origin=_origin(request, "draft"))
    if request.draft_model == profile.draft.repo and profile.draft.revision:
        origin = _origin(request, "draft.revision")
        yield wish("--speculative-draft-model-revision", profile.draft.revision, origin=origin, why=_PINNED)


_PINNED = "the commit that the profile pins"


def _parts(request: EngineRequest) -> Iterator[Wish]:
    drafting = speculates(request.profile)
    for part in PARTS:
        value = value_at(request.profile, part.path)
        if value is None or value == part.usual or (part.speculative and not drafting):
            continue
        values = () if part.switch else (_text(value),)
        yield wish(part.flag, *values, origin=_origin(request, part.path), why=part.why)


def _origin(request: EngineRequest, path: str) -> str:
    """The option that set a path, or a path above it; else the profile."""
    for known, origin in request.origins.items():
        if known == path or path.startswith(f"{known}.") or known.startswith(f"{path}."):
            return origin
    return f"profile: {path}"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
