"""The two models: caches, batches and chunks change nothing, and checkpoints are read as they are."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from dflashctl.reference.arguments import parse
from dflashctl.reference.cache import KeyValueCache
from dflashctl.reference.errors import StartError
from dflashctl.reference.layers import Span, attend
from dflashctl.reference.load import load
from dflashctl.reference.log import Log
from dflashctl.reference.matrix import Matrix
from dflashctl.reference.request import Request, SamplingParams
from dflashctl.reference.weights import read_tensors

from .running import DRAFT, SPECULATIVE, TARGET, prompt

CLOSE = {"rtol": 1e-3, "atol": 1e-3}


def logits_of(target, tokens, parts):
    """The target's logits for ``tokens``, computed in ``parts`` pieces one after another."""
    cache, rows = KeyValueCache(target.stack.config), []
    for piece in np.array_split(np.array(tokens), parts):
        positions = np.arange(cache.length, cache.length + len(piece))
        span = Span(cache=cache, begin=0, end=len(piece))
        hidden, _ = target.forward(piece, positions, [span], ())
        cache.length += len(piece)
        rows.append(target.logits(hidden))
    return np.concatenate(rows)


@pytest.mark.parametrize("parts", [2, 5, 30])
def test_the_cache_gives_what_computing_at_once_gives(models, parts):
    tokens = models.tokenizer.encode(prompt())
    target = models.decoder.target
    np.testing.assert_allclose(logits_of(target, tokens, parts), logits_of(target, tokens, 1), **CLOSE)


def test_a_cache_that_must_grow_keeps_what_it_holds(models):
    tokens = (models.tokenizer.encode(prompt()) * 12)[:300]
    target = models.decoder.target
    np.testing.assert_allclose(logits_of(target, tokens, 40)[-1], logits_of(target, tokens, 1)[-1], **CLOSE)


def test_sequences_in_one_batch_do_not_see_each_other(models):
    target = models.decoder.target
    first, second = (
        np.array(models.tokenizer.encode(text)) for text in ("Ana has 12 apples.", "Ben buys pens")
    )
    caches = [KeyValueCache(target.stack.config) for _ in range(2)]
    spans = [
        Span(cache=caches[0], begin=0, end=len(first)),
        Span(cache=caches[1], begin=len(first), end=len(first) + len(second)),
    ]
    positions = np.concatenate([np.arange(len(first)), np.arange(len(second))])
    hidden, _ = target.forward(np.concatenate([first, second]), positions, spans, ())
    together = target.logits(hidden)
    np.testing.assert_allclose(together[: len(first)], logits_of(target, first, 1), **CLOSE)
    np.testing.assert_allclose(together[len(first) :], logits_of(target, second, 1), **CLOSE)


def test_features_are_the_outputs_of_the_named_layers_side_by_side(models):
    target = models.decoder.target
    tokens = np.array(models.tokenizer.encode(prompt()))
    found = []
    for layers in ((1, 2), (3,)):
        span = Span(cache=KeyValueCache(target.stack.config), begin=0, end=len(tokens))
        found.append(target.forward(tokens, np.arange(len(tokens)), [span], layers))
    (last, features), (_, final) = found
    assert features.shape == (len(tokens), 2 * target.stack.config.hidden_size)
    np.testing.assert_array_equal(final, last)


