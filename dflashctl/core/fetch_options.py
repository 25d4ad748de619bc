"""FetchOptions: what the command line asks of `fetch`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """`verify` reads every byte again, `repair` also replaces what is bad; `accept_code` agrees to changed code.

    `token_fd` is an open descriptor that holds a token, `send_token_to` the one foreign host that may have it.
    `overrides` are (path, YAML value, origin) as the profile store takes them. `files` shows each file on its own.
    """

    profile: str
    plan: bool = False
    verify: bool = False
    repair: bool = False
    offline: bool = False
    accept_code: bool = False
    files: bool = False
    token_fd: int | None = None
    send_token_to: str | None = None
    overrides: tuple[tuple[str, str, str], ...] = ()
