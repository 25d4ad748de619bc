"""Shim: becomes the server, in a session of its own that dies with the supervisor.

A program of its own (`python -I -S shim.py PARENT GO STATUS PROGRAM ARGUMENT…`). PARENT is the supervisor's pid, GO a
descriptor on which one byte allows the start. On STATUS one byte says that the session exists; then it closes when
the program runs, or tells why it does not.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_MARK = "DFLASHCTL_SERVER"  # guard.MARK


def mark() -> None:
    """What is ours is known by its environment, which its children inherit; setproctitle must not overwrite it."""
    with open("/proc/self/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    os.environ.update({_MARK: f"{os.getpid()}:{ticks}", "SPT_NOENV": "1"})


def main(argv: list[str]) -> None:
    parent, go, status = (int(word) for word in argv[1:4])
    os.setsid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.write(status, b"s")
    if os.getppid() != parent or os.read(go, 1) != b"g":
        os._exit(1)
    os.close(go)
    os.set_inheritable(status, False)  # noqa: FBT003 - no keyword in os
    os.umask(0o077)
    mark()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for number in (
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGINT,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(argv[4], argv[4:], os.environ)
    except OSError as error:
        os.write(status, f"{error.errno}\n{error.strerror}".encode())
        os._exit(127)


main(sys.argv)
