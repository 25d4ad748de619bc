"""How the load generator itself did, in one line: the same words wherever a run is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_result import ClientFigures

_KIB = 1024


class _Client(Protocol):
    """The figures of a run just made or of one read back; older files lack some."""

    @property
    def cpu_share(self) -> float: ...
    @property
    def loop_lag_ms_p99(self) -> float: ...
    @property
    def late_sends(self) -> int: ...
    @property
    def connect_ms_p50(self) -> float | None: ...
    @property
    def processes(self) -> int | None: ...
    @property
    def reconnects(self) -> int | None: ...
    @property
    def backlog_bytes_max(self) -> int | None: ...


def client_line(client: _Client) -> str:
    """CPU share, loop lag and late sends, and whatever else is known and not nothing."""
    several = client.processes is not None and client.processes > 1
    busiest = f"{client.processes} processes, the busiest " if several else ""
    told = [
        f"{busiest}{client.cpu_share:.0%} of a core",
        f"loop lag p99 {client.loop_lag_ms_p99:.1f} ms",
        f"{client.late_sends} late",
    ]
    if client.connect_ms_p50 is not None:
        told.append(f"connect {client.connect_ms_p50:.1f} ms")
    if client.reconnects:
        told.append(f"{client.reconnects} reconnects")
    if backlog_kib := (client.backlog_bytes_max or 0) // _KIB:
        told.append(f"backlog {backlog_kib} KiB")
    return ", ".join(told)


def worst_client(clients: Sequence[ClientFigures]) -> ClientFigures:
    """The worst of each figure over several runs, whichever run it comes from; IndexError for none."""
    return replace(
        clients[0],
        cpu_share=max(client.cpu_share for client in clients),
        loop_lag_ms_p99=max(client.loop_lag_ms_p99 for client in clients),
        late_sends=max(client.late_sends for client in clients),
        connect_ms_p50=max(
            (client.connect_ms_p50 for client in clients if client.connect_ms_p50 is not None), default=None
        ),
        processes=max(client.processes for client in clients),
        reconnects=max(client.reconnects for client in clients),
        backlog_bytes_max=max(client.backlog_bytes_max for client in clients),
    )
