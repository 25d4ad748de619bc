"""Placement: which GPUs a plan takes, and what about them forbids or hampers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.grouping import best_group

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu, Machine
    from dflashctl.core.profile import Profile, Requirements

_GB = 10**9


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The chosen GPUs' UUIDs in index order, and findings about them."""

    gpus: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def place(profile: Profile, machine: Machine, wanted: tuple[str, ...] | None = None) -> Placement:
    """The GPUs for `profile` on `machine`: those in `wanted`, else the best group of fitting ones (core.grouping)."""
    need = max(profile.requirements.gpus, _world_size(profile) if profile.requirements.gpus else 0)
    if need == 0:
        return Placement(gpus=())
    if wanted is not None:
        return _place_wanted(profile, machine, wanted, need)
    fitting = [g for g in machine.visible_gpus if not _unfit(g, profile.requirements)]
    if len(fitting) < need:
        return Placement(gpus=(), findings=(_too_few(profile, machine, len(fitting), need),))
    return Placement(gpus=tuple(g.uuid for g in best_group(fitting, machine, need)))


def _world_size(profile: Profile) -> int:
    return profile.parallel.tensor * profile.parallel.pipeline


def _place_wanted(profile: Profile, machine: Machine, wanted: tuple[str, ...], need: int) -> Placement:
    chosen = [(key, machine.gpu(key)) for key in wanted]
    findings = [_no_such_gpu(key, machine) for key, gpu in chosen if gpu is None]
    gpus = [gpu for _, gpu in chosen if gpu is not None]
    if len({g.uuid for g in gpus}) != len(gpus):
        findings.append(
            _error("gpus_repeated", f"--gpus {','.join(wanted)} names a GPU twice", "name each GPU once")
        )
    if not findings and len(gpus) != need:
        findings.append(
            _error(
                "gpu_count",
                f"--gpus names {len(gpus)} GPUs, but profile {profile.name!r} needs {need}",
                f"name {need} GPUs, or change the plan: --set parallel.tensor={len(gpus)}",
            )
        )
    findings += [
        _error("gpu_kind", f"GPU {g.index} ({g.name}): {why}", "choose other GPUs with --gpus")
        for g in gpus
        for why in _unfit(g, profile.requirements)
    ]
    return Placement(gpus=tuple(g.uuid for g in gpus), findings=tuple(findings))


def _no_such_gpu(key: str, machine: Machine) -> Finding:
    have = ", ".join(f"{g.index} ({g.uuid})" for g in machine.gpus) or "none"
    return _error("gpu_missing", f"there is no GPU {key!r}; this machine has: {have}", "dflashctl doctor")


def _too_few(profile: Profile, machine: Machine, fitting: int, need: int) -> Finding:
    kinds = " or ".join(profile.requirements.gpu_kinds) or "any kind"
    if not machine.gpus:
        why = machine.gpu_problem or "this machine has no GPU"
        summary = f"profile {profile.name!r} needs {need} GPU{'s' if need > 1 else ''} ({kinds}): {why}"
    elif not machine.visible_gpus:
        why = machine.gpu_problem or "CUDA_VISIBLE_DEVICES hides all of this machine's GPUs"
        summary = f"profile {profile.name!r} needs {need} GPU{'s' if need > 1 else ''} ({kinds}): {why}"
    else:
        reasons = sorted(
            {f"{g.name}: {why}" for g in machine.visible_gpus for why in _unfit(g, profile.requirements)}
        )
        found = f"{len(machine.visible_gpus)}x {machine.visible_gpus[0].name}"
        summary = f"profile {profile.name!r} needs {need} GPU{'s' if need > 1 else ''} ({kinds}), {fitting} of this machine's fit (it has {found})"
        if reasons:
            summary += f": {'; '.join(reasons)}"
    return _error("gpu_count", summary, "dflashctl profile list")


def _unfit(gpu: Gpu, needs: Requirements) -> tuple[str, ...]:
    why = []
    if needs.gpu_kinds and not any(kind.lower() in gpu.name.lower() for kind in needs.gpu_kinds):
        why.append(f"not a {' or '.join(needs.gpu_kinds)}")
    if needs.gpu_memory_bytes and gpu.memory_total_bytes < needs.gpu_memory_bytes:
        have, want = gpu.memory_total_bytes / _GB, needs.gpu_memory_bytes / _GB
        why.append(f"{have:.0f} GB of memory, {want:.0f} GB needed")
    if needs.compute_capability and gpu.compute_capability is not None:
        capability = f"{gpu.compute_capability[0]}.{gpu.compute_capability[1]}"
        if capability not in needs.compute_capability:
            why.append(f"compute capability {capability}, {' or '.join(needs.compute_capability)} needed")
    if gpu.mig_enabled:
        why.append("MIG is on")
    return tuple(why)


def _error(id_: str, summary: str, fix: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary, fix=fix)
