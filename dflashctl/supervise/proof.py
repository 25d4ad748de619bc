"""Proof: whether what answers on the port is the planned server and really generates, and how it is doing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dflashctl.core.instance import Reason
from dflashctl.core.metrics_text import LiveFigures, live_figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.plan import Plan
    from dflashctl.ports.web import Reply, Web

_OK = 200
_PROOF_TOKENS = 32


@dataclass(frozen=True, kw_only=True)
class Proven:
    """One completion was generated; `accept_length` is None without speculation."""

    latency_ms: float
    accept_length: float | None = None


@dataclass(frozen=True, kw_only=True)
class NotYet:
    """It does not serve yet; `text` says what it does instead."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Denied:
    """It serves, but not what was planned."""

    reason: Reason


Proof = Proven | NotYet | Denied


class ServerProbe:
    """Questions to one server, each bounded in time; `key` is its API key."""

    def __init__(self, web: Web, plan: Plan, *, url: str, key: str | None) -> None:
        self._web = web
        self._plan = plan
        self._url = url
        self._headers: Mapping[str, str] = {"Authorization": f"Bearer {key}"} if key else {}

    def prove(self, *, probe_timeout_s: float, generate_timeout_s: float) -> Proof:
        """From the cheapest question to the completion that counts."""
        ends = self._plan.endpoints
        health = self._get(ends.ready or ends.health, probe_timeout_s)
        if health.status != _OK:
            return NotYet(text=health.problem or f"{ends.ready or ends.health} says {health.status}")
        models = self._get(ends.models, probe_timeout_s)
        if models.status != _OK:
            return NotYet(text=models.problem or f"{ends.models} says {models.status}")
        wrong = _wrong_model(models.body, self._plan.served_model_name)
        if wrong is not None:
            return Denied(reason=wrong)
        return self._completion(generate_timeout_s)

    def canary(self, timeout_s: float) -> bool:
        """Whether one token can be generated."""
        return self._generate("1", 1, timeout_s).status == _OK

    def figures(self, timeout_s: float) -> LiveFigures | None:
        reply = self._get(self._plan.endpoints.metrics, timeout_s)
        return live_figures(reply.body.decode("utf-8", "replace")) if reply.status == _OK else None

    def abort_requests(self, timeout_s: float) -> None:
        """Ask the server to give up what it is generating; a server that cannot is none the worse."""
        self._web.request(
            "POST",
            f"{self._url}/abort_request",
            body={"abort_all": True},
            headers=self._headers,
            timeout_s=timeout_s,
        )

    def _completion(self, timeout_s: float) -> Proof:
        reply = self._generate("The capital city of France is", _PROOF_TOKENS, timeout_s)
        if reply.status != _OK:
            return NotYet(text=reply.problem or f"/generate says {reply.status}")
        meta = _meta_info(reply.body)
        if meta is None or not meta.get("completion_tokens"):
            return NotYet(text="/generate gave no token")
        if not self._plan.speculation:
            return Proven(latency_ms=reply.elapsed_s * 1000)
        verify_steps = meta.get("spec_verify_ct") or 0
        if not verify_steps:
            return Denied(
                reason=Reason(code="no_speculation", text="the server generates without speculation")
            )
        return Proven(
            latency_ms=reply.elapsed_s * 1000, accept_length=meta["completion_tokens"] / verify_steps
        )

    def _generate(self, text: str, tokens: int, timeout_s: float) -> Reply:
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = {"text": text, "sampling_params": sampling}
        return self._web.request(
            "POST", f"{self._url}/generate", body=body, headers=self._headers, timeout_s=timeout_s
        )

    def _get(self, path: str, timeout_s: float) -> Reply:
        return self._web.request("GET", f"{self._url}{path}", headers=self._headers, timeout_s=timeout_s)


def _wrong_model(body: bytes, wanted: str) -> Reason | None:
    try:
        ids = [str(model["id"]) for model in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError):
        return Reason(
            code="wrong_model", text="the list of models cannot be read: this is not the planned engine"
        )
    if wanted in ids:
        return None
    served = ", ".join(map(repr, ids)) or "nothing"
    return Reason(code="wrong_model", text=f"the server serves {served}, but {wanted!r} was planned")


def _meta_info(body: bytes) -> dict[str, Any] | None:
    try:
        meta = json.loads(body)["meta_info"]
    except (ValueError, KeyError, TypeError):
        return None
    return meta if isinstance(meta, dict) else None
