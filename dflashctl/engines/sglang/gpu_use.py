"""GPU use: how many GPUs of this machine SGLang's parallel sizes take, and which numbers it gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.gpu_use import GpuUse
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.intent import PARTS, value_at
from dflashctl.engines.sglang.translate import last_wins, modernised
from dflashctl.engines.sglang.wish import wish
from dflashctl.engines.sglang.words import read_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dflashctl.core.engine import EngineBuild
    from dflashctl.core.profile import Profile
    from dflashctl.engines.sglang.wish import Wish


def gpu_use(profile: Profile, raw_args: tuple[str, ...], build: EngineBuild, /) -> GpuUse:
    """The GPUs that the profile with its raw arguments takes on this machine."""
    have = catalogue.of_build(build.release, build.options)
    given = read_words((*profile.extra_args, *raw_args), have, "").wishes
    wishes = last_wins(modernised(last_wins((*_parallel(profile), *given))))
    return use_of({one.flag: one.values for one in wishes})


def use_of(options: Mapping[str, tuple[str, ...]]) -> GpuUse:
    """The GPUs for options in the newest release's spelling.

    Each data-parallel replica has its own; attention data parallelism divides those of tensor parallelism
    (sglang 0.5.23: srt/managers/data_parallel_controller.py, `launch_dp_schedulers` and
    `launch_tensor_parallel_group`; srt/arg_groups/parallel_hook.py, `handle_deprecated_dp_attention`).
    """
    tensor, pipeline, nodes = (_size(options, flag) for flag in ("--tp-size", "--pp-size", "--nnodes"))
    replicas, step = (_size(options, flag) for flag in ("--dp-size", "--gpu-id-step"))
    pipeline_here = max(pipeline // nodes, 1)
    tensor_here = max(tensor // max(nodes // pipeline, 1), 1)
    last_replica = (replicas - 1) * tensor * pipeline * step
    last_rank = (pipeline_here - 1) * tensor_here + (tensor_here - 1) * step
    return GpuUse(
        count=replicas * pipeline_here * tensor_here,
        highest=_size(options, "--base-gpu-id", 0) + last_replica + last_rank,
    )


def _parallel(profile: Profile) -> Iterator[Wish]:
    for part in PARTS:
        if part.path.startswith("parallel."):
            yield wish(part.flag, str(value_at(profile, part.path)))


def _size(options: Mapping[str, tuple[str, ...]], flag: str, least: int = 1) -> int:
    """The number given; what is none, or too small, is refused elsewhere and counts as `least` here."""
    values = options.get(flag, ())
    try:
        return max(int(values[0]), least) if values else least
    except ValueError:
        return least
