"""Starting, failing to start, and stopping: ports, exit codes and log lines."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from dflashctl.reference.log import Log
from dflashctl.reference.request import Request, SamplingParams
from dflashctl.reference.scheduler import Scheduler
from dflashctl.reference.statistics import Statistics

from .running import SPECULATIVE, TARGET, Stream, prompt

ENDLESS = {"temperature": 0, "max_new_tokens": 400, "ignore_eos": True}

STARTING = (
    "server_args={",
    "Load weight begin.",
    "type=Qwen3ForCausalLM",
    "type=DFlashDraftModel",
    "DFLASH block size mismatch: using speculative_num_draft_tokens=8 but draft config block_size=16.",
    "Initialized DFLASH draft runner. attention_backend=numpy, model=DFlashDraftModel, block_size=8, ",
    "draft_window_size=None, compact_cache=False",
    "DFLASH draft runner ready. mask_token=<|MASK|>, mask_token_id=3",
    "KV Cache is allocated.",
    "Memory pool end.",
    "max_total_num_tokens=196608,",
    "The server is fired up and ready to roll!",
)


def test_the_log_has_sglangs_lines_in_order(block_8):
    lines = block_8.log
    places = [lines.index(line) for line in STARTING]
    assert places == sorted(places)
    assert all(re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ", line) for line in lines.splitlines())
    assert "max_running_requests=48, context_len=4096" in lines


def test_the_port_opens_after_loading_and_health_says_503_until_warm(start):
    """Every state that a poller can see, in the only order in which they may come."""
    server = start(*SPECULATIVE)
    seen = []
    while not seen or seen[-1] != (200, 200):
        assert server.process.poll() is None, server.log
        try:
            state = (server.get("/health").status, server.get("/model_info").status)
        except OSError:
            state = "closed"
        if not seen or seen[-1] != state:
            seen.append(state)
    allowed = ["closed", (503, 200), (200, 200)]
    assert [state for state in allowed if state in seen] == seen


def test_sigterm_lets_a_running_request_finish_and_exits_0(start):
    server = start(*SPECULATIVE).wait_ready()
    chunks = iter(Stream(server, "/generate", {"text": prompt(), "sampling_params": ENDLESS}))
    next(chunks)
    server.process.send_signal(signal.SIGTERM)
    server.wait_status("/health", 503)
    assert server.get("/ready").status == 503
    assert server.get("/v1/models").status == 200
    late = server.generate(prompt(), params={"max_new_tokens": 2})
    assert late["meta_info"]["completion_tokens"] == 2, "new requests are still accepted while draining"
    *_, last, end = chunks
    assert end == "[DONE]"
    assert last["meta_info"]["finish_reason"] == {"type": "length", "length": 400}
    assert server.process.wait(30) == 0
    assert "SIGTERM received. signum=None frame=None. Draining requests and shutting down..." in server.log
    assert "Gracefully exiting... Remaining number of requests 0." in server.log


def test_sigterm_when_idle_exits_0(start):
    assert start(*SPECULATIVE).wait_ready().stop() == 0


def test_sigint_stops_at_once_even_while_draining(start):
    server = start(*SPECULATIVE).wait_ready()
    body = {"text": prompt(), "sampling_params": {**ENDLESS, "max_new_tokens": 3900}, "speculation": False}
    stream = Stream(server, "/generate", body)
    next(iter(stream))
    server.process.send_signal(signal.SIGTERM)
    server.wait_status("/health", 503)
    assert server.stop(signal.SIGINT) == 130
    stream.close()


def test_a_taken_port_is_said_and_ends_with_1(start):
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        server = start(*SPECULATIVE, port=owner.getsockname()[1])
        assert server.process.wait(60) == 1
    port = server.port
    message = rf"\[Errno 98\] error while attempting to bind on address \('127.0.0.1', {port}\): address already in use"
    assert re.search(message, server.log)
    assert "Traceback" not in server.log


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*SPECULATIVE, "--speculative-dflash-block-size", "17"], 1, "block size 17 is above the 16"),
        ([*SPECULATIVE, "--speculative-draft-window-size", "4"], 1, "smaller than the block size 16"),
        (["--context-length", "4097"], 1, "above the 4096 positions"),
        (
            ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "/nowhere"],
            1,
            "'/nowhere' does not exist",
        ),
        (
            ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", TARGET],
            1,
            "not a DFlash drafter",
        ),
        (["--speculative-dflash-block-size", "0", *SPECULATIVE], 2, "must be at least 1"),
        (["--tp-size", "2"], 2, "unrecognized arguments"),
    ],
)
def test_what_cannot_be_served_ends_with_a_code_and_a_line(start, arguments, code, words):
    server = start(*arguments)
    assert server.process.wait(60) == code
    assert words in server.log
    assert "Traceback" not in server.log


@pytest.mark.parametrize("make", ["missing", "empty", "file", "truncated"])
def test_a_wrong_model_folder_is_named(start, tmp_path, make):
    folder = tmp_path / "model"
    if make == "file":
        folder.write_text("x")
    elif make != "missing":
        folder.mkdir()
    if make == "truncated":
        (folder / "config.json").write_text("{")
    server = start(model=str(folder))
    assert server.process.wait(60) == 1
    assert str(folder) in server.log
    assert "Traceback" not in server.log


def test_without_the_algorithm_or_with_the_switch_nothing_speculates(start, plain):
    off = start(*SPECULATIVE, "--no-speculation").wait_ready()
    for server in (off, plain):
        assert "spec_verify_ct" not in server.generate(prompt())["meta_info"]
        info = server.get("/server_info").body
        assert (info["speculative_algorithm"], info["per_request_speculation"]) == (None, False)
        assert "DFLASH" not in server.log.split("Load weight begin")[1]


def test_a_log_that_nobody_reads_does_not_stop_the_server(start):
    server = start(*SPECULATIVE, log_reader=False).wait_ready()
    assert server.generate(prompt())["text"].endswith("#### 19")


def test_the_model_goes_by_the_name_it_was_given(start):
    server = start(*SPECULATIVE, "--served-model-name", "tiny").wait_ready()
    assert server.get("/v1/models").body["data"][0]["id"] == "tiny"


def test_a_crash_of_the_engine_thread_ends_the_server(models):
    """A bug must never leave a server that accepts requests and answers none."""

    class Broken:
        def step(self, sequences):
            raise RuntimeError("a bug")

    crashed = threading.Event()
    scheduler = Scheduler(Broken(), Statistics("m", 1, 8, 40), Log("critical"), 1)
    scheduler.start(lambda _: None, crashed.set)
    request = Request(rid="x", prompt_ids=(1,), params=SamplingParams(max_new_tokens=1))
    scheduler.submit(models.decoder.sequence(request, models.tokenizer))
    assert crashed.wait(30)


def test_the_package_imports_nothing_heavy():
    code = "import sys, dflashctl.reference as r; r.tiny_paths(); print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'aiohttp', 'asyncio', 'tokenizers', 'jinja2', 'torch')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_needs_no_model_and_no_numpy():
    command = [sys.executable, "-X", "importtime", "-m", "dflashctl.reference", "--help"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--speculative-dflash-block-size" in found.stdout
    assert " numpy" not in found.stderr
