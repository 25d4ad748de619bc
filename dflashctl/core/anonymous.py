"""A machine without what identifies it: no host name, serial numbers, device UUIDs or private paths."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.host import Host, Software
    from dflashctl.core.machine import Fabric, Gpu, GpuProcess, Machine

_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+")
_HOME = re.compile(r"^/(?:home/[^/]+|root)(?=/|$)")
_NO_CLUSTER = re.compile(r"^[0-]*$")


def anonymous(machine: Machine) -> Machine:
    """`machine` as it may be handed to others; the same GPU keeps the same made-up UUID throughout."""
    names = {gpu.uuid: f"GPU-00000000-0000-0000-0000-{gpu.index:012d}" for gpu in machine.gpus}
    for gpu in machine.gpus:
        for number, piece in enumerate(gpu.mig_slices):
            names[piece.uuid] = f"MIG-00000000-0000-0000-{number:04d}-{gpu.index:012d}"
    return replace(
        machine,
        hostname=None,
        gpus=tuple(_gpu(gpu, names) for gpu in machine.gpus),
        visible_devices=_visible(machine.visible_devices, names),
        host=_host(machine.host, names) if machine.host else None,
        software=_software(machine.software) if machine.software else None,
    )


def shorten_home(path: str, home: str | None = None) -> str:
    """`path` with the home folder (any user's when `home` is None) written as ~."""
    if home and (path == home or path.startswith(f"{home}/")):
        return f"~{path[len(home) :]}"
    return _HOME.sub("~", path)


def _gpu(gpu: Gpu, names: dict[str, str]) -> Gpu:
    return replace(
        gpu,
        uuid=names[gpu.uuid],
        mig_slices=tuple(replace(piece, uuid=names[piece.uuid]) for piece in gpu.mig_slices),
        processes=tuple(_process(process) for process in gpu.processes),
        fabric=_fabric(gpu.fabric) if gpu.fabric else None,
    )


def _process(process: GpuProcess) -> GpuProcess:
    program = process.name.split()[0].rsplit("/", 1)[-1] if process.name and process.name.strip() else None
    return replace(process, name=program)


def _fabric(fabric: Fabric) -> Fabric:
    if fabric.cluster_uuid is None or _NO_CLUSTER.match(fabric.cluster_uuid):
        return fabric
    return replace(fabric, cluster_uuid="removed")


def _visible(value: str | None, names: dict[str, str]) -> str | None:
    return None if value is None else _UUID.sub(lambda match: _named(match.group(), names), value)


def _named(uuid: str, names: dict[str, str]) -> str:
    hits = [new for old, new in names.items() if old.startswith(uuid)]
    return hits[0] if len(hits) == 1 else f"{uuid[:3]}-removed"


def _host(host: Host, names: dict[str, str]) -> Host:
    return replace(
        host,
        folders=tuple(replace(folder, path=shorten_home(folder.path)) for folder in host.folders),
        engine_variables=tuple(
            (name, _UUID.sub(lambda match: _named(match.group(), names), shorten_home(value)))
            for name, value in host.engine_variables
        ),
    )


def _software(software: Software) -> Software:
    return replace(
        software,
        python=shorten_home(software.python) if software.python else None,
        ptxas=_tools(software.ptxas),
        ptxas_blackwell=_tools(software.ptxas_blackwell),
    )


def _tools(found: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((shorten_home(where), version) for where, version in found)
