"""ports: whether the plan's ports are free, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts, PortUse
    from dflashctl.core.findings import Finding

ID = "ports"
NEEDS = ("plan",)
SOURCE = "an SGLang whose port is taken loads for a minute before it says so (seen with 0.5.17)"


def check(facts: Facts) -> Iterator[Finding]:
    for use in facts.ports:
        if use.free or _is_its_own(facts, use):
            continue
        if use.problem is not None:
            yield found(ID, Severity.ERROR, f"{use.problem} ({use.purpose})", fix=use.fix)
            continue
        owner = ""
        if use.owner_pid is not None:
            owner = f" by pid {use.owner_pid}" + (f" ({use.owner_name})" if use.owner_name else "")
        advice = "--port N" if use.purpose == "HTTP" else "another port in the arguments after --"
        yield found(
            ID,
            Severity.ERROR,
            f"port {use.port} ({use.purpose}) is taken{owner}",
            fix=f"stop its owner, or choose another: {advice}",
        )


def _is_its_own(facts: Facts, use: PortUse) -> bool:
    """Whether the plan's own server holds it; the owner of a container's port may not show here."""
    server = facts.running
    if server is None:
        return False
    unseen = use.owner_pid is None or not server.pids
    return use.owner_pid in server.pids or (unseen and use.port == server.port)
