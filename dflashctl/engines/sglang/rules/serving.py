"""Rules about names, ports, secrets and ways of passing options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.core.simulated import PLAN_FINDING, VARIABLE, simulated_by
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation


def _same_port(s: Situation) -> bool:
    grpc = s.value("--grpc-port")
    return grpc is not None and grpc == s.value("--port")


RULES: tuple[Rule, ...] = (
    Rule(
        id="served_name_colon",
        when=lambda s: ":" in (s.value("--served-model-name") or ""),
        severity=Severity.ERROR,
        consequence="a served model name cannot contain a colon",
        fix="--set server.served_model_name=NAME",
        source="srt/server_args.py",
    ),
    Rule(
        id="grpc_port_same",
        when=_same_port,
        severity=Severity.ERROR,
        consequence="--grpc-port is the HTTP port",
        fix="give --grpc-port another number",
        source="srt/server_args.py",
    ),
    Rule(
        id="options_in_file",
        when=lambda s: s.has("--config"),
        severity=Severity.ERROR,
        consequence="options in a --config file cannot be checked, and 0.5.17 to 0.5.19 refuse renamed ones there",
        fix="put them into the profile, or after --",
        source="sglang 0.5.19: srt/utils/server_args_config_parser.py",
    ),
    Rule(
        id="key_in_arguments",
        when=lambda s: s.has("--api-key") or s.has("--admin-api-key"),
        severity=Severity.WARNING,
        consequence="an API key among the arguments can be read by every user of this machine (ps)",
        fix="put the key into a proxy in front of the server",
        source="srt/utils/auth.py",
    ),
    Rule(
        id="warmup_skipped",
        when=lambda s: s.has("--skip-server-warmup"),
        severity=Severity.WARNING,
        consequence="without the warm-up request the server says it is ready before it has answered anything",
        fix="leave --skip-server-warmup out",
        source="sglang 0.5.23: srt/entrypoints/http_server.py",
    ),
    Rule(
        id=PLAN_FINDING,
        when=lambda s: s.dflash and simulated_by(s.environment) is not None,
        since="0.5.17",
        severity=Severity.WARNING,
        consequence=f"{VARIABLE}={{s.environment[{VARIABLE}]}} makes the engine invent its accept length",
        fix=f"take {VARIABLE} out of the environment",
        source="sglang 0.5.17: srt/speculative/dflash_utils.py",
    ),
)