def test_attention_is_the_textbook_formula():
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((3, 4, 8), dtype=np.float32)
    keys, values = rng.standard_normal((2, 2, 5, 8), dtype=np.float32)
    for causal in (True, False):
        mixed = attend(queries, keys, values, causal=causal).reshape(3, 4, 8)
        for row in range(3):
            for head in range(4):
                seen = row + 3 if causal else 5
                scores = keys[head // 2, :seen] @ queries[row, head]
                weights = np.exp(scores - scores.max())
                expected = weights / weights.sum() @ values[head // 2, :seen]
                np.testing.assert_allclose(mixed[row, head], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(512, 256), (1536, 256), (256, 768), (1024, 256), (37, 256), (64, 20_000)])
@pytest.mark.parametrize("rows", [1, 2, 16, 40])
def test_a_matrix_multiplies_whatever_its_layout(shape, rows):
    rng = np.random.default_rng(1)
    weight = rng.standard_normal(shape, dtype=np.float32)
    x = rng.standard_normal((rows, shape[1]), dtype=np.float32)
    np.testing.assert_allclose(Matrix(weight)(x), x @ weight.T, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("context", [33, 40, 48])
def test_a_block_never_reaches_beyond_the_context(context):
    settings = parse(["--model-path", TARGET, "--context-length", str(context), *SPECULATIVE])
    small = load(settings, Log("error"))
    params = SamplingParams(max_new_tokens=500, temperature=0, ignore_eos=True)
    ids = small.tokenizer.encode(prompt())
    sequence = small.decoder.sequence(Request(rid="x", prompt_ids=ids, params=params), small.tokenizer)
    while not sequence.finish:
        for found in small.decoder.step([sequence]):
            sequence.add(found.tokens, found.logprobs)
    assert sequence.finish.kind == "length"
    assert len(ids) + len(sequence.output_ids) == context
    assert sequence.cache.length <= context


def test_numbers_of_each_type_are_read(tmp_path):
    values = np.array([1.5, -2.0, 0.15625], np.float32)
    bf16 = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    parts = {
        "b": ("BF16", bf16),
        "h": ("F16", values.astype("<f2").tobytes()),
        "f": ("F32", values.tobytes()),
    }
    write_safetensors(tmp_path / "x.safetensors", parts)
    for name, tensor in read_tensors(tmp_path).items():
        assert tensor.dtype == np.float32, name
        np.testing.assert_array_equal(tensor, values)


def test_a_number_type_that_is_not_read_is_named(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {"i": ("I8", b"abc")})
    with pytest.raises(StartError, match="'i' is I8"):
        read_tensors(tmp_path)


def test_a_broken_checkpoint_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"not a checkpoint at all")
    with pytest.raises(StartError, match="is not a safetensors file"):
        read_tensors(tmp_path)


def write_safetensors(path, parts):
    header, data = {}, b""
    for name, (kind, raw) in parts.items():
        header[name] = {"dtype": kind, "shape": [3], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def edited(tmp_path, source, **changes: object):
    """A copy of a model folder with another config.json."""
    folder = tmp_path / Path(source).name
    folder.mkdir()
    for file in Path(source).iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    config = json.loads((Path(source) / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "not 'LlamaForCausalLM'"),
        ({"attention_bias": True}, "attention_bias=True is beyond"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type='yarn'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        ({"hidden_size": 128}, "shape"),
        ({"num_hidden_layers": 5}, "no tensor 'model.layers.4."),
        ({"num_hidden_layers": "4"}, "num_hidden_layers must be a whole number"),
    ],
)
def test_a_target_beyond_the_engine_is_refused(tmp_path, changes, message):
    with pytest.raises(StartError, match=message):
        load(parse(["--model-path", edited(tmp_path, TARGET, **changes)]), Log("error"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, "DFlashDraftModel"),
        ({"dflash_config": None}, "not a DFlash drafter"),
        ({"dflash_config": {"mask_token_id": 3, "target_layer_ids": [1]}}, "fc.weight shape mismatch"),
        (
            {"dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 4]}},
            "do not fit a target of 4 layers",
        ),
        ({"vocab_size": 2048}, "trained for another target"),
        ({"max_position_embeddings": 2048}, "2048 positions"),
    ],
)
def test_a_draft_that_does_not_fit_is_refused(tmp_path, changes, message):
    draft = edited(tmp_path, DRAFT, **changes)
    arguments = ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", draft]
    with pytest.raises(StartError, match=message):
        load(parse(["--model-path", TARGET, *arguments]), Log("error"))
