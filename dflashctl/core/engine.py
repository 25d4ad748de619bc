"""Engine: what an engine module must offer so that a profile becomes a command and a log becomes phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dflashctl.core.start_phase import StartPhase  # noqa: TC001 - part of what an engine module imports from here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dflashctl.core.findings import Finding
    from dflashctl.core.gpu_use import GpuUse
    from dflashctl.core.machine import Machine
    from dflashctl.core.option import Option
    from dflashctl.core.profile import Profile


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What a model's config.json says, as far as planning needs it; None is unknown.

    `context_tokens` is the length that SGLang derives from it, after rope scaling.
    """

    architecture: str | None = None
    block_size: int | None = None
    num_hidden_layers: int | None = None
    num_target_layers: int | None = None
    target_layer_ids: tuple[int, ...] | None = None
    layer_types: tuple[str, ...] | None = None
    is_causal: bool | None = None
    hidden_size: int | None = None
    vocab_size: int | None = None
    mask_token_id: int | None = None
    sliding_window: int | None = None
    context_tokens: int | None = None
    quantized_lm_head: bool | None = None


@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """The engine that will run: `release` such as "0.5.22"; `options` only for a build that differs from it.

    `known` is False for a changed build; `options` are then those of its real parser, None when it could not
    be asked, and `model_hooks` its model classes with the draft hooks that each has.
    """

    release: str
    python: str | None = None
    known: bool = True
    local_version: str | None = None
    options: tuple[Option, ...] | None = None
    model_hooks: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    installed: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundEngine:
    """An engine that is there: `cache_key` names this very build, `root` is its package folder."""

    build: EngineBuild
    cache_key: str
    root: str | None = None


@dataclass(frozen=True, kw_only=True)
class EngineRequest:
    """All that an engine decides from.

    `origins` maps a profile path ("speculative.block_size") to what set it when that is not the profile
    ("--block-size", "--set"). `raw_args` are the arguments after `--`; they win and are checked.
    `inherited` are the engine's settings in the caller's environment; the profile's win over them.
    `target_model` and `draft_model` are what the engine is given as model: a repository or a folder.
    """

    profile: Profile
    machine: Machine
    build: EngineBuild
    target_model: str
    draft_model: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    raw_args: tuple[str, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict)
    target_facts: ModelFacts | None = None
    draft_facts: ModelFacts | None = None


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One change between what was asked and what the release gets; `to` is empty when it was dropped."""

    from_: str
    to: str
    reason: str
    source: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return {"from": self.from_, "to": self.to, "reason": self.reason, "source": self.source}


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One engine argument: where it comes from (profile path, option, rule, engine default) and why."""

    flag: str
    values: tuple[str, ...] = ()
    origin: str = ""
    why: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return (self.flag, *self.values)


@dataclass(frozen=True, kw_only=True)
class EngineCommand:
    """What to run: `module_argv` follows the interpreter; an error among `findings` refuses the plan.

    `resolved` are options that the engine itself will set or change, as far as that matters.
    """

    module_argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    arguments: tuple[Argument, ...] = ()
    resolved: tuple[Argument, ...] = ()
    translations: tuple[Translation, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LogMark:
    """What one log line tells: a phase begun, progress in it (`done` of `total`), or that it is alive.

    `facts` are values worth keeping, such as draft_attention_backend or max_total_num_tokens.
    """

    phase: StartPhase | None = None
    done: int | None = None
    total: int | None = None
    facts: tuple[tuple[str, str], ...] = ()
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """HTTP paths of a release: `ready` None where it has none; orderly_exit_codes follow a drained TERM."""

    health: str = "/health"
    ready: str | None = None
    models: str = "/v1/models"
    server_info: str = "/server_info"
    metrics: str = "/metrics"
    orderly_exit_codes: tuple[int, ...] = (0,)


class Engine(Protocol):
    """An engine: a module with these names serves (mypy checks it in engines/__init__.py)."""

    NAME: str
    NEWEST_RELEASE: str
    RELEASES: tuple[str, ...]

    def command(self, request: EngineRequest, /) -> EngineCommand:
        """The command for that build, with every translation and finding; never raises for a bad plan."""

    def effective(self, profile: Profile, raw_args: tuple[str, ...], build: EngineBuild, /) -> Profile:
        """The profile with what raw arguments set of it, so that port, name and block are known everywhere."""

    def gpu_use(self, profile: Profile, raw_args: tuple[str, ...], build: EngineBuild, /) -> GpuUse:
        """The GPUs of this machine that such a server uses, whatever their number here."""

    def read_log_line(self, line: str, /) -> LogMark | None:
        """What that line of the log tells, or None."""

    def differences(
        self,
        facts: Mapping[str, str],
        arguments: Sequence[Argument],
        /,
        *,
        block_size: int | None,
        draft_window_size: int | None,
    ) -> tuple[Finding, ...]:
        """What the log's facts (LogMark.facts, gathered) say differently from the plan, once the draft runs."""

    def endpoints(self, release: str, /) -> Endpoints:
        """HTTP paths and exit codes of that release."""

    def published(self, command: str, release: str, /) -> tuple[Translation, ...]:
        """What that release makes of a published launch command: its renamed and dropped parts."""

    def install_hint(self, release: str, /) -> str:
        """The command that installs the engine."""
