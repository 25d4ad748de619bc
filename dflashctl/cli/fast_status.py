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
    from dflashctl.core.report import envelope, failure, is_utf8
    from dflashctl.env import Env
    from dflashctl.streams import answered

    try:
        report = status(Env(), names[0] if names else None)
    except DflashError as error:
        report = failure("status", error)
    except Exception:  # noqa: BLE001 - the full way meets it again, inside the boundary
        return None
    text = json.dumps(envelope(report), ensure_ascii=not is_utf8(sys.stdout))
    return answered(text + "\n", int(report.exit_code))
