"""The CUDA that an image's name tells."""

from __future__ import annotations

import pytest

from dflashctl.core.image_cuda import image_cuda


@pytest.mark.parametrize(
    ("image", "cuda"),
    [
        ("lmsysorg/sglang:v0.5.22-cu130", "13.0"),
        ("lmsysorg/sglang:v0.5.22-cu129", "12.9"),
        ("lmsysorg/sglang:v0.5.22-cu130-runtime", "13.0"),
        ("lmsysorg/sglang:latest-cu130-runtime", "13.0"),
        ("lmsysorg/sglang:dev-cu13", "13.0"),
        ("lmsysorg/sglang:kimi-k3-cu12", "12.0"),
        ("lmsysorg/sglang:v0.5.22", "13.0"),
        ("lmsysorg/sglang:v0.5.11-runtime", "13.0"),
        ("lmsysorg/sglang:v0.5.10", None),
        ("lmsysorg/sglang:latest", None),
        ("nvidia/cuda:13.0.1-base", None),
        ("registry.example/cu-129:1", None),
        ("registry.example/own@sha256:cu1300000000", None),
        ("", None),
    ],
)
def test_cuda_by_name(image, cuda):
    assert image_cuda(image) == cuda
