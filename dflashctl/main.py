"""The boundary: run one command, render its report, map every ending to an exit code.

Only `sys` is imported here: `--version`, `--help` and completion answer before anything else is loaded.
"""

import sys


def main() -> None:
    """Entry point of the console script."""
    code = _guarded(sys.argv[1:])
    from dflashctl.streams import let_go

    let_go()
    sys.exit(code)


def _guarded(argv: list[str]) -> int:
    """The exit code, also when Ctrl-C comes before the boundary stands or the output cannot be written."""
    code = 0
    try:
        from dflashctl import streams

        streams.prepare()
        code = run(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        from dflashctl import streams

        streams.say("interrupted")
        return streams.INTERRUPTED
    except OSError as error:  # what commands meet is theirs: here it is our own output
        from dflashctl import streams

        return streams.lost(error, code)
    return code


def run(argv: list[str]) -> int:
    """Run the command line `argv` and return its exit code."""
    if argv == ["--version"]:
        from dflashctl import __version__

        return _answered(f"dflashctl {__version__}\n", 0)
    if (text := _help(argv)) is not None:
        return _answered(text, 0 if any(word in _HELP_WORDS for word in argv) else 2)
    if argv[0] == "__complete":
        from dflashctl.cli.complete import complete

        return complete(argv[1:])
    if argv[0] == "status" and "--json" in argv:
        from dflashctl.cli.fast_status import fast_status

        code = fast_status(argv[1:])
        if code is not None:
            return code
    from dflashctl.boundary import run_app

    return run_app(argv)


def _answered(text: str, code: int) -> int:
    from dflashctl.streams import answered

    return answered(text, code)


_HELP_WORDS = ("--help", "-h")


def _help(argv: list[str]) -> "str | None":
    """The stored help that was asked for, or that a group without a command gets; None when it is a real call."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    asked = any(word in _HELP_WORDS for word in words)
    if not asked and len(words) > 1:
        return None
    from dflashctl.cli.stored_help import HELP
    from dflashctl.cli.table import GROUPS

    if not asked:
        return HELP[words[0] if words else ""] if not words or words[0] in GROUPS else None
    for length in (2, 1, 0):
        text = HELP.get(" ".join(words[:length]))
        if text is not None and (length or words[0] in _HELP_WORDS):
            return text
    return None
