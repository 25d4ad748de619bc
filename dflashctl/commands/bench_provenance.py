"""Provenance of a run: the server's own account, the plan's, and the machine's."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dflashctl import __version__
from dflashctl.core.bench_setting import GpuInfo, ModelIdentity, Provenance
from dflashctl.core.redact import Redactor
from dflashctl.core.replies import mapping, parse_json, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.machine import Gpu, GpuProcess
    from dflashctl.env import Env
    from dflashctl.proofs.client import Client

_OK = 200
# Live state, addresses and secrets are no settings.
_LEFT_OUT = frozenset(
    {"internal_states", "status", "kv_events", "startup_time", "host", "port", "version", "random_seed"}
)
_SECRETS = ("api_key", "password", "secret", "hf_token", "auth_token", "_keyfile")
_REDACT = Redactor()


def provenance(env: Env, server: LiveServer, client: Client, template_hash: str | None) -> Provenance:
    """Everything that could explain a difference later; what nobody says is None."""
    info = _server_info(client)
    machine = env.machine.snapshot()
    served = server.served
    return Provenance(
        started_at=datetime.fromtimestamp(env.clock.wall(), tz=timezone.utc).isoformat(timespec="seconds"),
        dflashctl_version=__version__,
        url=server.url,
        instance=server.name,
        profile=served.profile if served else None,
        engine=served.engine if served else None,
        engine_version=client.facts.version or (served.engine_version if served else None),
        target=ModelIdentity(
            name=(served.target if served else None) or text(info.get("model_path")) or client.facts.model,
            revision=(served.target_revision if served else None) or text(info.get("revision")),
        ),
        draft=ModelIdentity(
            name=(served.draft if served else None) or text(info.get("speculative_draft_model_path")),
            revision=(served.draft_revision if served else None)
            or text(info.get("speculative_draft_model_revision")),
        ),
        template_hash=template_hash,
        speculative_algorithm=client.facts.speculative_algorithm,
        block_size=client.facts.block_size,
        flags=_flags(info),
        plan_fingerprint=served.fingerprint if served else None,
        gpus=_gpus(machine.gpus, _pids(env, server)) if client.facts.is_local else (),
        driver=machine.driver_version if client.facts.is_local else None,
    )


def _server_info(client: Client) -> Mapping[str, object]:
    reply = client.get("/server_info", timeout_s=30.0)
    return mapping(parse_json(reply.body, "/server_info")) if reply.status == _OK else {}


def _flags(info: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The resolved settings, without live state and without anything that smells of a secret.

    Lists and objects are compact JSON.
    """
    return tuple(
        (name, _REDACT(_as_text(value)))
        for name, value in sorted(info.items())
        if value is not None and name not in _LEFT_OUT and not _is_secret(name)
    )


def _as_text(value: object) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(_without_secrets(value), separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_secrets(member) for name, member in value.items() if not _is_secret(name)}
    return [_without_secrets(member) for member in value] if isinstance(value, list) else value


def _is_secret(name: str) -> bool:
    return any(part in name.lower() for part in _SECRETS)


def _pids(env: Env, server: LiveServer) -> frozenset[int]:
    """The server's processes, none when it is not ours or runs in a container."""
    return frozenset(env.instances.members(server.name)) if server.name is not None else frozenset()


def _gpus(gpus: tuple[Gpu, ...], own: frozenset[int]) -> tuple[GpuInfo, ...]:
    """Strangers can be told only where pids are this host's: one of the server's is seen, or there is none at all."""
    seen = {process.pid for gpu in gpus for process in gpu.processes}
    return tuple(_gpu(gpu, own, told=not seen or bool(seen & own)) for gpu in gpus)


def _gpu(gpu: Gpu, own: frozenset[int], *, told: bool) -> GpuInfo:
    return GpuInfo(
        index=gpu.index,
        name=gpu.name,
        uuid=gpu.uuid,
        power_limit_w=gpu.power_limit_w,
        clock_sm_max_mhz=gpu.clock_sm_max_mhz,
        processes=_named(gpu.processes),
        others=_named(p for p in gpu.processes if p.pid not in own) if told else None,
    )


def _named(processes: Iterable[GpuProcess]) -> tuple[str, ...]:
    return tuple(f"{process.pid} {process.name or '?'}" for process in processes)
