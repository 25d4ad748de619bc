"""Provenance of a run: the server's own account, the plan's, and the machine's."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dflashctl import __version__
from dflashctl.core.bench_setting import GpuInfo, ModelIdentity, Provenance
from dflashctl.core.replies import mapping, parse_json, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.machine import Gpu
    from dflashctl.env import Env
    from dflashctl.proofs.client import Client

_OK = 200
# Live state, addresses and secrets are no settings.
_LEFT_OUT = frozenset(
    {"internal_states", "status", "kv_events", "startup_time", "host", "port", "version", "random_seed"}
)
_SECRETS = ("api_key", "password", "secret", "hf_token", "auth_token", "_keyfile")


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
        gpus=tuple(_gpu(gpu) for gpu in machine.gpus) if client.facts.is_local else (),
        driver=machine.driver_version if client.facts.is_local else None,
    )


def _server_info(client: Client) -> Mapping[str, object]:
    reply = client.get("/server_info", timeout_s=30.0)
    return mapping(parse_json(reply.body, "/server_info")) if reply.status == _OK else {}


def _flags(info: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The resolved settings that are plain values, without live state and without anything that smells of a secret."""
    plain = (
        (name, value) for name, value in sorted(info.items()) if isinstance(value, (str, int, float, bool))
    )
    return tuple(
        (name, str(value))
        for name, value in plain
        if name not in _LEFT_OUT and not any(part in name for part in _SECRETS)
    )


def _gpu(gpu: Gpu) -> GpuInfo:
    return GpuInfo(
        index=gpu.index,
        name=gpu.name,
        uuid=gpu.uuid,
        power_limit_w=gpu.power_limit_w,
        clock_sm_max_mhz=gpu.clock_sm_max_mhz,
        processes=tuple(f"{p.pid} {p.name or '?'}" for p in gpu.processes),
    )
