"""Difference of two profiles, or of a plan and what a server says of itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.profile import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.engine import Argument
    from dflashctl.core.profile import Profile

_UNCOMPARED = ("name", "summary")
# Fields of /server_info that may be shown; keys, certificates and whatever else it has stay unseen.
SHOWN = frozenset(
    (
        "attention_backend", "context_length", "cuda_graph_backend_prefill", "cuda_graph_max_bs_prefill", "device",
        "disable_overlap_schedule", "dp_size", "dtype", "enable_linear_replayssm_spec", "enable_metrics", "ep_size",
        "grammar_backend", "kv_cache_dtype", "linear_attn_decode_backend", "linear_attn_prefill_backend",
        "linear_attn_verify_backend", "linear_replayssm_cache_len", "mamba_radix_cache_strategy", "mamba_ssm_dtype",
        "max_running_requests", "max_total_tokens", "mem_fraction_static", "model_path", "moe_runner_backend",
        "page_size", "port", "pp_size", "quantization", "reasoning_parser", "revision", "sampling_backend",
        "served_model_name", "speculative_algorithm", "speculative_dflash_block_size",
        "speculative_draft_attention_backend", "speculative_draft_model_path", "speculative_draft_model_revision",
        "speculative_draft_window_size", "speculative_num_draft_tokens", "tool_call_parser", "tp_size",
        "trust_remote_code",
    )
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field with its two values in words; None where a side has none."""

    field: str
    left: str | None
    right: str | None


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What differs between `left` and `right`; `compared` counts the fields that were looked at."""

    left: str
    right: str
    compared: int
    differences: tuple[Difference, ...]


def between(left: Profile, right: Profile) -> Differences:
    """The fields in which two profiles differ, in the order of the schema."""
    ours, theirs = dict(_flat(left, "")), dict(_flat(right, ""))
    fields = [field for field in dict.fromkeys((*ours, *theirs)) if field not in _UNCOMPARED]
    found = [
        Difference(field=f, left=ours.get(f), right=theirs.get(f))
        for f in fields
        if ours.get(f) != theirs.get(f)
    ]
    return Differences(left=left.name, right=right.name, compared=len(fields), differences=tuple(found))


def with_running(name: str, arguments: tuple[Argument, ...], info: Mapping[str, object]) -> Differences:
    """The planned arguments against the server's own account, for the fields that may be shown and that it has."""
    found = []
    compared = 0
    for argument in arguments:
        field = argument.flag.lstrip("-").replace("-", "_")
        if field not in SHOWN or field not in info:
            continue
        compared += 1
        planned, running = " ".join(argument.values) if argument.values else "true", _words(info[field])
        if not _same(planned, running):
            found.append(Difference(field=field, left=planned, right=running))
    return Differences(left=f"{name} (planned)", right="running", compared=compared, differences=tuple(found))


def _same(planned: str, running: str | None) -> bool:
    if planned == running or running is None:
        return planned == running
    try:
        return float(planned) == float(running)
    except ValueError:
        return False


def _flat(value: object, path: str) -> Iterator[tuple[str, str | None]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _flat(getattr(value, field.name), f"{path}.{field.name}" if path else field.name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{path}.{key}", _words(item)
    elif isinstance(value, tuple) and value and isinstance(value[0], Figure):
        for one in value:
            place = f"{one.dataset}, block {one.block_size}, concurrency {one.concurrency}"
            yield f"{path}.{one.metric} ({place})", str(one.value)
    else:
        yield path, _words(value)


def _words(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ", ".join(str(_words(item)) for item in value)
    return str(value.value) if isinstance(value, Enum) else str(value)
