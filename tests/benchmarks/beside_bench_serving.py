"""dflashctl bench and SGLang's bench_serving on the same server with the same prompts, in turns.

    python -m tests.benchmarks.beside_bench_serving --sglang-python PYTHON --tokenizer FOLDER [--url URL]
        [--concurrency 1,8] [--rounds 3] [--count 60] [--max-tokens 128] [--ask-usage]

By default bench_serving is given no option that changes what it counts; --ask-usage has it ask the server for the
token counts, as dflashctl always does.

Without --url the server is the mock of tests/fakes/mock_sse.py: then what it really sent when stands beside both.
Prints medians over the rounds and their ratio; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.workload import WorkloadOptions
from dflashctl.workloads import tiny_math

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ("requests/s", "output tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "tokens")


def write_prompts(path: Path, count: int, max_tokens: int) -> None:
    """The built-in word problems as JSON lines of OpenAI messages, which both tools read."""
    lines = [
        {"messages": [{"role": r, "content": c} for r, c in prompt.messages], "max_tokens": max_tokens}
        for prompt in tiny_math.prompts((), WorkloadOptions(count=count))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def run_quietly(command: list[str], folder: Path) -> None:
    """Run it offline; what it said is shown when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def ours(
    options: argparse.Namespace, url: str, prompts: Path, out: Path, concurrency: int
) -> dict[str, float]:
    command = [
        sys.executable, "-m", "dflashctl", "bench", "--url", url, "--prompts", str(prompts), "-c", str(concurrency),
        "--count", str(options.count), "--warm-up", "0", "--allow-slow-client", "-o", str(out),
    ]  # fmt: skip
    if not options.speculates:
        command.append("--no-speculation")
    run_quietly(command, ROOT)
    run = json.loads(out.read_text())["runs"][-1]
    if run["ttft_ms"] is None:
        raise SystemExit(
            f"{url} gives exact counts only without streaming, so there is no TTFT to compare: SGLang before 0.5.19 with "
            "speculation; take a newer one, or a server without speculation"
        )
    return {
        "requests/s": run["requests_per_s"],
        "output tok/s": run["output_tokens_per_s"],
        "TTFT p50": run["ttft_ms"]["p50"],
        "TTFT p99": run["ttft_ms"]["p99"],
        "TPOT p50": run["tpot_ms"]["p50"],
        "E2E p50": run["e2e_ms"]["p50"],
        "tokens": run["completion_tokens"],
    }


def theirs(
    options: argparse.Namespace, url: str, prompts: Path, out: Path, concurrency: int
) -> dict[str, float]:
    command = [
        options.sglang_python, "-m", "sglang.bench_serving", "--backend", "sglang-oai-chat", "--base-url", url,
        "--dataset-name", "openai", "--dataset-path", str(prompts), "--num-prompts", str(options.count),
        "--max-concurrency", str(concurrency), "--tokenizer", options.tokenizer, "--model", options.model,
        "--output-file", str(out), "--warmup-requests", "0", "--disable-tqdm", "--disable-ignore-eos",
    ]  # fmt: skip
    if options.ask_usage:
        command += ["--extra-request-body", json.dumps({"stream_options": {"include_usage": True}})]
    run_quietly(command, out.parent)
    run = json.loads(out.read_text().splitlines()[-1])
    return {
        "requests/s": run["request_throughput"],
        "output tok/s": run["output_throughput"],
        "TTFT p50": run["median_ttft_ms"],
        "TTFT p99": run["p99_ttft_ms"],
        "TPOT p50": run["median_tpot_ms"],
        "E2E p50": run["median_e2e_latency_ms"],
        "tokens": run["total_output_tokens"],
    }


@contextmanager
def server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.mock_sse", "--ttft-ms", "50", "--chunks", "60"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as mock:
        assert mock.stdout is not None
        port = int(mock.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            mock.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url")
    parser.add_argument("--sglang-python", required=True)
    parser.add_argument("--tokenizer", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--model", default="default")
    parser.add_argument("--concurrency", default="1,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--ask-usage", action="store_true")
    parser.add_argument("--speculates", action="store_true", help="the server at --url uses a draft")
    options = parser.parse_args()
    with server(options.url) as url, tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        write_prompts(prompts, options.count, options.max_tokens)
        for concurrency in (int(word) for word in options.concurrency.split(",")):
            compare(options, url, prompts, concurrency)


def compare(options: argparse.Namespace, url: str, prompts: Path, concurrency: int) -> None:
    """The first round of each warms the server's prefix cache up and does not count."""
    rows: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            a = ours(options, url, prompts, Path(folder) / "ours.json", concurrency)
            b = theirs(options, url, prompts, Path(folder) / "theirs.jsonl", concurrency)
        if number:
            rows.append((a, b))
    print(f"concurrency {concurrency}, {options.rounds} rounds of {options.count} prompts")
    print("| figure | dflashctl | bench_serving | ratio (rounds) |\n| --- | --- | --- | --- |")
    for name in FIGURES:
        ratios = sorted(a[name] / b[name] for a, b in rows if b[name])
        print(
            f"| {name} | {statistics.median(a[name] for a, _ in rows):.4g} "
            f"| {statistics.median(b[name] for _, b in rows):.4g} "
            f"| {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
