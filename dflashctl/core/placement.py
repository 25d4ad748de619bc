"""Placement: which GPUs a plan takes, and what about them forbids or hampers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.grouping import best_group

if TYPE_CHECKING:
    from dflashctl.core.gpu_use import GpuUse
    from dflashctl.core.machine import Gpu, Machine
    from dflashctl.core.profile import Profile, Requirements

_GB = 10**9
_CHOICES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The chosen GPUs' UUIDs in index order, and findings about them."""

    gpus: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def place(
    profile: Profile, machine: Machine, wanted: tuple[str, ...] | None = None, *, use: GpuUse | None = None
) -> Placement:
    """The GPUs for `profile` on `machine`: those in `wanted`, else the best group of fitting ones (core.grouping).

    `use` is what the engine's arguments take; None counts the profile's tensor, pipeline and data sizes.
    """
    need = gpus_needed(profile, use)
    if need == 0:
        return Placement(gpus=())
    hidden = _visibility_in_profile(profile)
    if hidden is not None:
        return Placement(gpus=(), findings=(hidden,))
    found = (
        _place_wanted(profile, machine, wanted, need) if wanted is not None else _best(profile, machine, need)
    )
    unsure = tuple(_memory_untold(gpu, profile.requirements) for gpu in _untold(found, machine, profile))
    if use is not None and found.gpus and not found.findings and use.highest >= len(found.gpus):
        return replace(found, findings=(_number_beyond(use, len(found.gpus)), *unsure))
    return replace(found, findings=(*found.findings, *unsure))


def gpus_needed(profile: Profile, use: GpuUse | None = None) -> int:
    """As many as the profile requires, and at least one a rank; none where the profile needs no GPU at all."""
    if profile.requirements.gpus == 0:
        return 0
    parallel = profile.parallel
    ranks = use.count if use is not None else parallel.tensor * parallel.pipeline * parallel.data
    return max(profile.requirements.gpus, ranks)


def _best(profile: Profile, machine: Machine, need: int) -> Placement:
    fitting = [g for g in machine.visible_gpus if not _unfit(g, profile.requirements)]
    if len(fitting) < need:
        return Placement(gpus=(), findings=(_too_few(profile, machine, len(fitting), need),))
    sure = [g for g in fitting if g.memory_total_bytes is not None]
    chosen = best_group(sure if len(sure) >= need else fitting, machine, need)
    return Placement(gpus=tuple(g.uuid for g in chosen))


def _untold(found: Placement, machine: Machine, profile: Profile) -> list[Gpu]:
    """Chosen GPUs of which nobody knows whether their memory is what the profile needs."""
    if not profile.requirements.gpu_memory_bytes:
        return []
    chosen = [gpu for key in found.gpus if (gpu := machine.gpu(key)) is not None]
    return [gpu for gpu in chosen if gpu.memory_total_bytes is None]


def _memory_untold(gpu: Gpu, needs: Requirements) -> Finding:
    return Finding(
        id="gpu_memory_unknown",
        severity=Severity.WARNING,
        summary=f"GPU {gpu.index} ({gpu.name}) does not tell its memory, {(needs.gpu_memory_bytes or 0) / _GB:.0f} GB needed",
        fix="look at: nvidia-smi -q -d MEMORY",
    )


def _visibility_in_profile(profile: Profile) -> Finding | None:
    """A second choice of GPUs beside the plan's would hide some of the plan's, or be overruled by it in silence."""
    names = [name for name in _CHOICES if name in profile.environment]
    if not names:
        return None
    return _error(
        "gpus_in_environment",
        f"{names[0]}={profile.environment[names[0]]!r} in the profile's environment would choose other GPUs than the plan",
        f"take {names[0]} out of the environment, and name the GPUs with --gpus",
    )


def _number_beyond(use: GpuUse, count: int) -> Finding:
    return _error(
        "gpu_number_beyond",
        f"the arguments use GPU number {use.highest} of those that the server sees, and it sees {count} (0 to {count - 1})",
        "leave --base-gpu-id and --gpu-id-step out, and name the GPUs with --gpus",
    )


def _place_wanted(profile: Profile, machine: Machine, wanted: tuple[str, ...], need: int) -> Placement:
    gpus, wrong = named_gpus(machine, wanted)
    findings = list(wrong)
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


def named_gpus(machine: Machine, wanted: tuple[str, ...]) -> tuple[tuple[Gpu, ...], tuple[Finding, ...]]:
    """The GPUs that `wanted` names by index or UUID, in that order, and what is wrong with the names."""
    chosen = [(key, machine.gpu(key)) for key in wanted]
    findings = [_no_such_gpu(key, machine) for key, gpu in chosen if gpu is None]
    gpus = tuple(gpu for _, gpu in chosen if gpu is not None)
    if len({g.uuid for g in gpus}) != len(gpus):
        findings.append(
            _error("gpus_repeated", f"--gpus {','.join(wanted)} names a GPU twice", "name each GPU once")
        )
    return gpus, tuple(findings)


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
    total, want = gpu.memory_total_bytes, needs.gpu_memory_bytes
    if want and total is not None and total < want:
        why.append(f"{total / _GB:.0f} GB of memory, {want / _GB:.0f} GB needed")
    if needs.compute_capability and gpu.compute_capability is not None:
        capability = f"{gpu.compute_capability[0]}.{gpu.compute_capability[1]}"
        if capability not in needs.compute_capability:
            why.append(f"compute capability {capability}, {' or '.join(needs.compute_capability)} needed")
    if gpu.mig_enabled:
        why.append("MIG is on")
    return tuple(why)


def _error(id_: str, summary: str, fix: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary, fix=fix)
