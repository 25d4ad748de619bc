"""Weights: the plan of a fetch, its verdict on disk and access, and what a start gets from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.model_files import BAD, CodeFile, FileReport, FileStatus, total_bytes

if TYPE_CHECKING:
    from dflashctl.core.engine import ModelFacts
    from dflashctl.core.model_files import ModelFile

MARGIN = 0.05
XET_CACHE_BYTES = 10_000_000_000

# The engine reads the verified snapshot and nothing else: no network, no token.
ENGINE_ENVIRONMENT = (
    ("HF_HUB_OFFLINE", "1"),
    ("TRANSFORMERS_OFFLINE", "1"),
    ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"),
    ("HF_HUB_DISABLE_TELEMETRY", "1"),
)
TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "DFLASHCTL_HF_TOKEN_FD")


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model that lies on disk and was checked; `folder` is what the engine is given."""

    label: str
    repo: str | None
    commit: str | None
    folder: str
    facts: ModelFacts
    bytes: int = 0
    code: tuple[CodeFile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Both models of a profile, ready to serve. `environment` is added for the engine, `without` taken away."""

    target: LocalModel
    draft: LocalModel | None = None
    findings: tuple[Finding, ...] = ()
    environment: tuple[tuple[str, str], ...] = ENGINE_ENVIRONMENT
    without: tuple[str, ...] = TOKEN_VARIABLES


@dataclass(frozen=True, kw_only=True)
class DiskRoom:
    """What the filesystem that holds `path` has left for this user; `free_files` None when it has no such limit."""

    path: str
    mount: str
    free_bytes: int
    free_files: int | None = None
    writable: bool = True


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the Hub is reached; `token` says where it came from ("HF_TOKEN", a file), never what it is."""

    endpoint: str
    token: str | None = None
    sends_token: bool = False
    offline: bool = False
    xet: bool = True


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """What one model needs. `files` are all that serving needs, as they lie now; `locked` when the lock names them."""

    role: str
    label: str
    repo: str | None
    commit: str | None
    folder: str
    files: tuple[FileReport, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    code: tuple[CodeFile, ...] = ()
    source: str = "hub"
    writable: bool = True
    locked: bool = False

    @property
    def wanted(self) -> tuple[ModelFile, ...]:
        """Files to transfer: those missing and those that are bad."""
        return tuple(r.file for r in self.files if not r.usable)

    @property
    def bad(self) -> tuple[FileReport, ...]:
        return tuple(r for r in self.files if r.status in BAD)

    @property
    def unverified(self) -> tuple[FileReport, ...]:
        return tuple(r for r in self.files if r.status is FileStatus.UNVERIFIED)

    @property
    def total_bytes(self) -> int:
        return total_bytes(tuple(r.file for r in self.files))

    @property
    def wanted_bytes(self) -> int:
        return total_bytes(self.wanted)

    def summary(self) -> dict[str, object]:
        return {
            "role": self.role,
            "label": self.label,
            "repo": self.repo,
            "commit": self.commit,
            "folder": self.folder,
            "source": self.source,
            "files_total": len(self.files),
            "files_wanted": len(self.wanted),
            "bytes_total": self.total_bytes,
            "bytes_wanted": self.wanted_bytes,
        }

    def to_json(self) -> dict[str, object]:
        return {
            **self.summary(),
            "code": self.code,
            "files": tuple(_file_json(r) for r in self.files),
            "left_out": tuple({"path": path, "reason": reason} for path, reason in self.left_out),
        }


@dataclass(frozen=True, kw_only=True)
class WeightsPlan:
    """The whole fetch before it begins; `rate_bytes_per_s` is what the last fetch here measured.

    `room` and `xet_room` are those of the cache and of Xet's own one, None when the Hub is not needed.
    """

    models: tuple[ModelPlan, ...]
    room: DiskRoom | None
    access: Access
    rate_bytes_per_s: float | None = None
    xet_room: DiskRoom | None = None

    @property
    def wanted_bytes(self) -> int:
        return sum(m.wanted_bytes for m in self.models)

    @property
    def needed_bytes(self) -> int:
        """What must be free: all that is to come, and the margin of both models' remaining bytes."""
        return int(self.wanted_bytes * (1 + MARGIN))

    @property
    def expected_s(self) -> float | None:
        return self.wanted_bytes / self.rate_bytes_per_s if self.rate_bytes_per_s else None

    def to_json(self) -> dict[str, object]:
        return {
            "models": tuple(m.summary() for m in self.models),
            "room": self.room,
            "xet_room": self.xet_room,
            "access": self.access,
            "bytes_wanted": self.wanted_bytes,
            "bytes_needed": self.needed_bytes,
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "expected_s": self.expected_s,
        }


def plan_findings(plan: WeightsPlan) -> tuple[Finding, ...]:
    """Reasons not to begin: too little room (bytes, files), a place that cannot be written."""
    room = plan.room
    if room is None or not plan.wanted_bytes:
        return ()
    found: list[Finding] = []
    fix = "free some, or set HF_HUB_CACHE (or HF_HOME) to a folder on a larger disk, for fetch and for up"
    if not room.writable:
        found.append(_refusal("weights.read_only", f"the cache {room.path} cannot be written", None, fix))
    if room.free_bytes < plan.needed_bytes:
        summary = f"{plan.needed_bytes} bytes are needed and {room.free_bytes} are free on {room.mount}"
        detail = f"{plan.wanted_bytes} bytes to fetch plus {MARGIN:.0%}, for the cache {room.path}"
        found.append(_refusal("weights.disk_full", summary, detail, fix))
    files = sum(len(m.wanted) for m in plan.models)
    if room.free_files is not None and room.free_files < 3 * files:
        summary = (
            f"{3 * files} files and links are needed and {room.free_files} inodes are free on {room.mount}"
        )
        found.append(_refusal("weights.inodes", summary, f"for the cache {room.path}", fix))
    return (*found, *_xet_finding(plan, room))


def _xet_finding(plan: WeightsPlan, room: DiskRoom) -> tuple[Finding, ...]:
    """Xet may keep chunks in a place of its own; a small home filesystem fills up although the cache is elsewhere."""
    xet = plan.xet_room
    if xet is None or xet.mount == room.mount or xet.free_bytes >= min(XET_CACHE_BYTES, plan.wanted_bytes):
        return ()
    return (
        Finding(
            id="weights.xet_cache",
            severity=Severity.WARNING,
            summary=f"Xet keeps chunks in {xet.path}, and {xet.mount} has only {xet.free_bytes} bytes free",
            detail=f"the cache itself is on {room.mount}",
            fix="set HF_XET_CACHE to a folder on the larger disk",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class FetchData:
    """The answer of `fetch`: `plan` as found at the beginning, `models` as they are at the end.

    `transferred_bytes` and `transfer_s` are of this call; `lock` is the lock's place; `set_aside` are bad files
    that were moved out of the way; `orphans_bytes` was freed from transfers that died.
    """

    profile: str
    plan: WeightsPlan | None = None
    only_plan: bool = False
    models: tuple[ModelPlan, ...] = ()
    lock: str | None = None
    transferred_bytes: int = 0
    transfer_s: float | None = None
    verified_bytes: int = 0
    verify_s: float | None = None
    set_aside: tuple[str, ...] = ()
    orphans_bytes: int = 0
    restarts: int = 0
    transport: str | None = None


def _refusal(id_: str, summary: str, detail: str | None, fix: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary, detail=detail, fix=fix)


def _file_json(report: FileReport) -> dict[str, object]:
    return {
        "path": report.file.path,
        "size_bytes": report.file.size_bytes,
        "status": report.status,
        "sha256": report.file.sha256 or report.sha256,
        "detail": report.detail,
    }
