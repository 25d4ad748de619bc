"""What forbids comparing two runs, and what else differs between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dflashctl.core.bench_gpus import conduct_differences, limit_differences
from dflashctl.core.json_text import json_loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.bench_setting import Provenance, Setting
    from dflashctl.core.run_view import RunView


def unlike(one: Setting, other: Setting) -> tuple[str, ...]:
    """What forbids a comparison: other prompts, sampling, lengths, thinking, interface or cache state."""
    names = (
        "prompts_hash",
        "max_tokens",
        "temperature",
        "top_p",
        "thinking",
        "ignore_eos",
        "api",
        "cache_flushed",
    )
    pairs = ((name, getattr(one, name), getattr(other, name)) for name in names)
    return tuple(
        f"{name.replace('_', ' ')}: {mine!r} and {theirs!r}" for name, mine, theirs in pairs if mine != theirs
    )


def unlike_models(one: Provenance | None, other: Provenance | None) -> tuple[str, ...]:
    """Another target, or a target at another commit; a path and a repository of the same server are told apart."""
    if one is None or other is None:
        return ()
    if one.target.revision and other.target.revision and one.target.revision != other.target.revision:
        return (f"target commit: {one.target.revision} and {other.target.revision}",)
    if one.target.name and other.target.name and one.target.name != other.target.name:
        return (f"target: {one.target.name!r} and {other.target.name!r}",)
    return ()


def differences(one: Provenance | None, other: Provenance | None) -> tuple[str, ...]:
    """What may explain a change, and so is often the very thing that is compared."""
    if one is None or other is None:
        return ("the provenance of one side is missing",)
    told = (
        ("engine", f"{one.engine} {one.engine_version}", f"{other.engine} {other.engine_version}"),
        ("draft", one.draft.revision or one.draft.name, other.draft.revision or other.draft.name),
        ("block size", one.block_size, other.block_size),
        ("GPUs", [g.name for g in one.gpus], [g.name for g in other.gpus]),
        ("driver", one.driver, other.driver),
        ("chat template", one.template_hash, other.template_hash),
        ("dflashctl", one.dflashctl_version, other.dflashctl_version),
    )
    notes = [f"{name}: {mine} and {theirs}" for name, mine, theirs in told if mine != theirs]
    notes += limit_differences(one.gpus, other.gpus)
    notes += _flag_differences(_flat(one.flags), _flat(other.flags))
    return tuple(notes)


def conduct(one: RunView, other: RunView) -> tuple[str, ...]:
    """What went on during the runs: the GPUs' clocks, and whatever each side was warned of."""
    return (
        *conduct_differences(one.gpu_readings, other.gpu_readings),
        *(f"{side}: {warning}" for side, run in (("A", one), ("B", other)) for warning in run.warnings),
    )


def _flat(flags: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Flags by name; of one that is a JSON object each member by its path, so that only what differs is told."""
    return {path: text for name, value in flags for path, text in _members(name, value)}


def _members(path: str, value: str) -> Iterator[tuple[str, str]]:
    try:
        found = json_loads(value) if value.startswith("{") else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        yield path, value
        return
    for name, member in found.items():
        text = member if isinstance(member, str) else json.dumps(member, separators=(",", ":"))
        yield from _members(f"{path}.{name}", text)


def _flag_differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    names = sorted(one.keys() | other.keys())
    return [
        f"{name}: {one.get(name, 'absent')} and {other.get(name, 'absent')}"
        for name in names
        if one.get(name) != other.get(name)
    ]
