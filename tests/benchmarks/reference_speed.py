"""How fast the reference engine starts and decodes; prints figures and ratios, asserts nothing.

``python tests/benchmarks/reference_speed.py [--rounds N]``. One server for each block size answers the same word
problems in turns, with speculation and without, one request at a time, so that whatever else the machine does
hits all alike. Decode speed is the tokens after the first over the time from the first to the last: as a streaming
client sees it, and by the engine's own clock for answers that are sent whole.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dflashctl.reference.problems import problem
from tests.reference.running import SPECULATIVE, Server, Stream, in_threads, prompt

BLOCKS = (4, 8, 16)


def decode_speed(server: Server, questions: list[str], *, speculation: bool) -> float:
    """Return decoded tokens per second over all questions, asked one after another."""
    tokens = seconds = 0.0
    for question in questions:
        info = server.generate(prompt(question), speculation=speculation)["meta_info"]
        tokens += info["completion_tokens"] - 1
        seconds += (info["completion_tokens"] - 1) / info["decode_throughput"]
    return tokens / seconds


def streamed_speed(server: Server, questions: list[str], *, speculation: bool) -> float:
    """Return the same as a streaming client measures it, from the first chunk to the last."""
    tokens = seconds = 0.0
    for question in questions:
        body = {"text": prompt(question), "sampling_params": {"temperature": 0}, "speculation": speculation}
        times = []
        for chunk in Stream(server, "/generate", body):
            if chunk != "[DONE]":
                times.append(time.perf_counter())
                last = chunk
        tokens += last["meta_info"]["completion_tokens"] - 1
        seconds += times[-1] - times[0]
    return tokens / seconds


def throughput(server: Server, questions: list[str], *, speculation: bool) -> float:
    """Return tokens per second with all questions asked at once."""
    counts: list[int] = []

    def ask(question: str) -> None:
        info = server.generate(prompt(question), speculation=speculation)["meta_info"]
        counts.append(info["completion_tokens"])

    begin = time.perf_counter()
    in_threads(*[lambda question=question: ask(question) for question in questions])
    return sum(counts) / (time.perf_counter() - begin)


def start_stages(folder: Path) -> dict[str, float]:
    """Return seconds from the command to each stage of one start."""
    begin = time.perf_counter()
    server = Server(folder / "start.log", *SPECULATIVE)
    stages: dict[str, float] = {}
    marks = {
        "arguments read": "server_args=",
        "weights loaded": "type=DFlashDraftModel",
        "port open": "Serving on",
    }
    try:
        while "healthy" not in stages:
            text = server.log
            for stage, mark in marks.items():
                if mark in text:
                    stages.setdefault(stage, time.perf_counter() - begin)
            try:
                if server.get("/health_generate").status == 200:
                    stages["healthy"] = time.perf_counter() - begin
            except OSError:
                time.sleep(0.002)
    finally:
        server.kill()
    return stages


MEASURES = {
    "decode tok/s, one request, streamed": streamed_speed,
    "decode tok/s, one request, whole": decode_speed,
    "tok/s, 8 at once": throughput,
}


def report_start(folder: Path, rounds: int) -> None:
    runs = [start_stages(folder) for _ in range(rounds)]
    print("seconds from the command (median of", rounds, "starts)")
    for stage in ("arguments read", "weights loaded", "port open", "healthy"):
        times = [run[stage] for run in runs]
        print(f"  {stage:16}{statistics.median(times):7.3f}   (best {min(times):.3f})")


def report_decode(folder: Path, rounds: int) -> None:
    rng = random.Random(7)  # noqa: S311 - a corpus, not a secret
    questions = [problem(rng)[0] for _ in range(8)]
    servers = {
        block: Server(folder / f"{block}.log", *SPECULATIVE, "--speculative-dflash-block-size", str(block))
        for block in BLOCKS
    }
    ways = [("none", servers[16], False), *[(f"block {block}", servers[block], True) for block in BLOCKS]]
    try:
        for server in servers.values():
            server.wait_ready()
        for title, measure in MEASURES.items():
            speeds: dict[str, list[float]] = {name: [] for name, _, _ in ways}
            for _ in range(rounds):
                for name, server, speculation in ways:
                    speeds[name].append(measure(server, questions, speculation=speculation))
            print(f"{title} (median of {rounds} rounds; ratio to none, round by round)")
            for name, values in speeds.items():
                ratios = [value / base for value, base in zip(values, speeds["none"], strict=True)]
                print(
                    f"  {name:10}{statistics.median(values):9.0f}   x{statistics.median(ratios):5.2f}"
                    f"   (best {max(values):.0f})"
                )
    finally:
        for server in servers.values():
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as name:
        report_start(Path(name), rounds)
        report_decode(Path(name), rounds)


if __name__ == "__main__":
    main()
