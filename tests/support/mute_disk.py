"""A file system that never answers: a FUSE mount of which nobody reads the requests, as with a network disk that is away."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEVICE = "/dev/fuse"
_DETACH = 2


@contextlib.contextmanager
def mute_disk(place: Path) -> Iterator[Path]:
    """Mounted on the new folder `place`; skips where this user may not mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir()
    try:
        descriptor = os.open(_DEVICE, os.O_RDWR)
    except OSError as error:
        pytest.skip(f"no FUSE here: {error}")
    try:
        options = b"fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (descriptor, os.getuid(), os.getgid())
        if libc.mount(b"mute", bytes(place), b"fuse", 0, options):
            pytest.skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")
        yield place
    finally:
        os.close(descriptor)  # whoever waits gets an error now
        libc.umount2(bytes(place), _DETACH)
