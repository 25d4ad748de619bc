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
# In the middle of a text: a user's folder below any /home (/nfs/home/bob), and root's where a path begins.
_HOME_IN_TEXT = re.compile(r"(?:/[\w.+-]+)*/home/[^/\s'\"`:,;()]+|(?<![\w.~/-])/root(?![\w.-])")
_NO_CLUSTER = re.compile(r"^[0-]*$")


def anonymous(machine: Machine, home: str | None = None) -> Machine:
    """`machine` as it may be handed to others; the same GPU keeps the same made-up UUID throughout.

    `home` is the home folder of who saves it, wherever it lies; those below /home are known anyway.
    """
    names = {gpu.uuid: f"GPU-00000000-0000-0000-0000-{gpu.index:012d}" for gpu in machine.gpus}
    for gpu in machine.gpus:
        for number, piece in enumerate(gpu.mig_slices):
            names[piece.uuid] = f"MIG-00000000-0000-0000-{number:04d}-{gpu.index:012d}"
    return replace(
        machine,
        hostname=None,
        gpus=tuple(_gpu(gpu, names) for gpu in machine.gpus),
        visible_devices=_text(machine.visible_devices, names, home),
        gpu_problem=_text(machine.gpu_problem, names, home),
        gpus_unreadable=tuple(_told(text, names, home) for text in machine.gpus_unreadable),
        host=_host(machine.host, names, home) if machine.host else None,
        software=_software(machine.software, names, home) if machine.software else None,
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


def _text(text: str | None, names: dict[str, str], home: str | None) -> str | None:
    return None if text is None else _told(text, names, home)


def _told(text: str, names: dict[str, str], home: str | None) -> str:
    """Free text with its UUIDs and home folders replaced."""
    shortened = _HOME_IN_TEXT.sub("~", _without(home, text))
    return _UUID.sub(lambda match: _named(match.group(), names), shortened)


def _without(home: str | None, text: str) -> str:
    if not home or home == "/":
        return text
    path = re.escape(home.rstrip("/"))
    return re.sub(rf"(?:(?<![\w.~/-])|(?<=-[IL])){path}(?![\w.-])", "~", text)


def _named(uuid: str, names: dict[str, str]) -> str:
    hits = [new for old, new in names.items() if old.startswith(uuid)]
    return hits[0] if len(hits) == 1 else f"{uuid[:3]}-removed"


def _host(host: Host, names: dict[str, str], home: str | None) -> Host:
    return replace(
        host,
        folders=tuple(
            replace(folder, path=_told(shorten_home(folder.path), names, home)) for folder in host.folders
        ),
        engine_variables=tuple((name, _told(value, names, home)) for name, value in host.engine_variables),
    )


def _software(software: Software, names: dict[str, str], home: str | None) -> Software:
    return replace(
        software,
        python=_told(shorten_home(software.python), names, home) if software.python else None,
        ptxas=_tools(software.ptxas, names, home),
        ptxas_blackwell=_tools(software.ptxas_blackwell, names, home),
        problem=_text(software.problem, names, home),
    )


def _tools(
    found: tuple[tuple[str, str], ...], names: dict[str, str], home: str | None
) -> tuple[tuple[str, str], ...]:
    return tuple((_told(shorten_home(where), names, home), version) for where, version in found)
