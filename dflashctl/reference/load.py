"""Load both models and the tokenizer, saying so in the log lines that SGLang writes at the same stages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.reference.arguments import resolve_block_size
from dflashctl.reference.config import DraftConfig, draft_config, model_config
from dflashctl.reference.decode import Decoder, Speculation
from dflashctl.reference.draft import load_draft
from dflashctl.reference.errors import StartError
from dflashctl.reference.qwen3 import Target, load_target
from dflashctl.reference.tokenizer import Tokenizer
from dflashctl.reference.weights import read_json, read_tensors

if TYPE_CHECKING:
    from dflashctl.reference.arguments import Settings
    from dflashctl.reference.config import ModelConfig
    from dflashctl.reference.log import Log


@dataclass(frozen=True, kw_only=True)
class Models:
    """Everything that is computed with, and the numbers that the server reports of it."""

    tokenizer: Tokenizer
    decoder: Decoder
    config: dict[str, Any]  # the target's config.json
    context_length: int
    block_size: int | None
    capacity_tokens: int


def load(settings: Settings, log: Log) -> Models:
    """Load what ``settings`` name. Raises StartError when they cannot be served."""
    folder = Path(settings.model_path)
    raw = read_json(folder, "config.json")
    config = model_config(raw, "Qwen3ForCausalLM")
    context = _context_length(settings, config)
    plan = _draft_plan(settings, context)
    tokenizer = Tokenizer(Path(settings.tokenizer_path), config.eos_token_ids)
    log.say("Load weight begin.")
    begin = time.monotonic()
    target = load_target(config, read_tensors(folder), context)
    log.say(f"Load weight end. elapsed={time.monotonic() - begin:.2f} s, type={config.architecture}")
    speculation = None
    if plan is not None:
        speculation = _load_draft(settings, plan, target, context, log)
        token = tokenizer.token(plan[0].mask_token_id)
        mask = plan[0].mask_token_id
        log.say(f"DFLASH draft runner ready. mask_token={token}, mask_token_id={mask}")
    capacity = settings.max_running_requests * context
    _log_pools(config, plan, capacity, log)
    log.say(
        f"max_total_num_tokens={capacity}, chunked_prefill_size={settings.chunked_prefill_size}, "
        f"max_running_requests={settings.max_running_requests}, context_len={context}"
    )
    return Models(
        tokenizer=tokenizer,
        decoder=Decoder(
            target=target,
            speculation=speculation,
            context_length=context,
            chunk=settings.chunked_prefill_size,
        ),
        config=raw,
        context_length=context,
        block_size=None if plan is None else plan[1],
        capacity_tokens=capacity,
    )


def _context_length(settings: Settings, config: ModelConfig) -> int:
    asked = settings.context_length
    if asked is not None and asked > config.max_positions:
        raise StartError(
            f"--context-length {asked} is above the {config.max_positions} positions of {settings.model_path!r}"
        )
    return asked or config.max_positions


def _draft_plan(settings: Settings, context: int) -> tuple[DraftConfig, int] | None:
    """Return the drafter's config and the block size, checked before any weight is read."""
    if settings.speculative_draft_model_path is None:
        return None
    config = draft_config(read_json(Path(settings.speculative_draft_model_path), "config.json"))
    if context > config.model.max_positions:
        raise StartError(
            f"the draft has {config.model.max_positions} positions, fewer than the context's {context}"
        )
    size = resolve_block_size(
        settings.speculative_dflash_block_size, config.block_size, settings.speculative_draft_window_size
    )
    return config, size


def _load_draft(
    settings: Settings, plan: tuple[DraftConfig, int], target: Target, context: int, log: Log
) -> Speculation:
    config, size = plan
    window = settings.speculative_draft_window_size
    log.say("Load weight begin.")
    begin = time.monotonic()
    tensors = read_tensors(Path(settings.speculative_draft_model_path or ""))
    draft = load_draft(config, tensors, target, context)
    architecture = config.model.architecture
    log.say(f"Load weight end. elapsed={time.monotonic() - begin:.2f} s, type={architecture}")
    if size != config.block_size:
        log.caution(
            f"DFLASH block size mismatch: using speculative_num_draft_tokens={size} "
            f"but draft config block_size={config.block_size}."
        )
    log.say(
        f"Initialized DFLASH draft runner. attention_backend=numpy, model={architecture}, "
        f"block_size={size}, draft_window_size={window}, compact_cache=False"
    )
    return Speculation(draft=draft, block_size=size, window=window)


def _log_pools(config: ModelConfig, plan: tuple[DraftConfig, int] | None, capacity: int, log: Log) -> None:
    """Say how large the caches can grow; each request's are allocated as it needs them."""
    for model in (config, *([plan[0].model] if plan else [])):
        size_gb = capacity * model.layers * model.kv_heads * model.head_dim * 4 / (1 << 30)
        log.say(
            f"KV Cache is allocated. dtype: float32, #tokens: {capacity}, "
            f"K size: {size_gb:.2f} GB, V size: {size_gb:.2f} GB"
        )
        log.say("Memory pool end.")
