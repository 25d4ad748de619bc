"""The health of several load processes as one."""

from __future__ import annotations

from array import array

import pytest

from dflashctl.bench.merge import merged_health


def health(*, cpu_s: float, wall_s: float, sends: int) -> dict:
    empty = array("f").tobytes().hex()
    own = {
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "lags_s": empty,
        "connect_s": empty,
        "sends": sends,
        "late_sends": 0,
        "late_max_s": 0.0,
        "reconnects": 0,
        "memory_bytes": 1,
    }
    return {"health": own, "chunks": sends, "backlog_max": 0, "parsed_busy": 0}


IDLE = {"cpu_s": 0.00018, "wall_s": 0.0002, "sends": 0}
CALM = {"cpu_s": 0.5, "wall_s": 10.0, "sends": 4}
BUSY = {"cpu_s": 9.5, "wall_s": 10.0, "sends": 4}


@pytest.mark.parametrize(
    ("processes", "share"),
    [
        ((CALM,), 0.05),
        ((CALM, IDLE, IDLE), 0.05),
        ((CALM, BUSY, IDLE), 0.95),
        ((IDLE,), 0.0),
        ((), 0.0),
        (({**CALM, "wall_s": 0.0},), 0.0),
    ],
)
def test_the_cpu_share_is_that_of_the_busiest_process_that_sent_anything(processes, share):
    found = merged_health([health(**process) for process in processes])
    assert found.cpu_share == pytest.approx(share)
    assert found.processes == len(processes)
