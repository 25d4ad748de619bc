"""The three standard streams: always there, able to take any text, and given up quietly when they fail.

Imports only what the interpreter has loaded already, since every answer passes through here.
"""

import os
import sys

_OF_ANOTHER = "of_another_encoding"
_PLAIN = {"…": "...", "—": "-", "–": "-", "→": "->", "×": "x"}  # noqa: RUF001 - typographic signs are the point
_CLOSED_PIPE = 141  # what a shell shows for a process that SIGPIPE ended
_UNAVAILABLE = 69
INTERRUPTED = 130


def prepare() -> None:
    """Make every stream usable: one that was closed takes everything and keeps nothing, one of a poor encoding escapes."""
    import codecs

    for number in range(3):
        _open_at(number)
    codecs.register_error(_OF_ANOTHER, _spelled_plainly)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole life
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_OF_ANOTHER)


def answered(text: str, code: int) -> int:
    """Write an answer that is whole already; the exit code is `code` when it arrived."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        return lost(error, code)
    return code


def lost(error: OSError, code: int) -> int:
    """The exit code when standard output has failed: nothing more is written there, not even at the end."""
    import errno

    _discard(sys.stdout)
    if error.errno == errno.EPIPE:
        return _CLOSED_PIPE  # the reader went away (`| head`): end quietly, as other tools do
    if error.errno == errno.EIO:
        return code  # the terminal was closed: nobody is left to be told
    say(f"the output cannot be written: {error.strerror}")
    return code or _UNAVAILABLE


def say(text: str) -> None:
    """One sentence on standard error, if it can be said at all."""
    try:
        sys.stderr.write(f"error: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def let_go() -> None:
    """What standard error still holds and cannot take is given up, or the interpreter ends with 120 for it."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _open_at(number: int) -> None:
    """A closed descriptor would be given to the next file that is opened, and be written to as output."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - the lowest free number: this one


def _discard(stream: object) -> None:
    try:
        number = stream.fileno()  # type: ignore[attr-defined]
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)
    except (OSError, ValueError, AttributeError):
        return


def _spelled_plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """What the encoding lacks: a plain sign where there is one, else the escape that names it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or ascii(sign)[1:-1] for sign in bad), error.end
