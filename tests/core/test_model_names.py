"""Two servers' names for one model."""

from __future__ import annotations

import pytest

from dflashctl.core.model_names import Likeness, likeness

CACHE = "/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/" + "a" * 40


@pytest.mark.parametrize(
    ("one", "other", "like"),
    [
        (("Qwen/Qwen3-8B",), ("Qwen/Qwen3-8B",), Likeness.SAME),
        (("mine", "/models/a"), ("yours", "/models/a"), Likeness.SAME),
        (("mine",), (), Likeness.SAME),
        ((), ("yours",), Likeness.SAME),
        (("Qwen/Qwen3-8B",), ("qwen3-8b",), Likeness.ALIKE),
        (("Qwen/Qwen3-8B",), ("/models/Qwen3-8B/",), Likeness.ALIKE),
        (("Qwen/Qwen3-8B",), (CACHE,), Likeness.ALIKE),
        (("Qwen/Qwen3-8B",), ("Qwen/Qwen3-8B-FP8",), Likeness.OTHER),
        (("z-lab/model",), ("modal-labs/model",), Likeness.OTHER),
        (("z-lab/Qwen3-8B",), (CACHE,), Likeness.OTHER),
        (("dflash-tiny",), ("foreign",), Likeness.OTHER),
    ],
)
def test_names_of_one_model_are_told_from_names_of_two(one, other, like):
    assert likeness(one, other) is like
    assert likeness(other, one) is like
