"""What the GPUs of two runs have in common: limits, work of others, clocks, and what held them back."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.core.bench_setting import GpuInfo, GpuReading

_IDLE = frozenset({"idle", "gpu_idle"})
_CLOCK_SHARE = 0.05


def held_back(readings: Sequence[GpuReading]) -> tuple[str, ...]:
    """Why clocks were below their ceiling meanwhile, in NVML's words; that a GPU had nothing to do is left out."""
    return tuple(sorted({reason for reading in readings for reason in reading.throttle_reasons} - _IDLE))


def limit_differences(one: Sequence[GpuInfo], other: Sequence[GpuInfo]) -> tuple[str, ...]:
    """Power limits, clock ceilings and processes, where both sides know their GPUs."""
    if not one or not other:
        return ()
    told = (
        ("power limit", *(_each(gpus, lambda gpu: gpu.power_limit_w, "W") for gpus in (one, other))),
        (
            "maximum SM clock",
            *(_each(gpus, lambda gpu: gpu.clock_sm_max_mhz, "MHz") for gpus in (one, other)),
        ),
    )
    notes = [f"{name}: {mine} and {theirs}" for name, mine, theirs in told if mine != theirs]
    return (*notes, *_processes(one, other))


def conduct_differences(one: Sequence[GpuReading], other: Sequence[GpuReading]) -> tuple[str, ...]:
    """What held the clocks back, and the clock itself where its medians are more than 5 % apart."""
    if not one or not other:
        return ()
    reasons = [", ".join(held_back(readings)) or "none" for readings in (one, other)]
    notes = [f"clocks held back by: {reasons[0]} and {reasons[1]}"] if reasons[0] != reasons[1] else []
    mine, theirs = (_clock(readings) for readings in (one, other))
    if mine and theirs and abs(theirs / mine - 1) > _CLOCK_SHARE:
        notes.append(f"median SM clock meanwhile: {mine:.0f} and {theirs:.0f} MHz")
    return tuple(notes)


def _clock(readings: Sequence[GpuReading]) -> float | None:
    """Over the readings of GPUs that worked, as idle ones lower their clocks by themselves."""
    known = [r.clock_sm_mhz for r in readings if r.clock_sm_mhz is not None and r.utilization_percent != 0]
    return median(known) if known else None


def _each(gpus: Sequence[GpuInfo], pick: Callable[[GpuInfo], float | None], unit: str) -> str:
    """One value where all GPUs have the same, else one a GPU."""
    values = ["unknown" if (value := pick(gpu)) is None else f"{value:g} {unit}" for gpu in gpus]
    if len(set(values)) == 1:
        return values[0]
    return ", ".join(f"GPU {gpu.index} {value}" for gpu, value in zip(gpus, values, strict=True))


def _processes(one: Sequence[GpuInfo], other: Sequence[GpuInfo]) -> list[str]:
    """Strangers are told even where both sides have them, as they spoil both; pids alone are no difference."""
    if all(gpu.others is not None for gpu in (*one, *other)):
        mine, theirs = (_listed(gpus, lambda gpu: gpu.others or ()) for gpus in (one, other))
        named = mine or theirs
        return (
            [f"processes beside the server's own: {mine or 'none'} and {theirs or 'none'}"] if named else []
        )
    mine, theirs = (_listed(gpus, lambda gpu: _names(gpu.processes)) for gpus in (one, other))
    told = f"GPU processes, the server's own among them: {mine or 'none'} and {theirs or 'none'}"
    return [told] if mine != theirs else []


def _listed(gpus: Sequence[GpuInfo], pick: Callable[[GpuInfo], Sequence[str]]) -> str:
    return "; ".join(f"GPU {gpu.index}: {', '.join(found)}" for gpu in gpus if (found := pick(gpu)))


def _names(processes: Sequence[str]) -> list[str]:
    """Without their pids, which stand first."""
    return sorted(process.partition(" ")[2] for process in processes)
