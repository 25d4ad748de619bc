"""Sockets: who listens on a TCP port of this host."""

from __future__ import annotations

import errno
import os
import socket
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from dflashctl.edges.processes import command_of

_LISTEN = "0A"
_HOSTS = "--host 127.0.0.1, or --host 0.0.0.0 for every address of this machine"


@dataclass(frozen=True, kw_only=True)
class Listener:
    """One listening socket; `pid` and `command` are None where they cannot be seen."""

    inode: int
    pid: int | None = None
    command: str | None = None

    def describe(self) -> str:
        if self.pid is None:
            return "a process that cannot be seen from here"
        return f"pid {self.pid} ({self.command or '?'})"


@dataclass(frozen=True, kw_only=True)
class BindProblem:
    """Why a server cannot listen: somebody else does (`taken`), or what `text` and `fix` say."""

    text: str
    fix: str
    taken: bool = False


def can_bind(host: str, port: int) -> bool:
    """Whether a server could listen there now (connections of an earlier one that fade away do not hinder)."""
    return bind_problem(host, port) is None


def bind_problem(host: str, port: int) -> BindProblem | None:
    """What keeps a server from listening there now, None when nothing does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OverflowError:
        return BindProblem(text=f"{port} is no port number", fix="--port N, from 1 to 65535")
    except (socket.gaierror, ValueError) as error:  # ValueError: text that no name can be, such as "a..b"
        why = error.strerror if isinstance(error, OSError) else str(error)
        return BindProblem(
            text=f"the host {host!r} is neither an address nor a known name: {why}", fix=_HOSTS
        )
    except OSError as error:
        return _problem(host, port, error)
    return None


def _problem(host: str, port: int, error: OSError) -> BindProblem:
    if error.errno == errno.EADDRINUSE:
        return BindProblem(text=f"port {port} is taken", fix="--port N", taken=True)
    if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return BindProblem(text=f"{host!r} is not an address of this machine", fix=_HOSTS)
    if error.errno in (errno.EACCES, errno.EPERM):
        return BindProblem(
            text=f"this user may not listen on port {port}",
            fix="--port N with a number from 1024 on, or give the right to use low ports",
        )
    return BindProblem(text=f"cannot listen on {host!r}, port {port}: {error.strerror}", fix="--host, --port")


def listening_inodes(port: int, host: str | None = None) -> tuple[int, ...]:
    """The inodes of the sockets that listen on that port of this network namespace.

    With `host` only those that would keep a server from listening there.
    """
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in (row.split() for row in rows):
            address, _, number = fields[1].partition(":")
            if fields[3] == _LISTEN and int(number, 16) == port and _overlaps(address, host):
                found.append(int(fields[9]))
    return tuple(found)


def _overlaps(hexadecimal: str, host: str | None) -> bool:
    """Whether a socket on that address (the kernel's spelling) and one on `host` exclude each other."""
    try:
        wanted = ip_address(host or "")
    except ValueError:
        return True
    words = [
        int(hexadecimal[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(hexadecimal), 8)
    ]
    bound = ip_address(b"".join(words))
    mapped = getattr(bound, "ipv4_mapped", None)
    bound = mapped or bound
    return bound.is_unspecified or wanted.is_unspecified or bound == wanted


def socket_inodes(pid: int) -> frozenset[int]:
    """The sockets that process holds; empty when it may not be looked into."""
    found = set()
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return frozenset()
    for name in names:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return frozenset(found)


def listeners(port: int, host: str | None = None) -> tuple[Listener, ...]:
    """Everyone who listens there, with the holding process where it can be seen."""
    inodes = listening_inodes(port, host)
    if not inodes:
        return ()
    owners: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            for inode in socket_inodes(int(name)).intersection(inodes):
                owners.setdefault(inode, int(name))
    return tuple(_listener(inode, owners.get(inode)) for inode in inodes)


def _listener(inode: int, pid: int | None) -> Listener:
    return Listener(inode=inode, pid=pid, command=command_of(pid) if pid is not None else None)
