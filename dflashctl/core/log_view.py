"""Log view: lines of a server's log, with when and in which phase they came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.log_line import LogLine


@dataclass(frozen=True, kw_only=True)
class LogView:
    """`more` says that these lines follow those of the report before; show them below, do not replace it."""

    name: str
    lines: tuple[LogLine, ...]
    path: str | None = None
    more: bool = False
