"""Rules about how the model is spread: pipeline, data-parallel attention, prefill/decode separation, nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation

_HOOK = "sglang 0.5.23: srt/arg_groups/speculative_hook.py:301"


def _coordinated(s: Situation) -> bool:
    return s.environment.get("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION", "0") not in (
        "",
        "0",
        "false",
        "False",
    )


def _ranks(s: Situation) -> int:
    return int((s.number("--tp-size") or 1) * (s.number("--pp-size") or 1))


def _prefill_role(s: Situation) -> bool:
    return s.is_("--disaggregation-mode", "prefill")


RULES: tuple[Rule, ...] = (
    Rule(
        id="pipeline_parallel",
        when=lambda s: s.dflash and (s.number("--pp-size") or 1) != 1,
        since="0.5.11",
        severity=Severity.ERROR,
        consequence="DFLASH runs with one pipeline stage only",
        fix="--set parallel.pipeline=1",
        source="srt/arg_groups/speculative_hook.py: _handle_dflash",
    ),
    Rule(
        id="dp_attention_refused",
        when=lambda s: s.dflash and s.attention_dp,
        since="0.5.11",
        until="0.5.22",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} does not run DFLASH with data-parallel attention",
        fix="use tensor parallelism, or SGLang 0.5.23 with --enable-dp-lm-head",
        source="srt/arg_groups/speculative_hook.py: _handle_dflash",
    ),
    Rule(
        id="dp_attention_without_lm_head",
        when=lambda s: s.dflash and s.attention_dp and not s.has("--enable-dp-lm-head"),
        since="0.5.23",
        severity=Severity.ERROR,
        consequence="DFLASH with data-parallel attention needs --enable-dp-lm-head",
        fix="add --enable-dp-lm-head",
        source=_HOOK,
    ),
    Rule(
        id="dp_attention_with_context_parallel",
        when=lambda s: s.dflash and s.attention_dp and (s.number("--attn-cp-size") or 1) != 1,
        since="0.5.23",
        severity=Severity.ERROR,
        consequence="DFLASH with data-parallel attention does not run with context parallelism",
        fix="leave --attn-cp-size out",
        source=_HOOK,
    ),
    Rule(
        id="dp_attention_with_coordination",
        when=lambda s: s.dflash and s.attention_dp and _coordinated(s),
        since="0.5.23",
        severity=Severity.ERROR,
        consequence="DFLASH with data-parallel attention needs SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=0",
        fix="take SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION out of the environment",
        source=_HOOK,
    ),
    Rule(
        id="pd_absent",
        when=lambda s: s.dflash and s.is_("--disaggregation-mode", "prefill", "decode"),
        since="0.5.11",
        until="0.5.17",
        severity=Severity.ERROR,
        consequence="SGLang {s.release} cannot run DFLASH with prefill and decode apart: the decode server would die",
        fix="use SGLang 0.5.18 or later, or one server for both",
        source="sglang 0.5.17: srt/speculative/spec_info.py:172",
    ),
    Rule(
        id="pd_experimental",
        when=lambda s: s.dflash and s.is_("--disaggregation-mode", "prefill", "decode"),
        since="0.5.18",
        severity=Severity.WARNING,
        consequence="DFLASH with prefill and decode apart is little tested in SGLang {s.release}; both roles need the draft",
        source="sglang 0.5.18: srt/speculative/dflash_disaggregation.py",
    ),
    Rule(
        id="pd_decode_radix",
        when=lambda s: (
            s.dflash
            and s.is_("--disaggregation-mode", "decode")
            and s.has("--disaggregation-decode-enable-radix-cache")
        ),
        since="0.5.23",
        severity=Severity.ERROR,
        consequence="a decode server with DFLASH cannot have --disaggregation-decode-enable-radix-cache",
        fix="leave --disaggregation-decode-enable-radix-cache out",
        source="sglang 0.5.23: srt/arg_groups/pd_disaggregation_hook.py:170",
    ),
    Rule(
        id="pd_prefill_replayssm",
        when=lambda s: s.replayssm and _prefill_role(s),
        severity=Severity.ERROR,
        consequence="a prefill server cannot have ReplaySSM verification",
        fix="--set backends.replayssm=false on the prefill role",
        source="srt/arg_groups/mamba_hook.py",
    ),
    Rule(
        id="pd_role_switch",
        when=lambda s: s.speculative and s.has("--enable-pd-role-switch"),
        severity=Severity.ERROR,
        consequence="--enable-pd-role-switch does not go with speculative decoding",
        fix="leave --enable-pd-role-switch out",
        source="srt/arg_groups/pd_disaggregation_hook.py",
    ),
    Rule(
        id="several_nodes",
        when=lambda s: (s.number("--nnodes") or 1) > 1,
        severity=Severity.WARNING,
        consequence="this supervises one node only; a node of rank 1 or more answers /health with 200 whatever happens",
        fix="start every node with the same arguments, --dist-init-addr included, and its own --node-rank; watch node 0",
        source="srt/utils/common.py",
    ),
    Rule(
        id="nodes_without_address",
        when=lambda s: (s.number("--nnodes") or 1) > 1 and not s.has("--dist-init-addr"),
        severity=Severity.WARNING,
        consequence="no --dist-init-addr given: every node would wait for the others at its own address",
        fix="add --dist-init-addr HOST_OF_NODE_0:PORT, the same on every node",
        source="sglang 0.5.23: srt/distributed/bootstrap.py:241",
    ),
    Rule(
        id="nodes_uneven",
        when=lambda s: _ranks(s) % int(max(s.number("--nnodes") or 1, 1)) != 0,
        severity=Severity.ERROR,
        consequence="tensor times pipeline parallel size must be a multiple of --nnodes",
        fix="give --tp-size the number of GPUs of all nodes together",
        source="sglang 0.5.23: srt/arg_groups/validation_hook.py:179",
    ),
    Rule(
        id="nodes_with_replicas",
        when=lambda s: (
            (s.number("--nnodes") or 1) > 1 and (s.number("--dp-size") or 1) > 1 and not s.attention_dp
        ),
        severity=Severity.ERROR,
        consequence="data-parallel replicas do not spread over several nodes",
        fix="--set parallel.data=1, and start one server on each node",
        source="sglang 0.5.23: srt/arg_groups/validation_hook.py:199",
    ),
    Rule(
        id="replicas_with_attention_groups",
        when=lambda s: (s.number("--dp-size") or 1) > 1 and (s.number("--attn-dp-size") or 1) > 1,
        severity=Severity.ERROR,
        consequence="--dp-size and --attn-dp-size are two ways of data parallelism; SGLang takes one of them",
        fix="leave one of them out, or --set parallel.data=1",
        source="sglang 0.5.23: srt/arg_groups/parallel_hook.py:287",
    ),
    Rule(
        id="k3_dcp_decode_backend",
        when=lambda s: (
            s.is_k3
            and (s.number("--dcp-size") or 1) > 1
            and s.decode_attention not in (None, "cutedsl_mla", "aiter")
        ),
        since="0.5.17",
        severity=Severity.ERROR,
        consequence="Kimi-K3 with --dcp-size needs decode attention cutedsl_mla (aiter on ROCm), not {s.decode_attention}",
        fix="add --decode-attention-backend cutedsl_mla",
        source="sglang 0.5.23: srt/arg_groups/model_overrides/kimi_k3.py",
    ),
    Rule(
        id="k3_dcp_symm_mem",
        when=lambda s: s.is_k3 and (s.number("--dcp-size") or 1) > 1 and s.has("--enable-symm-mem"),
        since="0.5.17",
        severity=Severity.WARNING,
        consequence="--enable-symm-mem is turned off with --dcp-size on Kimi-K3",
        source="sglang 0.5.23: srt/arg_groups/model_overrides/kimi_k3.py",
    ),
    Rule(
        id="lora_plan_stream",
        when=lambda s: s.speculative and s.has("--enable-lora") and s.on("SGLANG_ENABLE_OVERLAP_PLAN_STREAM"),
        since="0.5.17",
        severity=Severity.ERROR,
        consequence="LoRA with speculative decoding does not run with SGLANG_ENABLE_OVERLAP_PLAN_STREAM=1",
        fix="take SGLANG_ENABLE_OVERLAP_PLAN_STREAM out of the environment",
        source="sglang 0.5.23: srt/arg_groups/lora_hook.py:291",
    ),
)
