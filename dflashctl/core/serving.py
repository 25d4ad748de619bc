"""Serving settings: what the planned arguments say about memory, read from the argument list itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FRACTION = ("--mem-fraction-static",)
_TENSOR = ("--tp-size", "--tensor-parallel-size", "--tp")
_PIPELINE = ("--pp-size", "--pipeline-parallel-size")
_DATA = ("--dp-size", "--data-parallel-size", "--dp")
_ATTENTION_DATA = ("--attn-dp-size", "--attention-data-parallel-size")
_DATA_IS_ATTENTIONS = "--enable-dp-attention"
_NODES = ("--nnodes",)
_CONTEXT = ("--context-length",)
_RUNNING = ("--max-running-requests",)
_TOKENS = ("--max-total-tokens",)
_KV_DTYPE = ("--kv-cache-dtype",)
_DRAFT_KV_DTYPE = ("--speculative-draft-kv-cache-dtype",)
_DRAFT_ATTENTION = ("--speculative-draft-attention-backend",)
_STATE_DTYPE = ("--mamba-ssm-dtype",)
_PAGE = ("--page-size",)
_BLOCK = ("--speculative-num-draft-tokens", "--speculative-dflash-block-size")
_RING = ("--linear-replayssm-cache-len",)
_REPLAY = ("--enable-linear-replayssm-spec", "--enable-gdn-replayssm-spec")
_HYBRID_RATIO = ("--mamba-full-memory-ratio",)
_HYBRID_SIZE = ("--max-mamba-cache-size",)
_ATTENTION = ("--attention-backend",)
_NO_RADIX = ("--disable-radix-cache",)
_DEFAULT_RUNNING_WITH_DRAFT = 48
_DEFAULT_RING = 16
# A longer number is out of every range, and its arithmetic out of a float's.
_MOST_DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class Serving:
    """None where the engine decides. `block_size` is None without speculation.

    `replicas` are independent copies of the server; `attention_data` groups divide the tensor-parallel GPUs, and
    attention, its caches and its states are spread over the GPUs of one group only. `nodes` share the ranks.
    """

    tensor: int = 1
    pipeline: int = 1
    replicas: int = 1
    attention_data: int = 1
    nodes: int = 1
    static_fraction: float | None = None
    context_tokens: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    kv_dtype: str | None = None
    draft_kv_dtype: str | None = None
    draft_attention: str | None = None
    state_dtype: str | None = None
    page_size: int = 1
    block_size: int | None = None
    replay_state: bool = False
    replay_length: int = _DEFAULT_RING
    hybrid_ratio: float = 0.9
    hybrid_slots: int | None = None
    radix_cache: bool = True

    @property
    def attention_tensor(self) -> int:
        """Over how many GPUs the heads of one request are spread."""
        return max(1, self.tensor // self.attention_data)

    @property
    def ranks(self) -> int:
        """How many GPUs of this node work."""
        return max(1, self.tensor * self.pipeline // self.nodes) * self.replicas


def serving(argv: Sequence[str], *, speculates: bool, block_size: int | None = None) -> Serving:
    """The settings in `argv`, the last of each option winning as in the engine's parser.

    `block_size` is the plan's, for drafts whose own config decides it. SGLang holds 48 running requests when a
    DFlash server names no number (arg_groups/speculative_hook.py, 0.5.23).
    """
    backend = _text(argv, _ATTENTION) or ""
    page = _int(argv, _PAGE) or (64 if backend in {"trtllm_mla", "trtllm_mha"} else 1)
    running = _int(argv, _RUNNING)
    data = _int(argv, _DATA) or 1
    shared = _DATA_IS_ATTENTIONS in argv
    return Serving(
        tensor=_int(argv, _TENSOR) or 1,
        pipeline=_int(argv, _PIPELINE) or 1,
        replicas=1 if shared else data,
        attention_data=_int(argv, _ATTENTION_DATA) or (data if shared else 1),
        nodes=_int(argv, _NODES) or 1,
        static_fraction=_float(argv, _FRACTION),
        context_tokens=_int(argv, _CONTEXT),
        max_running_requests=_DEFAULT_RUNNING_WITH_DRAFT if running is None and speculates else running,
        max_total_tokens=_int(argv, _TOKENS),
        kv_dtype=_text(argv, _KV_DTYPE),
        draft_kv_dtype=_text(argv, _DRAFT_KV_DTYPE),
        draft_attention=_text(argv, _DRAFT_ATTENTION),
        state_dtype=_text(argv, _STATE_DTYPE),
        page_size=page,
        block_size=(_int(argv, _BLOCK) or block_size or 16) if speculates else None,
        replay_state=any(flag in argv for flag in _REPLAY),
        replay_length=_int(argv, _RING) or _DEFAULT_RING,
        hybrid_ratio=_float(argv, _HYBRID_RATIO) or 0.9,
        hybrid_slots=_int(argv, _HYBRID_SIZE),
        radix_cache=not any(flag in argv for flag in _NO_RADIX),
    )


def _text(argv: Sequence[str], names: tuple[str, ...]) -> str | None:
    found = None
    for place, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else argv[place + 1] if place + 1 < len(argv) else None
    return found


def _int(argv: Sequence[str], names: tuple[str, ...]) -> int | None:
    text = _text(argv, names)
    known = text is not None and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text or 0) if known else None


def _float(argv: Sequence[str], names: tuple[str, ...]) -> float | None:
    """A finite number above 0; anything else is refused by the plan and left to the engine's default here."""
    text = _text(argv, names)
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) and number > 0 else None
