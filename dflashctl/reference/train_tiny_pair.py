"""Remake the tiny pair: train a small Qwen3 target, then its DFlash drafter, on made-up problems.

``python -m dflashctl.reference.train_tiny_pair OUT_DIR`` writes OUT_DIR/target and OUT_DIR/draft. It needs
torch, transformers, tokenizers and safetensors, and took seven minutes on one H200. Training is limited by
time, so two runs differ; the shipped weights are one such run with seed 0.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

from dflashctl.reference.train_corpus import (
    EPS,
    HEAD_DIM,
    KV_HEADS,
    POSITIONS,
    ROPE_THETA,
    VOCABULARY,
    Options,
    batches,
    optimise,
    train_tokenizer,
)
from dflashctl.reference.train_draft import save_draft, train_draft


def train_target(options: Options, tokenizer: Any, rng: random.Random) -> Any:
    """Return the trained target in bfloat16."""
    import torch
    from torch.nn.functional import cross_entropy
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=options.hidden,
        intermediate_size=options.hidden * 3,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        rms_norm_eps=EPS,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        rope_theta=ROPE_THETA,
    )
    model = Qwen3ForCausalLM(config).to(options.device)
    data = batches(tokenizer, rng, options.batch, options.length + 1, options.device)

    def loss() -> Any:
        tokens = next(data)
        with torch.autocast(options.device, torch.bfloat16):
            logits = model(tokens[:, :-1]).logits.float()
        return cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))

    optimise(model.parameters(), options.target_s, 2e-3, loss, "target")
    return model.to(torch.bfloat16).eval()


def parse() -> Options:
    """Read the command line."""
    import torch

    parser = argparse.ArgumentParser(description="Train the tiny target and its DFlash drafter.")
    parser.add_argument("out", type=Path, help="where target/ and draft/ go")
    parser.add_argument("--minutes-target", type=float, default=4)
    parser.add_argument("--minutes-draft", type=float, default=3)
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    return Options(
        out=arguments.out,
        device="cuda" if torch.cuda.is_available() else "cpu",
        target_s=arguments.minutes_target * 60,
        draft_s=arguments.minutes_draft * 60,
        block=arguments.block,
        hidden=arguments.hidden,
        layers=arguments.layers,
        length=arguments.seq,
        batch=arguments.batch,
    )


def main() -> None:
    """Train and save both."""
    import torch

    options, rng = parse(), random.Random(0)  # noqa: S311 - a corpus, not a secret
    torch.manual_seed(0)
    tokenizer = train_tokenizer(rng)
    tokenizer.save_pretrained(options.out / "target")
    target = train_target(options, tokenizer, rng)
    target.save_pretrained(options.out / "target")
    draft = train_draft(options, tokenizer, target, rng)
    save_draft(options, tokenizer, draft, options.out / "draft")


if __name__ == "__main__":
    main()
