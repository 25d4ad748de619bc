"""Data: option spellings that mean the same in different SGLang releases, and what absent options and values become."""

from __future__ import annotations

from dataclasses import dataclass

SAME = "*"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """An option with a literal value, with whatever values it has (`SAME`), or as a switch (None)."""

    flag: str
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """`old` and `new` mean the same; the new side is the newest release's."""

    old: tuple[Piece, ...]
    new: tuple[Piece, ...]
    reason: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ValueChange:
    """`value` of `flag` becomes `to` where the release does not know it; None drops the option."""

    flag: str
    value: str
    to: str | None
    effect: str


@dataclass(frozen=True, kw_only=True)
class Absence:
    """An option that may be dropped where the release does not have it, and what then runs."""

    flag: str
    effect: str


def _renamed(old: str, new: str, where: str, *, switch: bool = False) -> Equivalent:
    value = None if switch else SAME
    return Equivalent(
        old=(Piece(flag=old, value=value),),
        new=(Piece(flag=new, value=value),),
        reason=f"{old} was renamed to {new}",
        source=where,
    )


def _switch_is_value(old: str, new: str, value: str) -> Equivalent:
    return Equivalent(
        old=(Piece(flag=old),),
        new=(Piece(flag=new, value=value),),
        reason=f"{old} became {new} {value}",
        source="sglang 0.5.14: srt/server_args.py",
    )


_GRAPHS = "sglang 0.5.14: srt/server_args.py"

EQUIVALENTS: tuple[Equivalent, ...] = (
    _renamed(
        "--speculative-dflash-draft-window-size",
        "--speculative-draft-window-size",
        "sglang 0.5.12: srt/server_args.py:5874",
    ),
    _renamed(
        "--enable-gdn-replayssm-spec",
        "--enable-linear-replayssm-spec",
        "sglang 0.5.17: srt/server_args.py:8405",
        switch=True,
    ),
    _renamed("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode", _GRAPHS),
    _renamed("--cuda-graph-bs", "--cuda-graph-bs-decode", _GRAPHS),
    Equivalent(
        old=(Piece(flag="--disable-cuda-graph"),),
        new=(
            Piece(flag="--cuda-graph-backend-decode", value="disabled"),
            Piece(flag="--cuda-graph-backend-prefill", value="disabled"),
        ),
        reason="--disable-cuda-graph was split into one option for decode and one for prefill",
        source=_GRAPHS,
    ),
    _switch_is_value("--disable-piecewise-cuda-graph", "--cuda-graph-backend-prefill", "disabled"),
    _switch_is_value("--enable-breakable-cuda-graph", "--cuda-graph-backend-prefill", "breakable"),
    _switch_is_value("--enforce-piecewise-cuda-graph", "--cuda-graph-backend-prefill", "tc_piecewise"),
    _renamed("--piecewise-cuda-graph-max-tokens", "--cuda-graph-max-bs-prefill", _GRAPHS),
    _renamed("--piecewise-cuda-graph-tokens", "--cuda-graph-bs-prefill", _GRAPHS),
    _renamed("--piecewise-cuda-graph-compiler", "--cuda-graph-tc-compiler", _GRAPHS),
    _renamed(
        "--mamba-scheduler-strategy", "--mamba-radix-cache-strategy", "sglang 0.5.14: srt/server_args.py"
    ),
    Equivalent(
        old=(Piece(flag="--enable-dp-attention"), Piece(flag="--dp-size", value=SAME)),
        new=(Piece(flag="--attn-dp-size", value=SAME),),
        reason="--enable-dp-attention with --dp-size N became --attn-dp-size N",
        source="sglang 0.5.22: srt/arg_groups/parallel_hook.py",
    ),
    Equivalent(
        old=(Piece(flag="--enable-flashinfer-allreduce-fusion"),),
        new=(Piece(flag="--flashinfer-allreduce-fusion-backend", value="auto"),),
        reason="--enable-flashinfer-allreduce-fusion became --flashinfer-allreduce-fusion-backend auto",
        source="sglang 0.5.14: srt/server_args.py",
    ),
    _renamed(
        "--stream-output", "--incremental-streaming-output", "sglang 0.5.10: srt/server_args.py", switch=True
    ),
    _renamed("--nsa-decode-backend", "--dsa-decode-backend", "sglang 0.5.13: srt/server_args.py"),
    _renamed("--nsa-prefill-backend", "--dsa-prefill-backend", "sglang 0.5.13: srt/server_args.py"),
    *(
        Equivalent(
            old=(Piece(flag=flag, value=old),),
            new=(Piece(flag="--cp-strategy", value=new),),
            reason=f"{flag} {old} became --cp-strategy {new}",
            source="sglang 0.5.14: srt/server_args.py",
        )
        for flag in ("--dsa-prefill-cp-mode", "--nsa-prefill-cp-mode", "--prefill-cp-mode")
        for old, new in (("in-seq-split", "zigzag"), ("round-robin-split", "interleave"))
    ),
    _renamed(
        "--enable-nsa-prefill-context-parallel",
        "--enable-prefill-cp",
        "sglang 0.5.14: srt/server_args.py",
        switch=True,
    ),
    _renamed(
        "--enable-dsa-prefill-context-parallel",
        "--enable-prefill-cp",
        "sglang 0.5.14: srt/server_args.py",
        switch=True,
    ),
    _renamed(
        "--enable-prefill-context-parallel",
        "--enable-prefill-cp",
        "sglang 0.5.14: srt/server_args.py",
        switch=True,
    ),
    Equivalent(
        old=(Piece(flag="--monokernel-backend", value=SAME),),
        new=(Piece(flag="--enable-amd-monokernel"),),
        reason="--monokernel-backend amd became --enable-amd-monokernel",
        source="sglang 0.5.23: srt/server_args.py",
    ),
)

