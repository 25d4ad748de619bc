"""The boundary: run one command, render its report, map every ending to an exit code.

Only `sys` is imported here: `--version`, `--help` and completion answer before anything else is loaded.
"""

import sys


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run the command line `argv` and return its exit code."""
    if argv == ["--version"]:
        from dflashctl import __version__

        sys.stdout.write(f"dflashctl {__version__}\n")
        return 0
    if argv in ([], ["--help"], ["-h"]):
        from dflashctl.cli.stored_help import TOP_LEVEL

        sys.stdout.write(TOP_LEVEL)
        return 0 if argv else 2
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
