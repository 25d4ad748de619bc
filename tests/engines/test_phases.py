"""Log lines, as real servers wrote them, and what they tell."""

from __future__ import annotations

import pytest

from dflashctl.core.engine import Argument
from dflashctl.core.start_phase import StartPhase
from dflashctl.engines.sglang import catalogue, differences, read_log_line

P = StartPhase
RUNNER = (
    "[2026-11-30 01:37:22 TP0] Initialized DFLASH draft runner. attention_backend=triton, model=DFlashDraftModel, "
    "block_size=8, draft_window_size=None, compact_cache=False"
)
LINES = [
    ("[2026-11-30 01:36:58] server_args=ServerArgs(model_path='/m', port=30000)", P.RESOLVE, None, {}),
    ("[2026-11-30 01:37:20] Init torch distributed begin.", P.LOAD_TARGET, None, {}),
    ("[2026-11-30 02:58:51] Init parallel begin.", P.LOAD_TARGET, None, {}),
    ("[2026-11-30 01:37:22] Load weight begin. avail mem=139.13 GB", P.LOAD_TARGET, None, {}),
    ("Multi-thread loading shards:  50% Completed | 48/96 [00:10<00:10, 4.8it/s]", None, (48, 96), {}),
    ("Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:01<00:00]", None, (4, 4), {}),
    (
        "[x] Load weight end. elapsed=0.09 s, type=Qwen3ForCausalLM, avail mem=139.12 GB, mem usage=0.01 GB.",
        P.LOAD_DRAFT, None, {"target_class": "Qwen3ForCausalLM"},
    ),
    (
        "[x] Load weight end. elapsed=0.01 s, type=DFlashDraftModel, avail mem=139.10 GB, mem usage=0.00 GB.",
        P.ALLOCATE, None, {"draft_class": "DFlashDraftModel"},
    ),
    (
        RUNNER, P.ALLOCATE, None,
        {"draft_attention_backend": "triton", "draft_class": "DFlashDraftModel", "block_size": "8", "draft_window_size": "None"},
    ),
    ("[x] Memory pool end. avail mem=129.84 GB", P.ALLOCATE, None, {}),
    ("[x] Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8]", P.CAPTURE, None, {}),
    ("[x] Capture cuda graph begin. This can take up to several minutes. avail mem=1 GB", P.CAPTURE, None, {}),
    ("Capturing batches (bs=40 avail_mem=124.7 GB):  13%|█▎        | 3/23 [00:00<00:01, 10.2it/s]", P.CAPTURE, (3, 23), {}),
    (
        ("[x] max_total_num_tokens=4831037, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, "
        "context_len=4096, available_gpu_mem=124.57 GB"),
        P.WARM_UP, None,
        {"max_total_num_tokens": "4831037", "max_running_requests": "48", "context_length": "4096"},
    ),
    ("[x] The server is fired up and ready to roll!", P.READY, None, {}),
    (
        "[x] Decode batch, #running-req: 1, #token: 63, token usage: 0.00, accept len: 5.22, accept rate: 0.60, cuda graph: True",
        None, None, {"accept_length": "5.22", "accept_rate": "0.60"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "phase", "count", "facts"), LINES)
def test_a_line_tells_its_phase_its_count_and_its_facts(line, phase, count, facts):
    mark = read_log_line(line)
    assert mark.phase is phase
    assert (mark.done, mark.total) == (count or (None, None))
    assert dict(mark.facts) == facts
    assert mark.failure is None


@pytest.mark.parametrize(
    "line",
    [
        "[x TP3] Scheduler hit an exception: Traceback (most recent call last):",
        "[x] Received sigquit from a child process. It usually means the child failed.",
        "[x] Initialization failed. warmup error: timed out",
        "[x] Rank 0 scheduler died during initialization (exit code: -9).",
    ],
)
def test_a_failure_is_told(line):
    assert read_log_line(line).failure


@pytest.mark.parametrize("line", ["", "INFO:     Uvicorn running on http://127.0.0.1:30000", "x" * 10_000])
def test_other_lines_tell_nothing(line):
    assert read_log_line(line) is None


def test_the_lines_that_name_phases_are_those_of_every_release():
    for literal in ("server_args=", "Load weight begin. avail mem=", "Load weight end.", "Memory pool end."):
        assert all(catalogue.has_mark(literal, release) for release in catalogue.releases())
    for release in catalogue.releases():
        begins = ("Init torch distributed begin.", "Init parallel begin.")
        assert any(catalogue.has_mark(literal, release) for literal in begins)


def planned(backend):
    return [Argument(flag="--speculative-draft-attention-backend", values=(backend,))]


FACTS = dict(read_log_line(RUNNER).facts)


def test_a_start_as_planned_says_nothing():
    assert differences(FACTS, planned("triton"), block_size=8, draft_window_size=None) == ()


def test_a_draft_that_runs_otherwise_than_planned_is_a_finding():
    found = differences(FACTS, planned("trtllm_mha"), block_size=16, draft_window_size=4096)
    assert [f.id for f in found] == [
        "started_draft_attention_backend",
        "started_block_size",
        "started_draft_window_size",
    ]
    assert "trtllm_mha was planned, triton really runs" in found[0].summary


def test_before_the_draft_runs_nothing_differs():
    assert differences({}, planned("fa4"), block_size=8, draft_window_size=None) == ()
