"""docker: a Docker engine that answers and can hand out GPUs, for plans that run in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "docker"
NEEDS = ("host", "plan")
SOURCE = 'NVIDIA/nvidia-docker#1034: `could not select device driver "" with capabilities: [[gpu]]`'


def check(facts: Facts) -> Iterator[Finding]:
    if facts.plan is None or facts.plan.runtime != "docker" or facts.host is None:
        return
    docker = facts.host.docker
    if docker is None:
        yield found(
            ID,
            Severity.ERROR,
            "no Docker engine here: its socket (/var/run/docker.sock, or that of DOCKER_HOST) is not there",
            fix="install and start Docker, or use --runtime process",
        )
    elif docker.reachable is False:
        yield found(
            ID,
            Severity.ERROR,
            "the Docker engine does not answer this user",
            fix="sudo systemctl start docker; add this user to the docker group",
        )
    elif facts.needs_gpus and docker.gpu is False:
        yield found(
            ID,
            Severity.ERROR,
            "Docker cannot hand GPUs to a container: NVIDIA's container toolkit is not set up",
            detail=f"runtimes: {', '.join(docker.runtimes)}",
            fix="install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure && sudo systemctl restart docker",
        )
