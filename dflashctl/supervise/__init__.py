"""Supervise: own one server from its start to its end, in front or detached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dflashctl.supervise.detached import result_of
    from dflashctl.supervise.detached_start import DetachedStart
    from dflashctl.supervise.foreground import run
    from dflashctl.supervise.signals import StoppedEarly, stop_raises, stops_interrupt, undisturbed

__all__ = [
    "DetachedStart",
    "StoppedEarly",
    "result_of",
    "run",
    "stop_raises",
    "stops_interrupt",
    "undisturbed",
]

_PLACES = {
    "DetachedStart": "detached_start",
    "result_of": "detached",
    "run": "foreground",
    "StoppedEarly": "signals",
    "stop_raises": "signals",
    "stops_interrupt": "signals",
    "undisturbed": "signals",
}


def __getattr__(name: str) -> Any:
    """The entry points, loaded when they are used: `down` and `status` need none of them."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
