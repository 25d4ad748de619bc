"""``python -m dflashctl.reference``: parse the arguments, serve, and end with a meaningful exit code."""

from __future__ import annotations

import os
import sys

# Before NumPy is imported: the matrices are small, and threads cost more than they bring.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: list[str] | None = None) -> int:
    """Run the server. 0 after an orderly stop, 1 when it cannot start, 2 for bad arguments, 130 interrupted."""
    from dflashctl.reference.arguments import parse

    settings = parse(sys.argv[1:] if argv is None else argv)
    from dflashctl.reference.log import Log

    log = Log(settings.log_level)
    log.say(f"server_args={settings.shown()}")

    import asyncio

    from dflashctl.reference.errors import StartError
    from dflashctl.reference.serve import serve

    try:
        return asyncio.run(serve(settings, log))
    except StartError as error:
        log.fail(f"Initialization failed. {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
