"""Profile: one target with its draft, and all that serving the pair needs, as frozen sections."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time by the loader
from dataclasses import dataclass, field
from enum import Enum

COMMIT_LENGTH = 40
BUILTIN = "builtin:"


class EngineName(str, Enum):
    SGLANG = "sglang"
    REFERENCE = "reference"


class Algorithm(str, Enum):
    DFLASH = "DFLASH"
    NONE = "NONE"


@dataclass(frozen=True, kw_only=True)
class ModelRef:
    """A model by `repo` and 40-digit `revision`, or by local `path` (absolute, or beside the profile).

    `builtin:` paths name the models inside the package. `weights_bytes` is the size of all weight files,
    used for planning before they are there.
    """

    repo: str | None = None
    revision: str | None = None
    path: str | None = None
    trust_remote_code: bool = False
    weights_bytes: int | None = None
    allow_patterns: tuple[str, ...] = ()
    ignore_patterns: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What a person calls this model."""
        return self.repo or self.path or "?"


@dataclass(frozen=True, kw_only=True)
class Speculative:
    """`block_size` counts the newest token and the proposals; `draft_window_size` is in tokens."""

    algorithm: Algorithm = Algorithm.DFLASH
    block_size: int | None = None
    draft_window_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Backends:
    """Kernel choices by part of the model; None leaves the engine's own choice."""

    attention: str | None = None
    draft_attention: str | None = None
    linear_prefill: str | None = None
    linear_decode: str | None = None
    linear_verify: str | None = None
    moe_runner: str | None = None
    sampling: str | None = None
    grammar: str | None = None
    replayssm: bool = False
    replayssm_cache_len: int | None = None
    prefill_graph: str | None = None
    prefill_graph_max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """How the target is spread: tensor, pipeline, data and expert parallel sizes."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Sizes in tokens or requests; `static_fraction` is the share of GPU memory for weights and pools."""

    static_fraction: float | None = None
    context_length: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    kv_cache_dtype: str | None = None
    page_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where it listens and how it presents itself."""

    host: str = "127.0.0.1"
    port: int = 30000
    served_model_name: str | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    metrics: bool = True


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Limits of the supervisor, all in seconds."""

    progress_timeout_s: float = 600.0
    ready_timeout_s: float = 7200.0
    drain_timeout_s: float = 60.0
    hang_after_s: float = 300.0
    stable_after_s: float = 600.0
    restarts: int = 3


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What the machine must have; `gpu_kinds` are parts of NVML's product names (any one matches)."""

    gpus: int = 0
    gpu_kinds: tuple[str, ...] = ()
    gpu_memory_bytes: int | None = None
    compute_capability: tuple[str, ...] = ()
    driver: str | None = None
    nvlink: bool = False


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Which engine, which releases of it, and where it comes from."""

    name: EngineName
    versions: str | None = None
    build: str | None = None
    image: str | None = None
    python: str | None = None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published value and the setting it was measured in.

    `turns`: it speaks of so many first turns of each conversation, None for all of them.
    """

    metric: str
    dataset: str
    value: float
    block_size: int | None = None
    concurrency: int | None = None
    turns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the figures were made: `thinking` None means that the template has no such switch."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int | None = None
    thinking: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Expect:
    """Published figures, with their source and setup in words.

    `command` is the launch command that they were published with; the plan tells what a release makes of it.
    """

    source: str | None = None
    command: str | None = None
    setup: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A whole profile; `name` is the file's name without its ending."""

    name: str
    summary: str
    engine: Engine
    target: ModelRef
    draft: ModelRef | None = None
    speculative: Speculative = field(default_factory=Speculative)
    backends: Backends = field(default_factory=Backends)
    parallel: Parallel = field(default_factory=Parallel)
    memory: Memory = field(default_factory=Memory)
    server: Server = field(default_factory=Server)
    timing: Timing = field(default_factory=Timing)
    environment: Mapping[str, str] = field(default_factory=dict)
    requirements: Requirements = field(default_factory=Requirements)
    extra_args: tuple[str, ...] = ()
    expect: Expect = field(default_factory=Expect)

    @property
    def served_name(self) -> str:
        """The model's name in requests: a local target is served under the profile's name."""
        return self.server.served_model_name or self.target.repo or self.name
