"""Proofs on a live server: their outcome, and what a server says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from dflashctl.core.errors import CheckFailed, Unavailable
from dflashctl.core.replies import integer, mapping, text, values

_ALGORITHM = "speculative_algorithm"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared, not bound


class ProofStatus(str, Enum):
    """`BROKEN`: the proof itself broke, a bug of dflashctl that says nothing about the server."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    SKIPPED = "skipped"
    BROKEN = "broken"

    @property
    def bad(self) -> bool:
        """Whether the server may not be called good: what broke has proved nothing."""
        return self in {ProofStatus.FAIL, ProofStatus.BROKEN}


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One proof's outcome: `why` is one sentence, `evidence` holds what a person needs to judge a failure."""

    id: str
    title: str
    status: ProofStatus
    why: str
    evidence: tuple[str, ...] = ()
    elapsed_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Passed:
    """What a proof returns when it holds; `note` is what was seen."""

    note: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """What a proof returns when it finds that it cannot judge this server."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class SmokeOptions:
    """What `smoke` is asked; `against_no_spec` starts a second server, `against` is the URL of one that runs.

    `reference` and `save_reference` are paths of saved runs; `only` are ids of proofs, empty for all.
    """

    name: str | None = None
    url: str | None = None
    only: tuple[str, ...] = ()
    quick: bool = False
    against_no_spec: bool = False
    against: str | None = None
    reference: str | None = None
    save_reference: str | None = None
    profile: str | None = None
    near_tie_nats: float | None = None
    timeout_s: float = 120.0
    api_key_env: str | None = None


@dataclass(frozen=True, kw_only=True)
class SmokeResult:
    """Every proof with its outcome, and which server they are about."""

    url: str
    instance: str | None
    model: str | None
    engine_version: str | None
    block_size: int | None
    proofs: tuple[Proof, ...]
    saved_reference: str | None = None

    def count(self, status: ProofStatus) -> int:
        return sum(proof.status is status for proof in self.proofs)


class ReferenceFailed(Unavailable):
    """The server that texts are compared with does not answer as it must, which says nothing of the one under proof."""


class ProofFailed(CheckFailed):
    """The server does not do what the proof asks; `evidence` as in Proof."""

    def __init__(self, message: str, *, evidence: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.evidence = evidence


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """What a server says about itself; None is "it does not say". `model` is the name that requests use.

    `speculates` is None when the server has no /server_info, or one without the setting, as a router may have.
    `block_size` counts the newest token.
    """

    base_url: str
    model: str | None = None
    models: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    models_status: int = 200
    model_path: str | None = None
    max_model_len: int | None = None
    described: bool = False
    tells_algorithm: bool = False
    version: str | None = None
    speculative_algorithm: str | None = None
    block_size: int | None = None
    per_request_speculation: bool = False
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    grammar_backend: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the server is on this host, so that its GPUs are this host's."""
        return (urlsplit(self.base_url).hostname or "") in _LOOPBACK

    @property
    def names(self) -> tuple[str, ...]:
        """All that the server calls its models, their places on its disk included."""
        return (*self.models, *self.roots, *((self.model_path,) if self.model_path else ()))

    @property
    def no_model(self) -> str:
        """Why no model is known."""
        if self.models_status != 200:  # noqa: PLR2004
            return f"/v1/models answers with status {self.models_status}"
        return "/v1/models lists no model"

    @property
    def speculates(self) -> bool | None:
        return bool(self.speculative_algorithm) if self.tells_algorithm else None


def read_facts(base_url: str, models: object, server_info: object) -> ServerFacts:
    """Facts from the parsed bodies of /v1/models and /server_info; either may be None or of any shape."""
    entries = tuple(mapping(entry) for entry in values(mapping(models).get("data")))
    info = mapping(server_info)
    block = integer(info.get("speculative_num_draft_tokens"))
    return ServerFacts(
        base_url=base_url,
        model=next((text(entry.get("id")) for entry in entries), None),
        models=tuple(str(entry.get("id")) for entry in entries),
        roots=tuple(str(entry["root"]) for entry in entries if entry.get("root")),
        max_model_len=next((integer(entry.get("max_model_len")) for entry in entries), None),
        model_path=text(info.get("model_path")),
        described=bool(info),
        tells_algorithm=_ALGORITHM in info,
        version=text(info.get("version")),
        speculative_algorithm=_set(info.get(_ALGORITHM)),
        block_size=block or integer(info.get("speculative_dflash_block_size")),
        per_request_speculation=info.get("per_request_speculation") is True,
        reasoning_parser=_set(info.get("reasoning_parser")),
        tool_call_parser=_set(info.get("tool_call_parser")),
        grammar_backend=_set(info.get("grammar_backend")),
    )


def _set(value: object) -> str | None:
    """The word, None for absent, empty and "none" in any spelling."""
    word = text(value)
    return word if word and word.lower() != "none" else None
