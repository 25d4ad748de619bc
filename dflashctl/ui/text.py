"""Text for people: the view of the command, then findings, errors and the next steps."""

from __future__ import annotations

import importlib
import importlib.util
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from dflashctl.core.findings import Severity
from dflashctl.ui.control import tame
from dflashctl.ui.theme import MARKS, THEME

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from rich.console import ConsoleOptions, RenderableType

    from dflashctl.core.findings import Finding
    from dflashctl.core.report import ErrorInfo, Report


def console(stream: IO[str]) -> Console:
    """A console on `stream`; no colour and no wrapping by guess when it is not a terminal."""
    width = None if stream.isatty() else 160
    return _Console(
        file=stream, theme=THEME, highlight=False, soft_wrap=False, width=width, emoji=False, markup=False
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the process here; what a closed pipe means is the boundary's to say."""
        raise  # noqa: PLE0704 - called while the BrokenPipeError is handled

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As laid out, but tamed: all styles are added later, so what looks like one here came from outside."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(tame(segment.text), segment.style)


def show(report: Report, *, out: IO[str], err: IO[str], verbose: bool = False) -> None:
    """The whole report: the answer on `out`, the talk on `err`."""
    answer, talk = console(out), console(err)
    view = _view(report)
    if view is not None and report.data is not None:
        _print(answer, view.render(report))
    if not getattr(view, "SHOWS_FINDINGS", False):
        for finding in report.findings:
            if verbose or finding.severity is not Severity.OK:
                short = finding.severity is Severity.NOTE and not verbose
                talk.print(*finding_lines(finding, short=short), sep="\n", soft_wrap=True)
    for error in report.errors:
        talk.print(*error_lines(error), sep="\n", soft_wrap=True)
    _next_steps(report, talk)


def show_live(report: Report, *, out: IO[str]) -> None:
    """One frame of a live view; on a terminal it replaces the last one."""
    answer = console(out)
    view = _view(report)
    if out.isatty() and not continues(report):
        answer.file.write("\x1b[H\x1b[J")
    if view is not None:
        _print(answer, view.render(report))
    out.flush()


def continues(report: Report) -> bool:
    """Whether the reports of this live view follow each other, none replacing the one before."""
    return bool(getattr(_view(report), "APPENDS", False))


def _print(answer: Console, renderables: Iterable[RenderableType]) -> None:
    """Plain strings go out as they are, byte for byte; everything else is laid out."""
    for renderable in renderables:
        if isinstance(renderable, str):
            answer.file.write(renderable + "\n")
        else:
            # A sentence in a file or a pipe stays on its line, so that it can be found again.
            answer.print(renderable, soft_wrap=isinstance(renderable, Text) and not answer.is_terminal)


def finding_lines(finding: Finding, *, short: bool = False) -> list[RenderableType]:
    """Mark and summary, then the evidence and the fix, indented; a short one is its summary alone."""
    mark, style = MARKS[finding.severity]
    lines: list[RenderableType] = [Text.assemble((f"{mark} ", style), finding.summary)]
    if short:
        return lines
    if finding.detail:
        lines += [Text(f"    {line}", style="detail") for line in finding.detail.splitlines()]
    if finding.fix:
        lines.append(Text.assemble(("    fix: ", "hint"), finding.fix))
    return lines


def error_lines(error: ErrorInfo) -> list[RenderableType]:
    lines: list[RenderableType] = [Text.assemble(("error: ", "error"), error.message)]
    if error.detail:
        lines += [Text(f"  {line}", style="detail") for line in error.detail.splitlines()]
    if error.hint:
        lines.append(Text.assemble(("hint: ", "hint"), error.hint))
    return lines


def _next_steps(report: Report, talk: Console) -> None:
    hints = {error.hint for error in report.errors}
    steps = [step for step in report.next_steps if step not in hints]
    for step in steps:
        talk.print(Text.assemble(("next: ", "hint"), step), soft_wrap=True)


def _view(report: Report) -> ModuleType | None:
    name = f"dflashctl.ui.views.{report.command.replace(' ', '_').replace('-', '_')}"
    if not report.command or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)
