"""Secret file: the API key from the environment or a private file, and on to the server without its argv."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from dflashctl.core.errors import Permanent
from dflashctl.core.exposure import KEY_FILE_VARIABLE, KEY_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_OTHERS = 0o077
_FIRST, _LAST = "!", "~"
_LIMIT_BYTES = 4096


def api_key(environ: Mapping[str, str]) -> str | None:
    """DFLASHCTL_API_KEY, else the content of the file that DFLASHCTL_API_KEY_FILE names; None when neither is set.

    Permanent when the file holds no key, as whoever names one means to have one, or when HTTP cannot carry the key.
    """
    key = environ.get(KEY_VARIABLE)
    path = environ.get(KEY_FILE_VARIABLE)
    if key:
        return _usable(key, KEY_VARIABLE)
    return _usable(_read(path), f"the API key file {path!r}") if path else None


def write_server_config(folder: Path, key: str) -> Path:
    """A file for the engine's --config (JSON is YAML); both keys, as an admin key alone leaves the rest open."""
    path = folder / "keys.yaml"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"api-key": key, "admin-api-key": key}, file)
    return path


def _usable(key: str, where: str) -> str:
    if not key:
        raise Permanent(f"{where} is empty", hint=f"write a key into it, or unset {KEY_FILE_VARIABLE}")
    if not all(_FIRST <= character <= _LAST for character in key):
        raise Permanent(
            f"{where} holds a key that HTTP cannot carry",
            hint="use letters, digits and signs of ASCII, on one line and without blanks",
        )
    return key


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Permanent(f"the API key file {path!r} cannot be read: {error.strerror}") from error
    try:
        content = _content(descriptor, path)
    except OSError as error:
        raise Permanent(f"the API key file {path!r} cannot be read: {error.strerror}") from error
    if len(content) > _LIMIT_BYTES:
        raise Permanent(f"the API key file {path!r} is larger than {_LIMIT_BYTES} bytes")
    # What is not UTF-8 becomes a character that no key may have.
    return content.decode("utf-8", "replace").strip()


def _content(descriptor: int, path: str) -> bytes:
    try:
        status = os.fstat(descriptor)
        if status.st_uid not in {0, os.geteuid()} or stat.S_IMODE(status.st_mode) & _OTHERS:
            raise Permanent(f"the API key file {path!r} can be read by others", hint=f"chmod 600 {path}")
        return os.read(descriptor, _LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
