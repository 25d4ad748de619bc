"""What a run was and where: the setting, the samples, the GPUs meanwhile, and the provenance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Setting:
    """All that decides what is asked. `temperature` and `top_p` None: the server's own defaults.

    `thinking` None: the template's own default. `speculation` None: the server does not say.
    `plain`: speculation was left out on purpose, by --no-speculation or as a sweep's baseline.
    `prompts_unlike`: what makes these prompts others than those that figures of this data set were published for.
    """

    dataset: str
    api: str
    speculation: bool | None
    block_size: int | None
    concurrency: int | None
    request_rate: float | None
    max_tokens: int
    temperature: float | None
    top_p: float | None
    thinking: bool | None
    ignore_eos: bool
    seed: int
    prompts: int
    prompts_hash: str
    turns: int = 1
    warm_up: int = 0
    cache_flushed: bool = False
    characters_per_token: float | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    prompts_unlike: tuple[str, ...] = ()
    plain: bool = False

    @property
    def label(self) -> str:
        """What tells this run from the others of one table."""
        parts = [self.dataset]
        if self.speculation is False:
            parts.append("no speculation")
        elif self.block_size:
            parts.append(f"block {self.block_size}")
        if self.request_rate is not None:
            parts.append(f"{self.request_rate:g}/s")
        elif self.concurrency is not None:
            parts.append(f"c{self.concurrency}")
        return ", ".join([*parts, *self.settings])

    @property
    def settings(self) -> tuple[str, ...]:
        """The swept profile paths with their values, by their last word where that is no other path's too."""
        lasts = [path.rpartition(".")[2] for path, _ in self.overrides]
        names = [
            last if lasts.count(last) == 1 else path
            for last, (path, _) in zip(lasts, self.overrides, strict=True)
        ]
        return tuple(f"{name} {value}" for name, (_, value) in zip(names, self.overrides, strict=True))


@dataclass(frozen=True, kw_only=True)
class Samples:
    """One value a request, in the order of the prompts; None where a request failed or has no such figure."""

    ids: tuple[str, ...]
    completion_tokens: tuple[int | None, ...]
    verify_steps: tuple[int | None, ...]
    ttft_ms: tuple[float | None, ...]
    tpot_ms: tuple[float | None, ...]
    e2e_ms: tuple[float | None, ...]
    tokens_per_s: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One GPU at one moment, `at_s` since the run began."""

    at_s: float
    index: int
    power_w: float | None = None
    clock_sm_mhz: int | None = None
    temperature_c: int | None = None
    utilization_percent: int | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GpuInfo:
    """A GPU of the machine that the client ran on; a process is "pid name".

    `others` are the processes that are not the server's own, None when nobody knows which ones are its own.
    """

    index: int
    name: str
    uuid: str
    power_limit_w: float | None = None
    clock_sm_max_mhz: int | None = None
    processes: tuple[str, ...] = ()
    others: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelIdentity:
    """`revision` is the commit, None when nobody said it."""

    name: str | None = None
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the figures come from: enough to tell whether two results can be compared."""

    started_at: str
    dflashctl_version: str
    url: str
    instance: str | None = None
    profile: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    target: ModelIdentity = ModelIdentity()
    draft: ModelIdentity = ModelIdentity()
    template_hash: str | None = None
    speculative_algorithm: str | None = None
    block_size: int | None = None
    flags: tuple[tuple[str, str], ...] = ()
    plan_fingerprint: str | None = None
    gpus: tuple[GpuInfo, ...] = ()
    driver: str | None = None
