"""DockerServer: the server in a container of a Docker engine, behind the same handle as a process of this host."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.types import DeviceRequest

from dflashctl.core.errors import Unavailable
from dflashctl.edges import guard, processes, sockets
from dflashctl.edges.activity import activity_of
from dflashctl.ports.server import StartRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dflashctl.core.instance import Identity
    from dflashctl.core.plan import Plan

_LABEL = "dflashctl.instance"
_SIGNALLED = 128
# What the image itself knows better than this host.
_IMAGES_OWN = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LD_LIBRARY_PATH",
        "LIBRARY_PATH",
        "CPATH",
        "C_INCLUDE_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONPATH",
        "PYTHONHOME",
        "CUDA_HOME",
        "CUDA_PATH",
        "CC",
        "CXX",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HUGGINGFACE_HUB_CACHE",
        "TRANSFORMERS_CACHE",
    ]
)


class DockerLauncher:
    """`label` tells this instance's containers from all others. Unavailable when no engine answers."""

    def __init__(self, *, label: str) -> None:
        self._label = label
        self._client = connect()

    def prepare(self, plan: Plan, env: Mapping[str, str], folder: Path) -> DockerServer:
        name = f"dflashctl-{plan.name}"
        self._remove_old(name)
        own = dict(plan.env)
        environment = {key: value for key, value in env.items() if key not in _IMAGES_OWN or key in own}
        gpus = [DeviceRequest(device_ids=list(plan.gpus), capabilities=[["gpu"]])] if plan.gpus else []
        try:
            container = self._client.containers.create(
                plan.image,
                entrypoint=[plan.argv[0]],
                command=list(plan.argv[1:]),
                name=name,
                labels={_LABEL: self._label},
                environment=environment,
                volumes=_volumes(plan, folder),
                device_requests=gpus,
                network_mode="host",
                ipc_mode="host",
                init=True,  # as PID 1 the engine could not kill itself, and a crash would look like success
                detach=True,
            )
        except NotFound as error:
            raise StartRefused(f"image {plan.image!r} is not here: docker pull {plan.image}") from error
        except APIError as error:
            raise StartRefused(f"docker refuses the container: {error.explanation or error}") from error
        return DockerServer(container, host=plan.host)

    def _remove_old(self, name: str) -> None:
        try:
            old = self._client.containers.get(name)
        except NotFound:
            return
        if old.labels.get(_LABEL) != self._label:
            raise StartRefused(
                f"a container named {name!r} exists and is not ours: docker rm {name}, or use --name"
            )
        old.remove(force=True)


class DockerServer:
    """One container; `log_descriptor` and `exit_descriptor` are pipes that threads of this process feed."""

    def __init__(self, container: Any, *, host: str) -> None:
        self._container = container
        self._host = host
        self._status: int | None = None
        self._oom: bool | None = None
        self.container: str = container.id
        self.identity: Identity | None = None
        self.log_descriptor, self._log_writer = os.pipe()
        self.exit_descriptor, self._exit_writer = os.pipe()

    def go(self) -> None:
        try:
            self._container.start()
        except APIError as error:
            os.close(self._log_writer)
            self._status = 1
            raise StartRefused(f"docker cannot start the container: {error.explanation or error}") from error
        self._container.reload()
        self.identity = processes.identify(self._container.attrs["State"]["Pid"] or -1)
        threading.Thread(target=self._copy_log, name="docker-log", daemon=True).start()
        threading.Thread(target=self._await_end, name="docker-wait", daemon=True).start()

    def poll(self) -> int | None:
        return self._status

    def sessions(self) -> tuple[Identity, ...]:
        """The container's first process: with it the kernel ends all the others."""
        return (self.identity,) if self.identity and self.identity.session == self.identity.pid else ()

    def terminate(self) -> None:
        with suppress(APIError):
            self._container.kill(signal="SIGTERM")

    def kill(self) -> None:
        with suppress(APIError):
            self._container.kill()

    def leftovers(self) -> tuple[int, ...]:
        return tuple(self._pids()) if self._status is None and self.identity is not None else ()

    def foreign_listener(self, port: int) -> str | None:
        found = set(sockets.listening_inodes(port, self._host))
        ours = self._socket_inodes()
        if not found or not ours or found <= ours:
            return None
        held = [listener for listener in sockets.listeners(port, self._host) if listener.inode not in ours]
        return held[0].describe() if held else None

    def listens(self, port: int) -> bool:
        """Only root may look into the container's processes; for others any listener counts."""
        found = set(sockets.listening_inodes(port, self._host))
        ours = self._socket_inodes()
        return bool(found & ours) if ours else bool(found)

    def activity(self) -> int:
        stats = (guard.read_stat(pid) for pid in self._pids())
        return activity_of(stat for stat in stats if stat is not None)

    def oom_kills(self) -> int | None:
        return None if self._oom is None else int(self._oom)

    def close(self) -> None:
        with suppress(APIError):
            self._container.remove(force=True)
        os.close(self.exit_descriptor)

    def _pids(self) -> list[int]:
        try:
            top = self._container.top(ps_args="-eo pid")
        except APIError:
            return []
        return [int(row[0]) for row in top["Processes"] or ()]

    def _socket_inodes(self) -> set[int]:
        return {inode for pid in self._pids() for inode in sockets.socket_inodes(pid)}

    def _copy_log(self) -> None:
        try:
            for chunk in self._container.logs(stream=True, follow=True):
                os.write(self._log_writer, chunk)
        except (OSError, DockerException):
            pass
        finally:
            os.close(self._log_writer)

    def _await_end(self) -> None:
        try:
            code = int(self._container.wait()["StatusCode"])
            self._container.reload()
            self._oom = bool(self._container.attrs["State"]["OOMKilled"])
        except (OSError, DockerException):
            code = 1
        self._status = _SIGNALLED - code if code > _SIGNALLED else code
        os.close(self._exit_writer)


def connect() -> Any:
    """A client of the Docker engine; Unavailable says how to get one."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise Unavailable(
            f"the Docker engine does not answer: {error}", hint="start it, or set DOCKER_HOST; docker version"
        ) from error
    return client


def remove_container(container: str) -> bool:
    """End and remove a container that an unclean end left; False when it is gone already."""
    try:
        connect().containers.get(container).remove(force=True)
    except NotFound:
        return False
    return True


def _volumes(plan: Plan, folder: Path) -> dict[str, dict[str, str]]:
    """The models, read-only and at their own paths, and the folder for sockets and secrets."""
    volumes = {str(folder): {"bind": str(folder), "mode": "rw"}}
    for model in (plan.target, plan.draft):
        if model is not None and os.path.isabs(model.model) and os.path.isdir(model.model):
            # A snapshot of the hub's cache is links to files beside it.
            root = model.model.partition("/snapshots/")[0]
            volumes[root] = {"bind": root, "mode": "ro"}
    return volumes
