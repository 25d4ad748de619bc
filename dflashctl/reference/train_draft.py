"""Train the DFlash drafter of the tiny pair, in torch, and write its checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dflashctl.reference.train_corpus import (
    ANCHORS,
    DRAFT_LAYERS,
    EPS,
    HEAD_DIM,
    KV_HEADS,
    POSITIONS,
    ROPE_THETA,
    SPECIAL,
    VOCABULARY,
    batches,
    optimise,
)

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from dflashctl.reference.train_corpus import Options


def new_draft(options: Options) -> dict[str, Any]:
    """Return the drafter's untrained parameters under their checkpoint names."""
    import torch

    hidden, inner, heads = options.hidden, options.hidden * 3, options.heads
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(options.target_layer_ids) * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for layer in range(DRAFT_LAYERS):
        shapes |= {
            f"layers.{layer}.input_layernorm.weight": (hidden,),
            f"layers.{layer}.self_attn.q_proj.weight": (heads * HEAD_DIM, hidden),
            f"layers.{layer}.self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, hidden),
            f"layers.{layer}.self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, hidden),
            f"layers.{layer}.self_attn.o_proj.weight": (hidden, heads * HEAD_DIM),
            f"layers.{layer}.self_attn.q_norm.weight": (HEAD_DIM,),
            f"layers.{layer}.self_attn.k_norm.weight": (HEAD_DIM,),
            f"layers.{layer}.post_attention_layernorm.weight": (hidden,),
            f"layers.{layer}.mlp.gate_proj.weight": (inner, hidden),
            f"layers.{layer}.mlp.up_proj.weight": (inner, hidden),
            f"layers.{layer}.mlp.down_proj.weight": (hidden, inner),
        }
    made = {}
    for name, shape in shapes.items():
        value = torch.ones(shape) if len(shape) == 1 else torch.empty(shape).uniform_(-1, 1) / shape[1] ** 0.5
        made[name] = value.to(options.device).requires_grad_()
    return made


def draft_forward(
    draft: dict[str, Any], context: Any, block: Any, context_at: Any, block_at: Any, mask: Any
) -> Any:
    """Return the drafter's last hidden states of ``block`` [B, T, H], given ``context`` [B, S, H].

    ``context_at`` and ``block_at`` are the positions, ``mask`` [B, 1, T, S + T] tells who sees whom.
    """
    import torch
    from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

    def norm(x: Any, name: str) -> Any:
        return rms_norm(x, (x.shape[-1],), draft[name], EPS)

    def heads(x: Any, name: str) -> Any:
        projected = linear(x, draft[name])
        return projected.view(*x.shape[:2], -1, HEAD_DIM)

    every = torch.cat([context_at, block_at], 1)
    x = block
    for layer in range(DRAFT_LAYERS):
        at = f"layers.{layer}."
        normed = norm(x, f"{at}input_layernorm.weight")
        seen = torch.cat([context, normed], 1)
        query = norm(heads(normed, f"{at}self_attn.q_proj.weight"), f"{at}self_attn.q_norm.weight")
        key = norm(heads(seen, f"{at}self_attn.k_proj.weight"), f"{at}self_attn.k_norm.weight")
        value = heads(seen, f"{at}self_attn.v_proj.weight")
        mixed = scaled_dot_product_attention(
            rotate(query, block_at).transpose(1, 2),
            rotate(key, every).transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask,
            enable_gqa=True,
        )
        mixed = mixed.transpose(1, 2).reshape(*x.shape[:2], -1)
        x = x + linear(mixed, draft[f"{at}self_attn.o_proj.weight"])
        normed = norm(x, f"{at}post_attention_layernorm.weight")
        gated = silu(linear(normed, draft[f"{at}mlp.gate_proj.weight"]))
        gated = gated * linear(normed, draft[f"{at}mlp.up_proj.weight"])
        x = x + linear(gated, draft[f"{at}mlp.down_proj.weight"])
    return norm(x, "norm.weight")