VALUE_CHANGES: tuple[ValueChange, ...] = (
    ValueChange(
        flag="--linear-attn-prefill-backend",
        value="ptx_kda",
        to="triton",
        effect="linear attention prefills through Triton: same results, slower prefill",
    ),
    ValueChange(
        flag="--linear-attn-prefill-backend",
        value="nvidia_kda",
        to="triton",
        effect="linear attention prefills through Triton: same results, slower prefill",
    ),
    ValueChange(
        flag="--linear-attn-prefill-backend",
        value="flashkda",
        to="triton",
        effect="linear attention prefills through Triton: same results, slower prefill",
    ),
    ValueChange(
        flag="--cuda-graph-backend-prefill",
        value="tc_piecewise",
        to=None,
        effect="the release chooses the prefill graph itself",
    ),
    ValueChange(
        flag="--cuda-graph-backend-decode",
        value="tc_piecewise",
        to=None,
        effect="the release chooses the decode graph itself",
    ),
    ValueChange(
        flag="--mamba-radix-cache-strategy",
        value="extra_buffer_lazy",
        to="extra_buffer",
        effect="the extra state buffers are kept from the start: more memory, same results",
    ),
    ValueChange(
        flag="--reasoning-parser", value="auto", to=None, effect="reasoning is not split from the answer"
    ),
    ValueChange(
        flag="--tool-call-parser", value="auto", to=None, effect="tool calls stay in the answer's text"
    ),
)

ABSENCES: tuple[Absence, ...] = (
    Absence(
        flag="--linear-attn-verify-backend", effect="verification uses the linear-attention decode backend"
    ),
    Absence(flag="--linear-attn-decode-backend", effect="linear attention decodes through Triton"),
    Absence(flag="--linear-attn-prefill-backend", effect="linear attention prefills through Triton"),
    Absence(
        flag="--enable-linear-replayssm-spec",
        effect="verification keeps one state copy for each draft token: more memory, same results",
    ),
    Absence(flag="--linear-replayssm-cache-len", effect="the release has no ReplaySSM ring"),
    Absence(flag="--cuda-graph-backend-prefill", effect="the release chooses its prefill graph itself"),
    Absence(flag="--cuda-graph-max-bs-prefill", effect="the release chooses its prefill graph sizes itself"),
    Absence(flag="--cuda-graph-bs-prefill", effect="the release chooses its prefill graph sizes itself"),
    Absence(flag="--cuda-graph-tc-compiler", effect="the release has no torch.compile prefill graph"),
    Absence(flag="--speculative-draft-sink-size", effect="DFLASH does not use sink tokens in any release"),
    Absence(flag="--speculative-draft-kv-cache-dtype", effect="the draft's KV cache has the target's type"),
    Absence(
        flag="--mamba-radix-cache-strategy",
        effect="the release chooses how it caches linear-attention states",
    ),
    Absence(
        flag="--mamba-track-interval", effect="the release tracks linear-attention states in its own rhythm"
    ),
    Absence(flag="--enable-symm-mem", effect="all-reduce does not use symmetric memory"),
    Absence(
        flag="--disable-flashinfer-autotune",
        effect="FlashInfer tunes its kernels at start if the release does so",
    ),
)
