"""Sockets: who listens on a TCP port of this host."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from dflashctl.edges.processes import command_of

_LISTEN = "0A"


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


def can_bind(host: str, port: int) -> bool:
    """Whether a server could listen there now (connections of an earlier one that fade away do not hinder)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except (OSError, OverflowError):  # OverflowError: a number that is no port
            return False
    return True


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
