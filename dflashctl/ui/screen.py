"""Screen: answers on standard output, talk on standard error, as text or as JSON."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING

from dflashctl.core.report import envelope, is_utf8
from dflashctl.ui.output import talk, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.progress import Progress
    from dflashctl.core.report import Report
    from dflashctl.ui.progress_line import ProgressLine


def wants_json(argv: Sequence[str]) -> bool:
    """Whether `--json` is asked for; what follows `--` belongs to the engine."""
    words = list(argv)
    return "--json" in (words[: words.index("--")] if "--" in words else words)


class Screen:
    """One command's output; a context manager, so that a progress line never outlives it."""

    def __init__(self, *, out: IO[str], err: IO[str], as_json: bool, verbose: bool = False) -> None:
        self._out = out
        self._err = talk(err)
        self._json = as_json
        self._verbose = verbose
        self._line: ProgressLine | None = None

    @classmethod
    def of(cls, argv: Sequence[str], *, out: IO[str], err: IO[str]) -> Screen:
        return cls(out=out, err=err, as_json=wants_json(argv), verbose="--verbose" in argv)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def notify(self, event: Progress) -> None:
        """Show progress on standard error: a live line on a terminal, plain lines elsewhere, JSON with --json."""
        if self._json:
            from dflashctl.core.report import to_json

            self._err.write(json.dumps({"progress": to_json(event)}) + "\n")
            self._err.flush()
            return
        if self._line is None:
            from dflashctl.ui.progress_line import ProgressLine

            self._line = ProgressLine(self._err)
        self._line.show(event)

    def server_line(self, line: str) -> None:
        """Show a line of the server's own log, on standard error."""
        if self._line is not None:
            self._line.interrupt()
        self._err.write(line.rstrip("\n") + "\n")
        self._err.flush()

    def live(self, report: Report) -> None:
        """Show a report that will be followed by another (a live view).

        JSON prints only the last, except of views whose reports continue each other: those are an object a line.
        """
        from dflashctl.ui.text import continues, show_live

        if self._json and not continues(report):
            return
        with writing():
            if self._json:
                self._object(report)
            else:
                show_live(report, out=self._out)

    def show(self, report: Report) -> None:
        """Show the final report."""
        if self._line is not None:
            self._line.close()
        with writing():
            if self._json:
                self._object(report)
            else:
                from dflashctl.ui.text import show

                show(report, out=self._out, err=self._err, verbose=self._verbose)
            self._out.flush()

    def _object(self, report: Report) -> None:
        text = json.dumps(envelope(report), ensure_ascii=not is_utf8(self._out))
        self._out.write(text + "\n")
        self._out.flush()
