"""Docker runtime: the edge to a Docker engine, loaded only where a server runs in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import Unavailable

if TYPE_CHECKING:
    from dflashctl.ports.server import Launcher


def docker_launcher(label: str) -> Launcher:
    """A launcher of containers; Unavailable when the client library or the engine is missing."""
    try:
        from dflashctl.edges.docker_server import DockerLauncher
    except ImportError as error:
        raise _missing(error) from error
    return DockerLauncher(label=label)


def remove_container(container: str) -> bool:
    """End and remove a container that an unclean end left; False when it is gone already."""
    try:
        from dflashctl.edges.docker_server import remove_container as remove
    except ImportError as error:
        raise _missing(error) from error
    return remove(container)


def _missing(error: ImportError) -> Unavailable:
    hint = "python3 -m pip install 'dflashctl[docker]'"
    return Unavailable(f"a server in a container needs the docker package: {error}", hint=hint)
