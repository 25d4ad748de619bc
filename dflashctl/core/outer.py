"""Outer supervisor: whether something above us restarts us, so that only one layer does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def outer_supervisor(environ: Mapping[str, str], pid: int) -> str | None:
    """Its name, or None. INVOCATION_ID alone proves nothing: a terminal started by systemd hands it on."""
    if pid == 1:
        return "container"
    if environ.get("NOTIFY_SOCKET") or environ.get("SYSTEMD_EXEC_PID") == str(pid):
        return "systemd"
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if environ.get("SLURM_JOB_ID"):
        return "slurm"
    return None


def restart_budget(environ: Mapping[str, str], pid: int, planned: int) -> int:
    """DFLASHCTL_RESTARTS when set, 0 under another supervisor, else the plan's."""
    chosen = environ.get("DFLASHCTL_RESTARTS", "")
    if chosen.isdigit():
        return int(chosen)
    return 0 if outer_supervisor(environ, pid) else planned
