"""Models of the shipped profiles, for planning before their configs are on disk."""

from __future__ import annotations

from dataclasses import dataclass

from dflashctl.core.kv_geometry import Geometry, LinearState


@dataclass(frozen=True, kw_only=True)
class KnownModel:
    """`weights_bytes` is None where the profile's own figure is the only one."""

    geometry: Geometry
    weights_bytes: int | None = None


_KDA = LinearState(kind="kda", layers=69, k_heads=96, v_heads=96, k_dim=128, v_dim=128, conv_kernel=4)

# Targets: from the config.json of each repository, and the sum of the files' sizes. Drafter of Kimi-K2.5: from the
# shapes of its tensors. `estimated`: Kimi-K3's drafter publishes six layers of Qwen3-style attention, and its heads and
# size are taken to be those of Kimi-K2.5's, whose target has the same hidden size; Qwen3-8B's has five layers, taken to
# be shaped like its target's.
KNOWN_MODELS = {
    "moonshotai/Kimi-K3": KnownModel(
        geometry=Geometry(
            attention_layers=24, mla_dim=512 + 64, linear=_KDA, context_tokens=1 << 20, multimodal=True
        ),
        weights_bytes=1_560_936_091_448,
    ),
    "modal-labs/Kimi-K3-DFlash": KnownModel(
        geometry=Geometry(attention_layers=6, kv_heads=8, head_dim=128, v_head_dim=128, estimated=True),
        weights_bytes=6_958_000_000,
    ),
    "moonshotai/Kimi-K2.5": KnownModel(
        geometry=Geometry(attention_layers=61, mla_dim=512 + 64, context_tokens=1 << 18, multimodal=True)
    ),
    "z-lab/Kimi-K2.5-DFlash": KnownModel(
        geometry=Geometry(attention_layers=6, kv_heads=8, head_dim=128, v_head_dim=128),
        weights_bytes=6_958_000_000,
    ),
    "Qwen/Qwen3-8B": KnownModel(
        geometry=Geometry(
            attention_layers=36, kv_heads=8, head_dim=128, v_head_dim=128, context_tokens=40960
        ),
        weights_bytes=16_381_516_776,
    ),
    "z-lab/Qwen3-8B-DFlash-b16": KnownModel(
        geometry=Geometry(attention_layers=5, kv_heads=8, head_dim=128, v_head_dim=128, estimated=True),
        weights_bytes=2_097_000_000,
    ),
}
