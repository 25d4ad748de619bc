"""From a BenchRequest to the bytes that are sent: only what the measurement needs is added."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dflashctl.bench.spec import CHAT, GENERATE, PATHS, BenchRequest, LoadSpec
from dflashctl.core.accept import CountSource
from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping


def shaped_body(request: BenchRequest, spec: LoadSpec) -> dict[str, object]:
    """The body with the stream, usage and count options; UsageProblem for an interface that has no counts."""
    body = dict(request.body)
    if request.api == GENERATE:
        return {**body, "stream": True}
    if spec.counts is CountSource.GENERATE:
        raise UsageProblem(
            f"request {request.id!r} goes to chat, where this release gives no exact counts",
            hint="send it through /generate (--api generate)",
        )
    if spec.counts is CountSource.WHOLE:
        return {**body, "stream": False, "return_meta_info": True}
    body["stream"] = True
    options = body.get("stream_options")
    body["stream_options"] = {
        **(options if isinstance(options, dict) else {}),
        "include_usage": True,
        **({"continuous_usage_stats": True} if spec.chunk_usage else {}),
    }
    if spec.counts is CountSource.STREAM:
        body["return_spec_tokens_details"] = True
    return body


def body_bytes(request: BenchRequest, spec: LoadSpec) -> bytes:
    """The shaped body as JSON."""
    text = json.dumps(shaped_body(request, spec), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def head_bytes(url: str, api: str, headers: Mapping[str, str]) -> bytes:
    """The request head up to the value of Content-Length, which each request appends with the blank line."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    lines = [
        f"POST {_without_version(path, api)}{PATHS[api]} HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
    ]
    fields = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "dflashctl",
        **headers,
    }
    for name, value in fields.items():
        if any(c in name + value for c in "\r\n"):
            raise UsageProblem(f"header {name!r} holds a line end")
        lines.append(f"{name}: {value}")
    return ("\r\n".join([*lines, "Content-Length: "])).encode("latin-1")


def _without_version(path: str, api: str) -> str:
    """A base URL may end in /v1, as OpenAI clients take it; the paths bring their own."""
    return path.removesuffix("/v1") if api in {CHAT, GENERATE} else path


def endpoint(url: str) -> tuple[str, int, bool]:
    """(host, port, TLS) of an http or https URL; UsageProblem for anything else."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise UsageProblem(f"{url!r} has no valid port") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageProblem(f"{url!r} is not an http(s) URL", hint="such as http://127.0.0.1:30000")
    tls = parts.scheme == "https"
    return parts.hostname, port or (443 if tls else 80), tls
