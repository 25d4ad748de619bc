"""Run one command inside the boundary: every ending becomes a Report, and one place renders and exits."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError, ExitCode, Interrupted, UsageError
from dflashctl.core.report import ErrorInfo, Outcome, Report, failure
from dflashctl.env import Env
from dflashctl.streams import lost
from dflashctl.ui.output import OutputLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dflashctl.ui.screen import Screen


def run_app(
    argv: Sequence[str], *, make_env: Callable[[Screen], Env] | None = None, screen: Screen | None = None
) -> int:
    """The exit code of the command line `argv`, after its report was shown on `screen`."""
    from dflashctl.ui.screen import Screen

    screen = screen or Screen.of(argv, out=sys.stdout, err=sys.stderr)
    report = Report(command="")
    try:
        with screen:
            report = _report(list(argv), make_env or _real_world, screen)
            if report.mute:
                os._exit(int(report.exit_code))
            screen.show(report)
    except OutputLost as end:
        return lost(end.error, int(report.exit_code))
    return int(report.exit_code)


def _real_world(screen: Screen) -> Env:
    return Env(notify=screen.notify, show_line=screen.server_line)


def _report(argv: list[str], make_env: Callable[[Screen], Env], screen: Screen) -> Report:
    from dflashctl.cli.table import command_name

    name = command_name(argv)
    env: Env | None = None
    try:
        from dflashctl.cli.app import invoke

        env = make_env(screen)
        report = _last(invoke(argv, env), screen)
        return _with_bugs(report, argv, env.environ) if report.bugs else report
    except UsageError as error:
        return _usage(name, error)
    except DflashError as error:
        return failure(name, error)
    except KeyboardInterrupt:
        return failure(name, Interrupted("interrupted", hint="dflashctl status"))
    except (OutputLost, SystemExit):
        raise
    except Exception as error:  # noqa: BLE001 - the sanctioned place: a bug becomes a crash report
        return _crash(name, argv, env.environ if env else os.environ, error)


def _last(result: object, screen: Screen) -> Report:
    """The report of a command; a live view yields several, each shown as it comes."""
    if isinstance(result, Report):
        return result
    if result == ExitCode.INTERRUPTED:  # Typer makes this of a Ctrl-C in a command, and says nothing
        raise KeyboardInterrupt
    if result is None or isinstance(result, int):
        return Report(command="help", exit_code=ExitCode(result or 0))
    last = Report(command="")
    for report in result:  # type: ignore[attr-defined]
        if last.command:
            screen.live(last)
        last = report
    return last


def _usage(name: str, error: DflashError) -> Report:
    info = ErrorInfo(message=error.message, hint=error.hint, exit_code=int(ExitCode.USAGE))
    return Report(
        command=name, outcome=Outcome.FAILED, exit_code=ExitCode.USAGE, errors=(info,) if info.message else ()
    )


def _with_bugs(report: Report, argv: list[str], environ: Mapping[str, str]) -> Report:
    """A command's own answer, with the bugs that it went on after."""
    return replace(
        report,
        outcome=Outcome.FAILED,
        exit_code=ExitCode.BUG,
        errors=(*report.errors, *(_bug(argv, environ, bug) for bug in report.bugs)),
    )


def _crash(name: str, argv: list[str], environ: Mapping[str, str], error: Exception) -> Report:
    info = _bug(argv, environ, error)
    return Report(command=name, outcome=Outcome.FAILED, exit_code=ExitCode.BUG, errors=(info,))


def _bug(argv: list[str], environ: Mapping[str, str], error: Exception) -> ErrorInfo:
    from dflashctl.edges.crash_report import write_crash_report

    path = write_crash_report(argv, environ, error)
    return ErrorInfo(
        message=f"a bug in dflashctl: {type(error).__name__}: {error}",
        hint=f"please report it with the file {path}",
        exit_code=int(ExitCode.BUG),
    )
