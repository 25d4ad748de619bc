"""What is kept of the answers of a conversation: all of those that a follow-up repeats, else their ends."""

from __future__ import annotations

import pytest

from dflashctl.commands.bench_load import measured_load
from dflashctl.commands.bench_prompts import Gathered
from dflashctl.commands.bench_turns import converse
from dflashctl.core.bench_samples import LOOKED_AT
from dflashctl.core.bench_setting import Setting
from dflashctl.core.smoke import ServerFacts
from dflashctl.core.workload import BenchPrompt
from dflashctl.proofs.client import Client
from tests.fakes.mock_sse import MockServer, Wish

CHUNKS = LOOKED_AT
ANSWER = "tok " * CHUNKS
SETTING = Setting(
    dataset="own", api="chat", speculation=True, block_size=8, concurrency=2, request_rate=None, max_tokens=9,
    temperature=0.0, top_p=None, thinking=None, ignore_eos=False, seed=1, prompts=2, prompts_hash="h",
)  # fmt: skip
FOLLOW_UPS = {"none": [(), ()], "one": [("and?",), ("and?",)], "one, in one of two": [("and?",), ()]}


@pytest.mark.parametrize("follow_ups", FOLLOW_UPS.values(), ids=FOLLOW_UPS)
def test_a_follow_up_repeats_the_whole_answer_and_no_other_text_is_kept_whole(follow_ups):
    prompts = tuple(
        BenchPrompt(id=str(n), messages=(("user", f"hi {n}"),), follow_ups=rest)
        for n, rest in enumerate(follow_ups)
    )
    gathered = Gathered(name="own", prompts=prompts, warm_up=(), max_tokens=9, hash="h")
    with MockServer(Wish(ttft_ms=0, gap_ms=0, chunks=CHUNKS, group=100)) as server:
        client = Client(web=None, clock=None, facts=ServerFacts(base_url=server.url), nonce="n")
        spec = measured_load(server.url, None, concurrency=2)
        turns = converse(spec, client, None, SETTING, gathered, lambda _: None)
        again = [r["body"]["messages"] for r in server.requests if len(r["body"]["messages"]) > 1]
    assert all(record.ok for record in turns.records)
    assert len(again) == sum(map(len, follow_ups))
    assert all(messages[1]["content"] == ANSWER for messages in again)
    assert all(record.text == ANSWER[-LOOKED_AT:] for record in turns.results[-1].records)
