"""Services that GPUs and containers depend on: the Docker engine and NVIDIA's fabric manager."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.host import DockerFacts, FabricManager
from dflashctl.edges.text_file import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_S = 0.2
_VERSION_TIMEOUT_S = 2.0
_DEFAULT_SOCKET = "/var/run/docker.sock"
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
# The kernel cuts a process's name after 15 letters.
_FABRIC_MANAGER = "nv-fabricmanage"
_SUBNET_MANAGER = "nvlsm"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


def docker_facts(environ: Mapping[str, str]) -> DockerFacts | None:
    """What the local Docker engine says; None when there is no socket. Another host's is not asked."""
    host = environ.get("DOCKER_HOST") or f"unix://{_DEFAULT_SOCKET}"
    if not host.startswith("unix://"):
        return DockerFacts(reachable=None)
    path = host.removeprefix("unix://")
    if not os.path.exists(path):
        return None
    info = _get(path, "/info")
    if info is None:
        return DockerFacts(reachable=False)
    runtimes = tuple(sorted(info.get("Runtimes") or {}))
    return DockerFacts(
        reachable=True,
        version=info.get("ServerVersion"),
        runtimes=runtimes,
        gpu="nvidia" in runtimes or _gpu_hook(),
    )


def _gpu_hook() -> bool:
    """`--gpus` needs NVIDIA's hook on the PATH, or a device specification (CDI)."""
    if shutil.which("nvidia-container-runtime-hook"):
        return True
    return any(next(Path(folder).glob("nvidia*"), None) for folder in _CDI_FOLDERS)


def _get(path: str, target: str) -> dict[str, Any] | None:
    connection = _UnixConnection(path)
    try:
        connection.request("GET", target)
        reply = connection.getresponse()
        body = json.loads(reply.read()) if reply.status == http.client.OK else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return body if isinstance(body, dict) else None


def fabric_manager(*, in_container: bool) -> FabricManager | None:
    """The fabric manager of this host; a container shows neither the process nor its absence."""
    names = process_names()
    running = _FABRIC_MANAGER in names
    program = shutil.which("nv-fabricmanager")
    if in_container and not running:
        return None
    if not running and program is None:
        return FabricManager(running=False)
    return FabricManager(
        running=running,
        version=_fabric_manager_version(program) if program else None,
        nvlsm_running=_SUBNET_MANAGER in names,
    )


def process_names() -> frozenset[str]:
    """The kernel's short names of all visible processes."""
    names = (read_text(folder / "comm") for folder in Path("/proc").iterdir() if folder.name.isdigit())
    return frozenset(name for name in names if name)


def _fabric_manager_version(program: str) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+(?:\.\d+)?", done.stdout)
    return found.group() if found else None
