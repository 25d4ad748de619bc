"""profile show: the file, as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.profile_view import ProfileText

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, ProfileText)
    return [report.data.text.rstrip("\n")]
