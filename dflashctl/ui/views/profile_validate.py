"""profile validate: one line a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.profile_view import ProfileVerdicts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, ProfileVerdicts)
    return [Text.assemble(("ok   ", "ok"), f"{v.name}  ", (v.path, "detail")) for v in report.data.profiles]
