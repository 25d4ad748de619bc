"""proxy: a proxy in the environment that would swallow the engine's calls to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "proxy"
NEEDS = ("host", "sglang_plan")
SOURCE = "sgl-project/sglang#9814: the warm-up call to 127.0.0.1 goes to the proxy, gets a 502, the server kills itself"


def check(facts: Facts) -> Iterator[Finding]:
    host = facts.host
    if host is not None and host.proxy_set and host.proxy_spares_loopback is False:
        yield found(
            ID,
            Severity.WARNING,
            "a proxy is set and no_proxy does not name 127.0.0.1: the engine's warm-up call to itself would go there",
            fix="export no_proxy=127.0.0.1,localhost,$no_proxy",
        )
