"""Whether a config's lm_head is quantized, and that DFLASH is then refused on more than one GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.findings import Severity
from dflashctl.core.model_config import parse_config
from dflashctl.core.profile import Parallel
from dflashctl.engines.sglang import command
from tests.engines.asking import profile, request

SHAPE = {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 1, "num_hidden_layers": 1}
GROUP = {"weights": {"num_bits": 4}}


def facts(quant, **more):
    return parse_config({**SHAPE, "quantization_config": quant, **more}).facts


@pytest.mark.parametrize(
    ("quant", "quantized"),
    [
        (None, None),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": []}, True),
        ({"quant_method": "modelopt_fp4", "quant_algo": "NVFP4"}, True),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, False),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*lm_head*", "mtp*"]}, False),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["language_model.lm_head"]}, False),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["model.layers.0*"]}, True),
        ({"quant_algo": "FP8", "exclude_modules": ["lm_head"]}, False),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": []}, None),
        (
            {
                "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]},
                "quant_method": "modelopt",
            },
            False,
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {**GROUP, "targets": ["Linear"]}}},
            False,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {**GROUP, "targets": ["re:.*lm_head"]}},
            },
            True,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {**GROUP, "targets": ["lm_head"]}},
                "ignore": ["lm_head"],
            },
            False,
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:("]}}}, False),
        ({"quant_method": "fp8"}, False),
        ({"quant_method": "fp8", "modules_to_not_convert": []}, False),
        ({"quant_method": "gptq", "lm_head": True}, True),
        ({"quant_method": "awq", "lm_head": False}, False),
        ("not a section", None),
    ],
)
def test_what_a_config_says_of_its_head(quant, quantized):
    assert facts(quant).quantized_lm_head is quantized
    nested = {"architectures": ["X"], "text_config": {**SHAPE, "quantization_config": quant}}
    assert parse_config(nested).facts.quantized_lm_head is quantized


def test_a_head_that_is_the_embedding_is_dense():
    nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": []}
    assert facts(nvfp4, tie_word_embeddings=True).quantized_lm_head is False


@pytest.mark.parametrize(
    ("ignore", "tensor", "refused"), [([], 2, True), ([], 1, False), (["lm_head"], 2, False)]
)
def test_dflash_with_such_a_target_is_refused_on_several_gpus(ignore, tensor, refused):
    mine = replace(profile("qwen3-8b-h100"), parallel=Parallel(tensor=tensor))
    read = facts({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ignore})
    made = command(request("qwen3-8b-h100", "0.5.23", profile=mine, target_facts=read))
    errors = {finding.id for finding in made.findings if finding.severity is Severity.ERROR}
    assert ("lm_head_quantized" in errors) is refused
