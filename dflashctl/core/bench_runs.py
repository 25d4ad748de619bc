"""BenchRun and BenchResult: what `bench` measured, as it is shown and as it is written to a result file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.latency import DEFINITIONS
from dflashctl.core.report import to_json

if TYPE_CHECKING:
    from dflashctl.core.accept import AcceptLength, CrossCheck
    from dflashctl.core.bench_compare import Comparison
    from dflashctl.core.bench_record import RequestRecord
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import GpuReading, Provenance, Samples, Setting
    from dflashctl.core.expectations import Expectation

RUN_FILE_KIND = "dflashctl bench"
RUN_FILE_VERSION = 1


class Unfinished(str, Enum):
    """Why a run ended before each of its requests was sent and answered."""

    INTERRUPTED = "interrupted"  # Ctrl-C, TERM or HUP
    MAX_DURATION = "max_duration"  # --max-duration was over


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The accept length of one group of a workload's prompts."""

    name: str
    requests: int
    accept_length: AcceptLength | None


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """The run beside the one without speculation in the same setting; above 1 is faster.

    `shared_turns`: how many turns both finished and `per_request` is of, when those were not the same; else None.
    """

    per_request: float | None
    aggregate: float | None
    shared_turns: int | None = None


@dataclass(frozen=True, kw_only=True)
class BenchRun:
    """One load of one server. `looping` are answers that fell into a loop, out of `judged` texts.

    `withheld`: why its latencies and rates are left out, empty when they are not. `unfinished`: why it is not whole, None
    when it is; its figures are then those of the requests that were done. `records` go into the file without
    their texts, which only the lines for bench_serving hold. `server_end`: that the instance's server ended in the run,
    which `instance` names.
    """

    summary: RunSummary
    setting: Setting
    samples: Samples
    session: int = 0
    buckets: tuple[Bucket, ...] = ()
    cross_check: CrossCheck | None = None
    expectations: tuple[Expectation, ...] = ()
    speedup: Speedup | None = None
    gpu_readings: tuple[GpuReading, ...] = ()
    looping: tuple[str, ...] = ()
    judged: int = 0
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    records: tuple[RequestRecord, ...] | None = None
    instance: str | None = None
    server_end: str | None = None

    def to_json(self) -> dict[str, object]:
        """The summary's keys at the top, the rest beside them; records only when they were asked for."""
        whole = to_json(self.summary)
        fields = whole if isinstance(whole, dict) else {}
        own: dict[str, object] = {
            "label": self.setting.label,
            "speculation": self.setting.speculation,
            "setting": self.setting,
            "session": self.session,
            "buckets": self.buckets,
            "cross_check": self.cross_check,
            "expectations": self.expectations,
            "speedup": self.speedup,
            "looping": self.looping,
            "judged": self.judged,
            "warnings": self.warnings,
            "withheld": self.withheld,
            "unfinished": self.unfinished,
            "gpu_readings": self.gpu_readings,
            "samples": self.samples,
        }
        if self.records is not None:
            own["records"] = tuple(record.without_texts() for record in self.records)
        return {**fields, **own}


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """All runs of one call. `sessions` are the provenances that runs name by their index; the last is the newest.

    `comparison`: these runs beside an earlier result, where one was named.
    """

    runs: tuple[BenchRun, ...]
    sessions: tuple[Provenance, ...]
    path: str | None = None
    written: tuple[str, ...] = ()
    comparison: Comparison | None = None

    def to_json(self) -> dict[str, object]:
        whole: dict[str, object] = {
            "kind": RUN_FILE_KIND,
            "schema_version": RUN_FILE_VERSION,
            "runs": self.runs,
            "provenance": self.sessions[-1] if self.sessions else None,
            "sessions": self.sessions,
            "definitions": DEFINITIONS,
            "path": self.path,
        }
        return whole if self.comparison is None else {**whole, "comparison": self.comparison}


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """Where the report lies and how much is in it."""

    html: str
    png: str | None
    runs: int
    files: tuple[str, ...]