def rotate(x: Any, positions: Any) -> Any:
    """Apply RoPE to ``x`` [B, T, heads, D] at ``positions`` [B, T]."""
    import torch

    inverse = ROPE_THETA ** -(torch.arange(0, HEAD_DIM, 2, device=x.device).float() / HEAD_DIM)
    angle = positions[..., None, None] * inverse
    cos, sin, half = angle.cos(), angle.sin(), HEAD_DIM // 2
    left, right = x[..., :half], x[..., half:]
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1).to(x.dtype)


def train_draft(options: Options, tokenizer: Any, target: Any, rng: random.Random) -> dict[str, Any]:
    """Return the trained drafter: each of 16 random anchors a sequence opens a block of masks to fill."""
    import torch
    from torch.nn.functional import cross_entropy, embedding, linear, rms_norm

    device, length, size = options.device, options.length, options.block
    draft, mask_id = new_draft(options), tokenizer.convert_tokens_to_ids(SPECIAL[3])
    embed, head = target.model.embed_tokens.weight.float(), target.lm_head.weight.float()
    data = batches(tokenizer, rng, max(1, options.batch // 2), length, device)
    weight = torch.exp(-torch.arange(size - 1, device=device).float() / 7)  # early positions matter more
    owner = torch.arange(ANCHORS, device=device).repeat_interleave(size)
    at = torch.arange(length, device=device)

    def loss() -> Any:
        tokens = next(data)
        rows = len(tokens)
        with torch.no_grad():
            states = target(tokens, output_hidden_states=True).hidden_states
            features = torch.cat([states[layer + 1] for layer in options.target_layer_ids], -1).float()
        anchors = torch.randint(8, length - size, (rows, ANCHORS), device=device)
        positions = (anchors[..., None] + torch.arange(size, device=device)).view(rows, -1)
        wanted = tokens.gather(1, positions).view(rows, ANCHORS, size)
        blocks = torch.full_like(wanted, mask_id)
        blocks[..., 0] = wanted[..., 0]
        before = at < anchors.repeat_interleave(size, 1)[..., None]
        inside = (owner[:, None] == owner).expand(rows, -1, -1)
        with torch.autocast(device, torch.bfloat16):
            context = linear(features, draft["fc.weight"])
            context = rms_norm(context, (options.hidden,), draft["hidden_norm.weight"], EPS)
            block = embedding(blocks.view(rows, -1), embed)
            mask = torch.cat([before, inside], -1)[:, None]
            hidden = draft_forward(draft, context, block, at.expand(rows, -1), positions, mask)
            logits = linear(hidden.view(rows, ANCHORS, size, -1)[..., 1:, :], head)
        flat = cross_entropy(
            logits.float().reshape(-1, VOCABULARY), wanted[..., 1:].reshape(-1), reduction="none"
        )
        return (flat.view(rows, ANCHORS, -1) * weight).sum() / (weight.sum() * rows * ANCHORS)

    optimise(draft.values(), options.draft_s, 1.5e-3, loss, "draft")
    return draft


def save_draft(options: Options, tokenizer: Any, draft: dict[str, Any], folder: Path) -> None:
    """Write the drafter's weights, its config.json and the tokenizer."""
    import torch
    from safetensors.torch import save_file

    weights = {name: value.detach().to(torch.bfloat16).contiguous() for name, value in draft.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": options.hidden,
        "intermediate_size": options.hidden * 3,
        "num_hidden_layers": DRAFT_LAYERS,
        "num_attention_heads": options.heads,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": EPS,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "block_size": options.block,
        "num_target_layers": options.layers,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "dflash_config": {
            "mask_token_id": tokenizer.convert_tokens_to_ids(SPECIAL[3]),
            "target_layer_ids": options.target_layer_ids,
        },
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    tokenizer.save_pretrained(folder)
