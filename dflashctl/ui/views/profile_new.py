"""profile new: the file's text, ready to be redirected, or where it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.new_profile import NewProfile

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, NewProfile)
    if report.data.path is not None:
        return [Text.assemble(("written  ", "ok"), report.data.path)]
    return [report.data.text.rstrip("\n")]
