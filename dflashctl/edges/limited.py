"""Limited: one child process with a limit in time; past it its whole session is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from dflashctl.core.verdict import signal_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A process that waits inside the kernel for a device or a network disk does not even take SIGKILL: it is left behind.
_REAP_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """`output` and `errors` are what it wrote; `trouble` is why it did not end well, None when it did.

    `started` is False when it could not be run at all, `hung` True when it met the limit.
    """

    output: str = ""
    errors: str = ""
    trouble: str | None = None
    started: bool = True
    hung: bool = False


def run_limited(argv: Sequence[str], environ: Mapping[str, str], limit_s: float) -> Ended:
    """Run `argv` for at most `limit_s` seconds; never raises for what the child does."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return Ended(trouble=f"{argv[0]!r} cannot be run: {reason}", started=False)
        code = _wait(process, limit_s)
        written, complaints = _text(output), _text(errors)
    trouble = f"no end within {limit_s:g} s" if code is None else _trouble(code, complaints)
    return Ended(output=written, errors=complaints, trouble=trouble, hung=code is None)


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """The exit code, None past the limit."""
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_REAP_S)


def _trouble(code: int, complaints: str) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return f"killed by {signal_name(-code)}"
    last = next((line.strip() for line in reversed(complaints.splitlines()) if line.strip()), "")
    return f"exit {code}: {last}" if last else f"exit {code}"


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
