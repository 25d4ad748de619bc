"""ptrace: the right to take a file descriptor of another rank, which expandable segments need in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.host import Host

ID = "ptrace"
NEEDS = ("gpus", "host")
SOURCE = (
    "pytorch/pytorch#165685: `pidfd_getfd: Operation not permitted` with expandable_segments in a container; "
    "flashinfer-ai/flashinfer#4089: Docker's seccomp profile and yama refuse that call without SYS_PTRACE"
)
# The second is the newer name of the first.
_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def check(facts: Facts) -> Iterator[Finding]:
    """A container image that the plan starts has rights of its own; then what stands here says nothing about it."""
    host = facts.host
    if host is None or facts.ranks < 2 or (facts.plan and facts.plan.runtime == "docker"):  # noqa: PLR2004 - one rank has no siblings
        return
    names = [name for name in _VARIABLES if _expandable(facts.variables.get(name, ""))]
    if names and host.container not in {None, "none"} and _refused(host):
        yield found(
            ID,
            Severity.WARNING,
            f"{names[0]} turns expandable segments on, and this container has no SYS_PTRACE: ranks cannot open "
            "each other's GPU memory",
            detail=f"pidfd_getfd: ptrace_scope {host.ptrace_scope}, seccomp {'on' if host.seccomp else 'off'}",
            fix="start the container with --cap-add=SYS_PTRACE (in Kubernetes add it to the securityContext's "
            f"capabilities), or leave expandable_segments out of {' and '.join(names)}",
        )


def _refused(host: Host) -> bool:
    """Without the capability, either of the two gates is enough; where neither stands siblings may do it."""
    return host.sys_ptrace is False and (host.seccomp is True or bool(host.ptrace_scope))


def _expandable(settings: str) -> bool:
    """Whether such a list ("max_split_size_mb:128,expandable_segments:True") turns them on."""
    pairs = (setting.partition(":") for setting in settings.split(","))
    return any(
        (key.strip(), value.strip().lower()) == ("expandable_segments", "true") for key, _, value in pairs
    )
