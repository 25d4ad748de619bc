"""What the server says of itself before and after a run: /server_info and /metrics."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dflashctl.bench.run import key_header
from dflashctl.bench.shape import endpoint
from dflashctl.bench.tls import make_context
from dflashctl.core.errors import CheckFailed, Unavailable
from dflashctl.core.simulated import VARIABLE, simulated

if TYPE_CHECKING:
    from dflashctl.bench.spec import LoadSpec

_TIMEOUT_S = 10.0
_LIMIT_BYTES = 16 << 20
_OK = 200


def get_text(spec: LoadSpec, path: str) -> str | None:
    """The body of GET `path` beside spec.url; None for any status but 200. Raises Unavailable without an answer."""
    host, port, tls = endpoint(spec.url)
    base = urlsplit(spec.url).path.rstrip("/").removesuffix("/v1")
    connection = (
        http.client.HTTPSConnection(
            host,
            port,
            timeout=_TIMEOUT_S,
            context=make_context(str(spec.ca_file or ""), verify=spec.verify_tls),
        )
        if tls
        else http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    )
    try:
        connection.request("GET", base + path, headers={**key_header(spec), **spec.headers})
        answer = connection.getresponse()
        body = answer.read(_LIMIT_BYTES)
    except (OSError, http.client.HTTPException) as problem:
        raise Unavailable(f"no answer from {spec.url}{path}: {problem}") from problem
    finally:
        connection.close()
    return body.decode("utf-8", "replace") if answer.status == _OK else None


def server_info(spec: LoadSpec) -> dict[str, object]:
    """/server_info (before 0.5.9: /get_server_info) as an object; empty when the server has none."""
    for path in ("/server_info", "/get_server_info"):
        text = get_text(spec, path)
        if text is None:
            continue
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


def metrics_text(spec: LoadSpec) -> str | None:
    """/metrics in the Prometheus text format; None when the server exports none."""
    return get_text(spec, "/metrics")


def refuse_simulated(info: dict[str, object]) -> None:
    """Raise CheckFailed when the server admits that its accept lengths are made up."""
    value = simulated(info)
    if value is not None:
        raise CheckFailed(
            f"the server runs with {VARIABLE}={value}: its accept lengths are made up",
            hint="restart the server without it",
        )
