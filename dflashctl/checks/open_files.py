"""open_files: the limit on open files, which every streaming client uses up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.host import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "open_files"
NEEDS = ("host", "sglang_plan")
SOURCE = "sgl-project/sglang#744: SGLang asks for 65535 and only warns; `Too many open files` at 1000 clients"
_WANTED = 65535
_LOW = 4096


def check(facts: Facts) -> Iterator[Finding]:
    limit = facts.host.nofile if facts.host else None
    if limit is None or limit.hard == UNLIMITED or limit.hard >= _WANTED:
        return
    yield found(
        ID,
        Severity.WARNING if limit.hard < _LOW else Severity.NOTE,
        f"at most {limit.hard} files may be open; the engine asks for {_WANTED} and each streaming client takes one",
        fix="raise it: LimitNOFILE=1048576 in the unit, or --ulimit nofile=1048576:1048576 for a container",
    )
