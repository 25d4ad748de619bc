"""SystemdNotify: what systemd wants to hear from a service, as datagrams; silent where nobody listens."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_MICRO = 1_000_000


class SystemdNotify:
    """sd_notify(3) by hand. `watchdog_s` is the interval in which systemd wants a sign of life, None for none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        microseconds = environ.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(microseconds) / _MICRO if self._address and microseconds.isdigit() else None

    def status(self, text: str) -> None:
        self._send(f"STATUS={' '.join(text.split())}")

    def ready(self) -> None:
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """Ask for that much more time, counted from now, before the start or the stop is cut."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * _MICRO)}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # noqa: FBT003 - no keyword in socket
            sender.sendto(message.encode(), self._address)
