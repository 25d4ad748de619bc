"""CUDA_VISIBLE_DEVICES: which GPUs an engine started here would see, by CUDA's own rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu


@dataclass(frozen=True, kw_only=True)
class Visibility:
    """`indices` in CUDA's order; `mig` are MIG instances; `ignored` is the text from the first bad entry on.

    `repeated` is the entry that stands twice, which makes CUDA show nothing.
    """

    indices: tuple[int, ...]
    mig: tuple[str, ...] = ()
    ignored: str | None = None
    repeated: str | None = None
    by_index: bool = False


def visibility(value: str | None, gpus: tuple[Gpu, ...]) -> Visibility:
    """What `value` leaves visible of `gpus`; None (unset) leaves all.

    The rules are those of the CUDA programming guide: entries are indices, UUIDs or unique beginnings of UUIDs, or
    MIG UUIDs; the first entry that names nothing hides itself and all after it; an empty value hides everything.
    """
    if value is None:
        return Visibility(indices=tuple(gpu.index for gpu in gpus))
    entries = [entry.strip() for entry in value.split(",")]
    indices: list[int] = []
    mig: list[str] = []
    for place, entry in enumerate(entries):
        found = _find(entry, gpus)
        if found is None:
            ignored = ",".join(entries[place:]) if value.strip() else None
            return _result(indices, mig, entries[:place], ignored)
        if found in indices or found in mig:
            return Visibility(indices=(), repeated=entry)
        (mig if isinstance(found, str) else indices).append(found)  # type: ignore[arg-type]
    return _result(indices, mig, entries, None)


def _result(indices: list[int], mig: list[str], used: list[str], ignored: str | None) -> Visibility:
    return Visibility(
        indices=tuple(indices),
        mig=tuple(mig),
        ignored=ignored,
        by_index=any(entry.isdigit() for entry in used),
    )


def _find(entry: str, gpus: tuple[Gpu, ...]) -> int | str | None:
    """The index of a GPU, the UUID of a MIG instance, or None."""
    if entry.isdigit():
        return next((gpu.index for gpu in gpus if gpu.index == int(entry)), None)
    if entry.startswith("MIG-"):
        hits = [piece.uuid for gpu in gpus for piece in gpu.mig_slices if piece.uuid.startswith(entry)]
        return hits[0] if len(hits) == 1 else _old_mig(entry, gpus)
    if entry.startswith("GPU-"):
        found = [gpu.index for gpu in gpus if gpu.uuid.startswith(entry)]
        return found[0] if len(found) == 1 else None
    return None


def _old_mig(entry: str, gpus: tuple[Gpu, ...]) -> str | None:
    """MIG-GPU-<uuid>/<instance>/<compute instance>, the form of drivers before R470."""
    parent = entry.removeprefix("MIG-").split("/", maxsplit=1)[0]
    return entry if any(gpu.uuid == parent for gpu in gpus) else None
