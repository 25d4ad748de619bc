"""Data: what is known of published models before their files are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.engine import ModelFacts

if TYPE_CHECKING:
    from dflashctl.core.profile import ModelRef

KNOWN_MODELS: dict[str, ModelFacts] = {
    "moonshotai/Kimi-K3": ModelFacts(architecture="KimiK3ForConditionalGeneration"),
    "moonshotai/Kimi-K2.5": ModelFacts(architecture="KimiK25ForConditionalGeneration"),
    "moonshotai/Kimi-K2.6": ModelFacts(architecture="KimiK25ForConditionalGeneration"),
    "moonshotai/Kimi-K2.7-Code": ModelFacts(architecture="KimiK25ForConditionalGeneration"),
    "Qwen/Qwen3-4B": ModelFacts(architecture="Qwen3ForCausalLM"),
    "Qwen/Qwen3-8B": ModelFacts(architecture="Qwen3ForCausalLM"),
    "modal-labs/Kimi-K3-DFlash": ModelFacts(
        architecture="DFlashDraftModel",
        num_hidden_layers=6,
        target_layer_ids=(19, 37, 54, 66, 78, 90),
        mask_token_id=163592,
        sliding_window=4096,
    ),
    "z-lab/Kimi-K2.5-DFlash": ModelFacts(architecture="DFlashDraftModel", num_hidden_layers=6, block_size=8),
    "z-lab/Qwen3-8B-DFlash-b16": ModelFacts(architecture="DFlashDraftModel", block_size=16),
    "z-lab/Qwen3-4B-DFlash-b16": ModelFacts(architecture="DFlashDraftModel", block_size=16),
}


def facts_of(ref: ModelRef | None, read: ModelFacts | None) -> ModelFacts:
    """What was read from the model's config, else what is known of it by name, else nothing."""
    if read is not None:
        return read
    return KNOWN_MODELS.get(ref.repo or "", ModelFacts()) if ref is not None else ModelFacts()
