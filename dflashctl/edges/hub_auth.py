"""Tokens and endpoints of the Hub: where a token comes from, and which host may have it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.ports.hub import TokenRules

DEFAULT_ENDPOINT = "https://huggingface.co"
_LIMIT_BYTES = 4096
_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|(\w+))", re.ASCII)
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


def is_on(value: str | None) -> bool:
    """A switch as the hub library reads it."""
    return value is not None and value.upper() in _TRUE


def endpoint(environ: Mapping[str, str]) -> str:
    return environ.get("HF_ENDPOINT", DEFAULT_ENDPOINT).rstrip("/")


def hub_home(environ: Mapping[str, str]) -> Path:
    """HF_HOME as the hub library resolves it."""
    home = environ.get("HOME") or str(Path.home())
    base = environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return expanded(environ.get("HF_HOME") or f"{base}/huggingface", environ)


def expanded(text: str, environ: Mapping[str, str]) -> Path:
    """`text` with `~` and variables filled in from `environ`, not from this process."""
    home = environ.get("HOME") or str(Path.home())
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    return Path(_VARIABLE.sub(lambda found: environ.get(found[1] or found[2], found[0]), text))


def find_token(environ: Mapping[str, str], rules: TokenRules) -> tuple[str, str] | None:
    """The token and its source: a descriptor, the environment, then the file that `hf auth login` writes."""
    descriptor = rules.descriptor
    if descriptor is None and environ.get("DFLASHCTL_HF_TOKEN_FD"):
        descriptor = _number(environ["DFLASHCTL_HF_TOKEN_FD"])
    if descriptor is not None:
        return _from_descriptor(descriptor), f"descriptor {descriptor}"
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        token = _clean(environ.get(name))
        if token:
            return token, name
    if is_on(environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN")):
        return None
    return _from_file(environ)


def may_send(environ: Mapping[str, str], rules: TokenRules) -> bool:
    """Only the Hub itself gets a token, or the one host that the user named."""
    parts = urlsplit(endpoint(environ))
    if (
        parts.scheme == "https"
        and parts.hostname == urlsplit(DEFAULT_ENDPOINT).hostname
        and parts.port in {None, 443}
    ):
        return True
    named = rules.send_to or environ.get("DFLASHCTL_SEND_TOKEN_TO")
    return named is not None and named.lower() in {parts.netloc.lower(), (parts.hostname or "").lower()} - {
        ""
    }


def _from_descriptor(descriptor: int) -> str:
    try:
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            token = _clean(stream.read(_LIMIT_BYTES).decode("ascii", "replace"))
    except OSError as error:
        raise UsageProblem(
            f"descriptor {descriptor} cannot be read: {error.strerror}",
            hint="open it, as in: --token-fd 3 3<token",
        ) from error
    if not token:
        raise UsageProblem(f"descriptor {descriptor} holds no token")
    return token


def _from_file(environ: Mapping[str, str]) -> tuple[str, str] | None:
    named = environ.get("HF_TOKEN_PATH")
    path = expanded(named, environ) if named else hub_home(environ) / "token"
    try:
        token = _clean(path.read_text(encoding="utf-8")[:_LIMIT_BYTES])
    except (OSError, UnicodeDecodeError):
        return None
    return (token, str(path)) if token else None


def _clean(value: str | None) -> str | None:
    return value.replace("\r", "").replace("\n", "").strip() or None if value is not None else None


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageProblem(f"DFLASHCTL_HF_TOKEN_FD {value!r} is not a number") from None
