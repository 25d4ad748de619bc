"""GpuWatch: what the GPUs do while a benchmark runs, one reading a second, from a thread of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dflashctl.core.bench_setting import GpuReading

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from dflashctl.core.machine import Gpu
    from dflashctl.env import Env

_EVERY_S = 1.0


class GpuWatch:
    """A context manager; `readings` are complete after the block.

    There are none without a driver, nor with `on` False (the server is on another host).
    """

    def __init__(self, env: Env, *, on: bool = True, every_s: float = _EVERY_S) -> None:
        self._env = env
        self._on = on
        self._every_s = every_s
        self._stop = threading.Event()
        self._found: list[GpuReading] = []
        self._thread = threading.Thread(target=self._run, name="gpu-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=10.0)

    @property
    def readings(self) -> tuple[GpuReading, ...]:
        return tuple(self._found)

    def _run(self) -> None:
        begun_s = self._env.clock.monotonic()
        while self._on and not self._stop.is_set():
            gpus = self._env.machine.activity().gpus
            if not gpus:
                return
            at_s = round(self._env.clock.monotonic() - begun_s, 3)
            self._found += [_reading(gpu, at_s) for gpu in gpus]
            self._stop.wait(self._every_s)


def _reading(gpu: Gpu, at_s: float) -> GpuReading:
    return GpuReading(
        at_s=at_s,
        index=gpu.index,
        power_w=gpu.power_w,
        clock_sm_mhz=gpu.clock_sm_mhz,
        temperature_c=gpu.temperature_c,
        utilization_percent=gpu.utilization_percent,
        throttle_reasons=gpu.throttle_reasons or (),
    )
