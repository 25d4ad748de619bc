"""RunView: a run as it is read back from a result file, with what comparing, plotting and exporting need."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from dflashctl.core.bench_setting import GpuReading, Provenance, Samples, Setting
from dflashctl.core.decode import DecodeError, decode
from dflashctl.core.errors import UsageProblem
from dflashctl.core.replies import integer, mapping, values

KIND = "dflashctl bench"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class IntervalView:
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class AcceptView:
    mean: float
    pooled: float
    completion_weighted: float
    p10: float
    p50: float
    p90: float
    turns: int
    histogram: tuple[float, ...] = ()
    one_plus_accepted: float | None = None
    mean_interval: IntervalView | None = None


@dataclass(frozen=True, kw_only=True)
class DistributionView:
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, kw_only=True)
class RateView:
    p50: float
    p99: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class ClientView:
    """None: a figure that the file's release did not write yet, or a connect time that there was not."""

    cpu_share: float
    loop_lag_ms_p99: float
    late_sends: int = 0
    connect_ms_p50: float | None = None
    processes: int | None = None
    reconnects: int | None = None
    backlog_bytes_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class ExpectationView:
    metric: str
    published: float
    verdict: str
    measured: float | None = None
    interval: IntervalView | None = None
    why: str | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class BucketView:
    name: str
    requests: int
    accept_length: AcceptView | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedupView:
    per_request: float | None = None
    aggregate: float | None = None
    shared_turns: int | None = None


@dataclass(frozen=True, kw_only=True)
class SloView:
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class GoodputView:
    slo: SloView
    good: int
    sent: int
    attainment: float
    requests_per_s: float


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Field names are the result file's keys."""

    label: str
    setting: Setting
    samples: Samples
    requests: int
    errors: int
    duration_s: float
    session: int = 0
    accept_length: AcceptView | None = None
    output_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    per_request_tokens_per_s: RateView | None = None
    ttft_ms: DistributionView | None = None
    tpot_ms: DistributionView | None = None
    itl_ms: DistributionView | None = None
    e2e_ms: DistributionView | None = None
    client: ClientView | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    buckets: tuple[BucketView, ...] = ()
    expectations: tuple[ExpectationView, ...] = ()
    speedup: SpeedupView | None = None
    gpu_readings: tuple[GpuReading, ...] = ()
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    unfinished: str | None = None
    errors_by_kind: dict[str, int] = field(default_factory=dict)
    errors_told: dict[str, int] = field(default_factory=dict)
    finish_reasons: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    turns_without_counts: int | None = None
    goodput: GoodputView | None = None


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """A whole result file; `name` is its path as it was given."""

    name: str
    runs: tuple[RunView, ...]
    sessions: tuple[Provenance, ...]

    def provenance(self, run: RunView) -> Provenance | None:
        return self.sessions[run.session] if 0 <= run.session < len(self.sessions) else None


def read_run_file(document: object, name: str) -> RunFile:
    """The runs of a parsed result file, or of the whole `--json` object; UsageProblem names what is wrong with it."""
    found = mapping(document)
    if found.get("command") == "bench":
        found = mapping(found.get("data"))
    if found.get("kind") != KIND:
        raise UsageProblem(f"{name} is no result file of dflashctl bench")
    if integer(found.get("schema_version")) != VERSION:
        raise UsageProblem(
            f"{name} has schema version {found.get('schema_version')!r}; this release reads {VERSION}"
        )
    try:
        runs = tuple(_run(run, f"runs[{i}]") for i, run in enumerate(values(found.get("runs"))))
        sessions = tuple(decode(Provenance, item, at="sessions") for item in values(found.get("sessions")))
    except DecodeError as error:
        raise UsageProblem(f"{name} is damaged: {error}") from error
    return RunFile(name=name, runs=runs, sessions=sessions)


def _run(value: object, at: str) -> RunView:
    """Every array of samples has one value a request: otherwise values would be taken for another request's."""
    run = decode(RunView, value, at=at)
    wanted = len(run.samples.ids)
    for name in (item.name for item in fields(run.samples)):
        length = len(getattr(run.samples, name))
        if length != wanted:
            raise DecodeError(f"{at}.samples.{name}: {length} values for {wanted} ids")
    return run
