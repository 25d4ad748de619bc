"""GPU use: how many GPUs the parallel sizes take, whatever spelling they come in, and which numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.engine import EngineBuild
from dflashctl.core.profile import Parallel
from dflashctl.engines.sglang import catalogue, gpu_use
from dflashctl.engines.sglang.from_command import drafted
from dflashctl.engines.sglang.paste import read_pasted

from .asking import profile

CASES = [
    # raw arguments, GPUs, highest number
    ("", 1, 0),
    ("--tp 8", 8, 7),
    ("--tp-size 2 --pp-size 4", 8, 7),
    ("--dp-size 2", 2, 1),
    ("--tp-size 4 --data-parallel-size 2", 8, 7),
    ("--tp-size 8 --dp-size 8 --enable-dp-attention", 8, 7),
    ("--tp-size 8 --dp-size 8 --enable-dp-attention --enable-dp-lm-head", 8, 7),
    ("--tp-size 16 --nnodes 2 --node-rank 1", 8, 7),
    ("--tp-size 8 --pp-size 2 --nnodes 2", 8, 7),
    ("--tp-size 8 --pp-size 2 --nnodes 4", 4, 3),
    ("--base-gpu-id 4 --tp-size 4", 4, 7),
    ("--gpu-id-step 2 --tp-size 4", 4, 6),
    ("--gpu-id-step 2 --tp-size 2 --dp-size 2", 4, 6),
    ("--tp-size x", 1, 0),
    ("--tp-size -8", 1, 0),
]


@pytest.mark.parametrize("release", ["0.5.9", "0.5.13", "0.5.21", "0.5.23"])
@pytest.mark.parametrize(("raw", "count", "highest"), CASES)
def test_gpus_by_arguments(raw, count, highest, release):
    used = gpu_use(profile("qwen3-8b-h100"), tuple(raw.split()), EngineBuild(release=release))
    assert (used.count, used.highest) == (count, highest)


def test_attention_data_parallelism_in_its_new_spelling():
    used = gpu_use(
        profile("qwen3-8b-h100"), ("--tp-size", "8", "--attn-dp-size", "8"), EngineBuild(release="0.5.23")
    )
    assert used.count == 8


@pytest.mark.parametrize(
    ("data", "raw", "count"),
    [(2, (), 2), (4, ("--dp-size", "2"), 2), (4, ("--dp-size", "2", "--enable-dp-attention"), 1)],
)
def test_a_raw_argument_replaces_the_profile_s_size(data, raw, count):
    mine = replace(profile("qwen3-8b-h100"), parallel=Parallel(data=data))
    assert gpu_use(mine, raw, EngineBuild(release="0.5.23")).count == count


@pytest.mark.parametrize("release", [catalogue.releases()[0], "0.5.21", catalogue.newest()])
@pytest.mark.parametrize(
    ("raw", "count", "_highest"), [case for case in CASES if case[0].startswith("--tp-size ")]
)
def test_a_profile_made_from_a_command_requires_the_gpus_of_the_command(raw, count, _highest, release):
    if "x" in raw or "-8" in raw:
        return
    text = f"sglang serve a/b --speculative-algorithm DFLASH --speculative-draft-model-path c/d {raw}"
    assert drafted(read_pasted(text), release).fields["requirements.gpus"] == count
