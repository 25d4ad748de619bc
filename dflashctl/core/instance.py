"""Instance: what is written down about a supervised server, and who it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from dflashctl.core.errors import UsageProblem
from dflashctl.core.start_phase import StartPhase  # noqa: TC001 - read at run time by decode

RECORD_VERSION = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class Phase(str, Enum):
    """Where an instance is; the order is that of a good life."""

    PREFLIGHT = "preflight"
    FETCHING = "fetching"
    VERIFYING = "verifying"
    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    UNHEALTHY = "unhealthy"
    DRAINING = "draining"
    BACKOFF = "backoff"
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = (Phase.STOPPED, Phase.FAILED)


def is_name(name: str) -> bool:
    """Whether an instance can be called so."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def check_name(name: str, *, new: bool = True) -> str:
    """`name` when it can be an instance's name, else UsageProblem; `new`: it is about to be given, so another may be."""
    if not is_name(name):
        rule = "use lower-case letters, digits, '.', '_' and '-', at most 63 characters: --name NAME"
        raise UsageProblem(
            f"{name!r} cannot be an instance name",
            hint=rule if new else "`dflashctl status` lists the instances",
        )
    return name


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A process that cannot be mistaken: pids return, start times within one boot and pid namespace do not.

    `start_ticks` is field 22 of /proc/PID/stat (10 ms each).
    """

    boot_id: str
    pid_namespace: int
    pid: int
    start_ticks: int
    session: int


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why it is so: `code` for scripts, `text` for people."""

    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LastExit:
    """How the server last ended: `status` when it left by itself, `signal` when it was killed.

    `kind` is the signature's id or a plain word, `evidence` the log's lines that show it, `fix` what to do.
    """

    status: int | None = None
    signal: int | None = None
    kind: str | None = None
    fix: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProbeState:
    """What the last probes said; `accept_length` is that of the completion that proved readiness."""

    last_ok_at_s: float | None = None
    latency_ms: float | None = None
    tokens_total: float | None = None
    accept_length: float | None = None


def local_host(host: str) -> str:
    """Where this host reaches a server that listens on `host`: a wildcard address is reached through loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound


def local_url(host: str, port: int) -> str:
    """The address for requests from this host."""
    reached = local_host(host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


@dataclass(frozen=True, kw_only=True)
class Served:
    """What is served and where; within `stop_limit_s` an orderly stop is over.

    `simulated_accept` is the length that the server was told to make up in place of its real accept lengths.
    """

    profile: str
    engine: str
    engine_version: str
    runtime: str
    host: str
    port: int
    served_model_name: str
    fingerprint: str
    target: str | None = None
    target_revision: str | None = None
    draft: str | None = None
    draft_revision: str | None = None
    block_size: int | None = None
    gpus: tuple[str, ...] = ()
    metrics_path: str = "/metrics"
    stop_limit_s: float = 80.0
    simulated_accept: str | None = None

    @property
    def local_host(self) -> str:
        return local_host(self.host)

    @property
    def url(self) -> str:
        return local_url(self.host, self.port)


@dataclass(frozen=True, kw_only=True)
class InstanceRecord:
    """The record of one instance; times are wall-clock seconds, for display only.

    `sessions` are the server's sessions (the first its own), by their leader's identity; `facts` come from the log.
    `log_lost_lines` counts lines that reached no file, `journal_lost_writes` records that could not be written.
    """

    schema_version: int = RECORD_VERSION
    name: str
    phase: Phase
    phase_since_s: float
    started_at_s: float | None = None
    supervisor: Identity | None = None
    served: Served | None = None
    step: StartPhase | None = None
    done: int | None = None
    total: int | None = None
    ready: bool = False
    healthy: bool | None = None
    reason: Reason | None = None
    server: Identity | None = None
    sessions: tuple[Identity, ...] = ()
    container: str | None = None
    restarts_used: int = 0
    restarts_budget: int = 0
    last_exit: LastExit | None = None
    probe: ProbeState = ProbeState()
    facts: tuple[tuple[str, str], ...] = ()
    exit_code: int | None = None
    log_lost_lines: int = 0
    journal_lost_writes: int = 0
    detached: bool = False


@dataclass(frozen=True, kw_only=True)
class JournalEvent:
    """One line of events.jsonl."""

    at_s: float
    kind: str
    text: str
    phase: Phase | None = None
    attempt: int | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What can be read of an instance: `supervised` is decided by the lock alone, never by the record.

    `owner` is who holds the lock, where that process can be seen from here, whatever the record says. `brief` says that
    it only puts the instance in order, as `down` does, and need not be asked to leave.
    """

    name: str
    supervised: bool
    record: InstanceRecord | None = None
    problem: str | None = None
    owner_pid: int | None = None
    owner: Identity | None = None
    brief: bool = False
