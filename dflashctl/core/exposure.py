"""Exposure: whether a planned server could be used by others on the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.plan import Plan

_LOOPBACK = ("127.", "::1", "localhost")
KEY_VARIABLE = "DFLASHCTL_API_KEY"
KEY_FILE_VARIABLE = "DFLASHCTL_API_KEY_FILE"


def exposure(plan: Plan, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """A warning when the plan listens beyond this host and no key is set; /health and /metrics are open in any case."""
    keyed = environ.get(KEY_VARIABLE) or environ.get(KEY_FILE_VARIABLE) or _has_key(plan)
    if plan.host.startswith(_LOOPBACK) or keyed:
        return ()
    finding = Finding(
        id="open_to_network",
        severity=Severity.WARNING,
        summary=f"listens on {plan.host} without a key: whoever reaches port {plan.port} can use the server",
        fix="export DFLASHCTL_API_KEY=…, or --host 127.0.0.1",
    )
    return (finding,)


def _has_key(plan: Plan) -> bool:
    """Whether the arguments hold a key for every request; --admin-api-key alone guards only the administration."""
    return any(word.partition("=")[0] == "--api-key" for word in plan.argv)
