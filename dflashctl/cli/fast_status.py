"""`status [NAME] --json` without Typer: scripts and monitors ask it every few seconds."""

from __future__ import annotations

import sys


def fast_status(words: list[str]) -> int | None:
    """Print the envelope and return the exit code; None when the words need the full parser."""
    names = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    if options != ["--json"] or len(names) > 1:
        return None
    import json

    from dflashctl.commands.status import status
    from dflashctl.core.errors import DflashError
    from dflashctl.core.report import envelope, failure
    from dflashctl.env import Env

    try:
        report = status(Env(), names[0] if names else None)
    except DflashError as error:
        report = failure("status", error)
    sys.stdout.write(json.dumps(envelope(report), ensure_ascii=False) + "\n")
    return int(report.exit_code)
