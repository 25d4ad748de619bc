"""down: what was stopped, and that nothing of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.down_result import DownResult
from dflashctl.ui.progress_line import elapsed_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, DownResult)
    done = report.data
    if report.errors:
        return []
    if done.name is None:
        return [Text("nothing is up")]
    if done.already_stopped:
        return [Text.assemble(("stopped  ", "ok"), f"{done.name} was not up")]
    how = " by force" if done.forced else ""
    rest = [f"port {done.port} is free"] if done.port else []
    rest += ["its GPU memory is back"] if done.gpus else []
    rest += [f"{done.swept} leftover processes ended"] if done.swept else []
    return [
        Text.assemble(
            ("stopped  ", "ok"), ", ".join([f"{done.name}{how} in {elapsed_text(done.took_s)}", *rest])
        )
    ]
