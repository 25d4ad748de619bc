"""BenchOptions: what `bench` is asked on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

_Item = TypeVar("_Item", int, float, str)


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Floors: exit 1 below them. `max_regression` is a share (0.05) against the runs in `against`."""

    min_accept_length: float | None = None
    max_regression: float | None = None
    against: str | None = None
    expect: bool = True
    expect_tolerance: float = 0.02


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """None or empty: not given, so that the profile, the workload or the server decides.

    `sampling` is "greedy", "recommended" (the server's own defaults) or None for the profile's published
    setting. `sweep` are "key=a,b" words, keys being block_size, concurrency, rate or profile paths.
    """

    name: str | None = None
    url: str | None = None
    profile: str | None = None
    workloads: tuple[str, ...] = ()
    prompts: str | None = None
    count: int | None = None
    concurrency: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    api: str = "chat"
    tokenizer: str | None = None
    max_tokens: int | None = None
    sampling: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking: bool | None = None
    ignore_eos: bool = False
    seed: int = 42
    warm_up: int | None = None
    input_tokens: int | None = None
    prefix_tokens: int | None = None
    groups: int = 1
    sweep: tuple[str, ...] = ()
    baseline: bool = True
    speculation: bool | None = None
    flush_cache: bool | None = None
    slo_ttft_ms: float | None = None
    slo_tpot_ms: float | None = None
    slo_e2e_ms: float | None = None
    gates: Gates = Gates()
    output: str | None = None
    records: bool = False
    csv: str | None = None
    jsonl: str | None = None
    processes: int | None = None
    allow_slow_client: bool = False
    timeout_s: float = 1800.0
    max_duration_s: float | None = None
    api_key_env: str | None = None
    offline: bool = False


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The axes of a sweep: `servers` need another server for each value, the others do not."""

    block_sizes: tuple[int, ...] = ()
    concurrency: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    servers: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def restarts(self) -> bool:
        return bool(self.block_sizes or self.servers)


def name_and_sweep(words: tuple[str, ...], sweep: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The instance and all axes: a plain word with "=" can be no name, so it goes on with the list of a `--sweep`."""
    names = [word for word in words if "=" not in word]
    axes = tuple(word for word in words if "=" in word)
    if len(names) > 1:
        raise UsageProblem(
            f"several instances are named: {', '.join(names)}", hint="name one of them, or --url URL"
        )
    if axes and not sweep:
        raise UsageProblem(f"{axes[0]!r} is no instance", hint=f"--sweep {' '.join(axes)}")
    return (names[0] if names else None), (*sweep, *axes)


def parse_sweep(words: tuple[str, ...]) -> Sweep:
    """The axes in "block_size=8,16 concurrency=1,8" words; UsageProblem quotes the first bad one.

    Values of a key that is named twice are put together, each of them once, in the order in which they came.
    """
    axes: dict[str, list[str]] = {}
    for word in (part for group in words for part in group.split()):
        key, equals, listed = word.partition("=")
        items = [item for item in listed.split(",") if item]
        if not equals or not key or not items:
            raise UsageProblem(f"{word!r} is no sweep", hint="--sweep block_size=8,16 concurrency=1,8,32")
        if key not in {"block_size", "concurrency", "rate", "rates"} and "." not in key:
            raise UsageProblem(
                f"cannot sweep {key!r}",
                hint="block_size, concurrency, rate, or a profile path such as memory.page_size",
            )
        axes.setdefault("rate" if key == "rates" else key, []).extend(items)
    return Sweep(
        block_sizes=_once(_whole(item, "block_size") for item in axes.get("block_size", ())),
        concurrency=_once(_whole(item, "concurrency") for item in axes.get("concurrency", ())),
        rates=_once(_positive(item) for item in axes.get("rate", ())),
        servers=tuple((key, _once(items)) for key, items in axes.items() if "." in key),
    )


def _once(items: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(items))


def _whole(word: str, key: str) -> int:
    if not (word.isascii() and word.isdigit()) or int(word) < 1:
        raise UsageProblem(f"{key} {word!r} is not a whole number above 0")
    return int(word)


def _positive(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageProblem(f"rate {word!r} is not a number above 0")
    return number
