"""Situation: everything a rule may look at — release, machine, models, and the options that will really be given."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dflashctl.core.engine import ModelFacts
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.runs import within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.engines.sglang.catalogue import Catalogue

K3 = ("KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM")
KDA = (*K3, "KimiLinearForCausalLM", "Glm5NextForConditionalGeneration")
MLA = (
    *K3,
    "KimiK25ForConditionalGeneration",
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "GlmMoeDsaForCausalLM",
)
GDN = ("Qwen3NextForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration")
MULTIMODAL = ("KimiK3ForConditionalGeneration", "KimiK25ForConditionalGeneration")
DEFAULT_BLOCK = 16
_ATTENTION_FLAGS = ("--attention-backend", "--prefill-attention-backend", "--decode-attention-backend")
_TRUE = ("1", "true", "True", "yes", "on")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """`options` maps the newest release's spelling to the values given; `capabilities` are those of the GPUs, if known.

    A property that depends on something unknown is None, and no rule fires on None.
    """

    release: str
    have: Catalogue
    options: Mapping[str, tuple[str, ...]]
    environment: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[tuple[int, int], ...] = ()
    wants_dflash: bool = False
    target: ModelFacts = field(default_factory=ModelFacts)
    draft: ModelFacts = field(default_factory=ModelFacts)
    target_name: str = "the target"
    model_hooks: Mapping[str, tuple[str, ...]] | None = None

    def has(self, flag: str) -> bool:
        return flag in self.options

    def value(self, flag: str) -> str | None:
        """The first value given for `flag`."""
        values = self.options.get(flag)
        return values[0] if values else None

    def number(self, flag: str) -> float | None:
        """The given value as a number; None when it is not given or is no finite number."""
        value = self.value(flag)
        try:
            number = float(value) if value is not None else None
        except ValueError:
            return None
        return number if number is not None and math.isfinite(number) else None

    def default(self, flag: str) -> object:
        """What the release's own parser assumes for `flag`."""
        option = self.have.find(flag)
        return option.default if option else None

    def is_(self, flag: str, *values: str) -> bool:
        return self.value(flag) in values

    def among(self, since: str | None, until: str | None = None) -> bool:
        """Whether the release lies in since..until."""
        return within(self.release, since, until)

    def on(self, variable: str) -> bool:
        return self.environment.get(variable) in _TRUE

    @property
    def algorithm(self) -> str | None:
        value = self.value("--speculative-algorithm")
        return value.upper() if value else None

    @property
    def dflash(self) -> bool:
        return self.algorithm == "DFLASH"

    @property
    def speculative(self) -> bool:
        return self.algorithm is not None

    @property
    def given_block(self) -> int | None:
        number = self.number("--speculative-dflash-block-size")
        if number is None:
            number = self.number("--speculative-num-draft-tokens")
        return None if number is None else int(number)

    @property
    def block(self) -> int:
        """The block that will be used: given, else the draft's own, else SGLang's default of 16."""
        return next((b for b in (self.given_block, self.draft.block_size) if b is not None), DEFAULT_BLOCK)

    @property
    def window(self) -> int | None:
        number = self.number("--speculative-draft-window-size")
        return None if number is None else int(number)

    @property
    def ring(self) -> int:
        number = self.number("--linear-replayssm-cache-len")
        return int(number) if number is not None else DEFAULT_BLOCK

    @property
    def ring_needed(self) -> int:
        """The shortest power of two that is at least twice the block."""
        return 1 << (2 * self.block - 1).bit_length()

    @property
    def architecture(self) -> str | None:
        return self.target.architecture

    @property
    def is_k3(self) -> bool:
        return self.architecture in K3

    @property
    def is_kda(self) -> bool:
        return self.architecture in KDA

    @property
    def is_hybrid(self) -> bool:
        return self.is_kda or self.architecture in GDN

    @property
    def is_mla(self) -> bool:
        return self.architecture in MLA

    @property
    def is_multimodal(self) -> bool:
        return self.architecture in MULTIMODAL

    @cached_property
    def capability(self) -> tuple[int, int] | None:
        """The lowest compute capability among the GPUs."""
        return min(self.capabilities, default=None)

    @property
    def capability_text(self) -> str:
        return "unknown" if self.capability is None else f"{self.capability[0]}.{self.capability[1]}"

    @property
    def sm10x(self) -> bool | None:
        """B200, B300 and their kin; None when the GPUs are unknown."""
        return None if self.capability is None else self.capability[0] == 10  # noqa: PLR2004 - compute capability

    @property
    def blackwell(self) -> bool | None:
        """Any Blackwell, workstation cards (12.x) included."""
        return None if self.capability is None else self.capability[0] in (10, 11, 12)

    @property
    def attention(self) -> str | None:
        """The target's backend, K3's own default on SM10x included."""
        given = self.value("--attention-backend")
        return given or ("trtllm_mla" if self.k3_attention_default else None)

    @property
    def k3_attention_default(self) -> bool:
        """Whether Kimi-K3 chooses trtllm_mla itself: on SM10x, with no backend given and no context parallelism."""
        given = any(self.has(flag) for flag in _ATTENTION_FLAGS)
        return self.is_k3 and bool(self.sm10x) and not given and (self.number("--dcp-size") or 1) == 1

    @property
    def prefill_attention(self) -> str | None:
        return self.value("--prefill-attention-backend") or self.attention

    @property
    def decode_attention(self) -> str | None:
        return self.value("--decode-attention-backend") or self.attention

    @property
    def attentions(self) -> tuple[str | None, ...]:
        return (self.attention, self.prefill_attention, self.decode_attention)

    @property
    def draft_attention(self) -> str | None:
        return self.value("--speculative-draft-attention-backend")

    @property
    def draft_asked(self) -> str | None:
        """The draft's backend that is asked for; without one it inherits the target's for prefill."""
        return self.draft_attention or self.prefill_attention

    @property
    def draft_all_sliding(self) -> bool | None:
        """Whether trtllm_mha survives as the draft's backend; None when the draft's config is unknown."""
        if self.draft.is_causal is True:
            return True
        layers = self.draft.layer_types
        if layers is None:
            return None if self.draft.hidden_size is None else False
        return set(layers) == {"sliding_attention"} and len(layers) == (
            self.draft.num_hidden_layers or len(layers)
        )

    @property
    def linear_decode(self) -> str:
        return self.value("--linear-attn-decode-backend") or self.value("--linear-attn-backend") or "triton"

    @property
    def linear_verify(self) -> str | None:
        """The verify backend that is asked for, K3's own default included."""
        given = self.value("--linear-attn-verify-backend")
        return given or ("nv_cutedsl" if self.is_k3 and self.speculative and self.among("0.5.17") else None)

    @property
    def replayssm(self) -> bool:
        return self.has("--enable-linear-replayssm-spec")

    @property
    def attention_dp(self) -> bool:
        return self.has("--enable-dp-attention") or (self.number("--attn-dp-size") or 1) > 1

    @property
    def overlap(self) -> bool:
        return not self.has("--disable-overlap-schedule") and self.among("0.5.14")

    @property
    def page_size(self) -> int | None:
        """The page size that is given; None also for one below 1, which is refused elsewhere."""
        number = self.number("--page-size")
        return int(number) if number is not None and number >= 1 else None

    @property
    def radix(self) -> bool:
        return not self.has("--disable-radix-cache")

    @property
    def state_strategy(self) -> str:
        """How linear-attention states are cached: as given, else what `auto` resolves to."""
        given = self.value("--mamba-radix-cache-strategy") or "auto"
        if given != "auto":
            return given
        paged = (self.page_size or 1) > 1 or "trtllm_mla" in self.attentions
        base_is_triton = (self.value("--linear-attn-backend") or "triton") == "triton"
        return "extra_buffer" if (self.overlap or paged) and base_is_triton else "no_buffer"

    @property
    def hook_releases(self) -> str:
        return catalogue.span(catalogue.releases_with_hook(self.architecture or ""))

    def hooks_of(self, architecture: str | None) -> tuple[str, ...] | None:
        """How that model class hands out hidden states in this build; None when the build has no such class."""
        if self.model_hooks is not None:
            return self.model_hooks.get(architecture or "")
        return catalogue.capture_hooks(architecture or "", self.have.release)

    @property
    def hooks(self) -> tuple[str, ...] | None:
        return self.hooks_of(self.architecture)
