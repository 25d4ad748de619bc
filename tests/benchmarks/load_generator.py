"""Compare the load generator with its peers, in turns, against a mock server that logs its true send times.

    python -m tests.benchmarks.load_generator [--rounds 3] [--steps c32,c256,c1024,flat,requests]
        [--rust-extension _bench...so] [--tokenizer DIR]
        [--sglang-python PYTHON (--sglang-path DIR | --sglang-script FILE)]

dflashctl takes part twice: `dflashctl-as-bench` as `dflashctl bench` runs it, which asks for a running token count in
each chunk and keeps the texts' ends, and `dflashctl`, which takes of a chunk no more than the peers do. The server
gives the running count, as SGLang does, to whoever asks for it.

The server gets one core and the client another, so that all figures are per core. Peers are taken only when
given: the extension out of an SGLang wheel (0.5.22 or later) for its Rust client, an interpreter that can run
`sglang.bench_serving` for the Python one. A client in that one's style (aiohttp, a session a request, readline,
json) always takes part, so that there is something to compare with. `floor` is no client but the least that one can
cost which takes the time of each chunk: a C program that receives and throws away.
Prints the figures of each and their ratios; asserts nothing, since machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Step:
    name: str
    streams: int
    requests: int
    chunks: int
    ttft_ms: float
    gap_ms: float
    group: int = 1

    @property
    def rate(self) -> str:
        return f"{self.streams * 1e3 / self.gap_ms:,.0f}/s" if self.gap_ms else "flat out"


STEPS = {
    "c32": Step("C=32", 32, 64, 400, 200, 10),
    "c32fast": Step("C=32", 32, 32, 3200, 200, 1.25),
    "c256": Step("C=256", 256, 256, 400, 200, 10),
    "c1024": Step("C=1024", 1024, 1024, 240, 200, 1000 / 60),
    "flat": Step("C=32", 32, 128, 8000, 0, 0, 16),
    "requests": Step("C=32, 2 chunks", 32, 30000, 2, 0, 0),
}


def quantiles(samples: list[float]) -> tuple[float, float]:
    if not samples:
        return (0.0, 0.0)
    ordered = sorted(samples)
    return tuple(ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99))


# -- clients --------------------------------------------------------------------------------------------------


def own_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    return [options.python, "tests/benchmarks/own_client.py", url, str(out), json.dumps(step.__dict__)]


def as_bench_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    return [*own_command(step, url, out, options), "--as-bench"]


def aiohttp_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    return [options.python, "tests/benchmarks/aiohttp_client.py", url, str(out), json.dumps(step.__dict__)]


def rust_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    program = (
        "import importlib.util as u, sys\n"
        f"s = u.spec_from_file_location('_bench', {options.rust_extension!r})\n"
        "m = u.module_from_spec(s); s.loader.exec_module(m); m.run_argv(sys.argv)"
    )
    return [
        options.rust_python or options.python,
        "-c",
        program,
        *bench_serving_options(step, url, out, options),
    ]


def sglang_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    program = [options.sglang_script] if options.sglang_script else ["-m", "sglang.bench_serving"]
    return [options.sglang_python, *program, *bench_serving_options(step, url, out, options)]


def bench_serving_options(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    return [
        "--backend", "sglang-oai-chat", "--base-url", url, "--dataset-name", "random-ids", "--random-input-len", "16",
        "--random-output-len", str(step.chunks), "--random-range-ratio", "1", "--num-prompts", str(step.requests),
        "--max-concurrency", str(step.streams), "--tokenizer", options.tokenizer, "--model", "default",
        "--output-file", str(out), "--output-details", "--seed", "1", "--warmup-requests", "0", "--disable-tqdm",
    ]  # fmt: skip


def floor_command(step: Step, url: str, out: Path, options: argparse.Namespace) -> list[str]:
    return [options.floor, url.rpartition(":")[2], str(step.streams), str(step.requests), str(out)]


def read_floor(out: Path) -> dict[str, object]:
    return {**json.loads(out.read_text()), **dict.fromkeys(("ttft", "itl", "tpot"), (None, None))}


def read_own(out: Path) -> dict[str, object]:
    return json.loads(out.read_text())


def read_bench_serving(out: Path) -> dict[str, object]:
    found = json.loads(out.read_text().splitlines()[-1])
    ttfts, itls = found["ttfts"], found["itls"]
    spans = [(sum(gaps), len(gaps)) for gaps in itls]
    return {
        "ttft": quantiles([s * 1e3 for s in ttfts]),
        "itl": quantiles([g * 1e3 for gaps in itls for g in gaps]),
        "tpot": quantiles([s / n * 1e3 for s, n in spans if n]),
        "wall_s": found["duration"],
        "done": found["completed"],
    }


CLIENTS = {
    "dflashctl-as-bench": (as_bench_command, read_own),
    "dflashctl": (own_command, read_own),
    "aiohttp": (aiohttp_command, read_own),
    "floor": (floor_command, read_floor),
    "sglang-rust": (rust_command, read_bench_serving),
    "sglang-py": (sglang_command, read_bench_serving),
}


# -- the comparison -------------------------------------------------------------------------------------------


def truth_of(url: str) -> dict[str, tuple[float, float]]:
    with urllib.request.urlopen(f"{url}/truth") as answer:
        return json.loads(answer.read())


def built(name: str, folder: str) -> str:
    """A program in C: the server must not be what limits, or share its core's time with an interpreter."""
    program = os.path.join(folder, name)
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, str(source)], check=True)
    return program


def start_server(step: Step, core: int, options: argparse.Namespace) -> tuple[subprocess.Popen, str]:
    command = [options.server, *(str(n) for n in (step.ttft_ms, step.gap_ms, step.chunks, step.group))]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: place(core, options, -16),  # noqa: PLW1509 - no threads here
    )
    port = server.stdout.readline().decode().strip()
    return server, f"http://127.0.0.1:{port}"


def place(core: int, options: argparse.Namespace, nice: int) -> None:
    os.sched_setaffinity(0, {core})
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    elif options.priority:
        os.nice(nice)


def tree_mb(pid: int) -> float:
    """The largest resident sizes so far of a process and its children, added up (shared pages count twice)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own = next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
    return own + sum(tree_mb(int(child)) for child in children)


def run_client(
    name: str, step: Step, url: str, folder: str, options: argparse.Namespace
) -> dict[str, object]:
    """What the client reports, with its CPU time and memory as the kernel counts them, children included."""
    command, read = CLIENTS[name]
    ours = not name.startswith("sglang")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT) if ours else options.sglang_path,
        "HF_HUB_OFFLINE": "1",
    }
    core = max(os.sched_getaffinity(0))
    out, log = Path(folder) / "out", Path(folder) / "log"
    with log.open("wb") as sink:
        client = subprocess.Popen(
            command(step, url, out, options),
            cwd=ROOT if ours else folder,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: place(core, options, -15),  # noqa: PLW1509 - no threads here
        )
        memory = 0.0
        while not (ended := os.wait4(client.pid, os.WNOHANG))[0]:
            memory = max(memory, tree_mb(client.pid))
            time.sleep(0.1)
    _, client.returncode, usage = ended
    if not out.exists():
        raise RuntimeError(f"{name}: {log.read_text()[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return {**read(out), "memory_mb": memory, "cpu_s": cpu, "system_share": usage.ru_stime / cpu}


def measure(
    name: str, step: Step, options: argparse.Namespace
) -> tuple[dict, dict[str, tuple[float, float]]]:
    server, url = start_server(step, min(os.sched_getaffinity(0)), options)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = run_client(name, step, url, folder, options)
            return found, truth_of(url)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def off(value: float | None, truth: float) -> str:
    return f"{(value / truth - 1) * 100:+.2f}" if value is not None and truth > 0.05 else "-"


def row(name: str, step: Step, found: dict, truth: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Print one line of the table; the three figures of which ratios are made."""
    chunks = step.requests * step.chunks
    cost = found["cpu_s"] / chunks * 1e6
    wall = found["wall_s"]
    cells = [
        f"{off(found[k][0], truth[k][0])} / {off(found[k][1], truth[k][1])}" for k in ("ttft", "itl", "tpot")
    ]
    own = f"lag p99 {found['lag']:.1f} ms" if "lag" in found else ""
    print(
        f"| {name} | {step.name}, {step.rate} | {cost:.2f} ({found['system_share']:.0%} kernel) | {' | '.join(cells)} "
        f"| {found['memory_mb']:.0f} | {chunks / wall:,.0f} | {found['done'] / wall:,.0f} "
        f"| {found['done']}/{step.requests} | {own} |",
        flush=True,
    )
    return {
        "us_per_chunk": cost,
        "chunks_per_s": chunks / wall,
        "chunks_per_cpu_s": chunks / found["cpu_s"],
        "requests_per_s": found["done"] / wall,
    }


def compare(names: list[str], step: Step, options: argparse.Namespace) -> None:
    """All clients in turns, round by round; ratios are taken within a round."""
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            results[name].append(row(name, step, *measure(name, step, options)))
    own = [name for name in names if name.startswith("dflashctl")] or names[:1]
    for first, second in ((a, b) for a in own for b in names if b not in own):
        for key in results[first][0]:
            ratios = [a[key] / b[key] for a, b in zip(results[first], results[second], strict=True)]
            low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
            print(f"  {first} / {second}, {key}: {middle:.2f} (rounds {low:.2f} to {high:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--clients", default="")
    for name in (
        "rust-extension",
        "rust-python",
        "tokenizer",
        "sglang-python",
        "sglang-path",
        "sglang-script",
    ):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--priority", action="store_true", help="nice -15 for both (needs the right to)")
    parser.add_argument(
        "--realtime", action="store_true", help="SCHED_FIFO for both: for a machine with other work"
    )
    options = parser.parse_args()
    if options.tokenizer:
        options.tokenizer = str(Path(options.tokenizer).resolve())
    peers = [
        n
        for n, given in (("sglang-rust", options.rust_extension), ("sglang-py", options.sglang_python))
        if given
    ]
    names = (
        options.clients.split(",")
        if options.clients
        else ["dflashctl-as-bench", "dflashctl", *peers, "aiohttp", "floor"]
    )
    print(
        "| client | load | CPU us a chunk | TTFT p50/p99 off % | chunk gap p50/p99 off % | TPOT p50/p99 off % | MB | chunks/s "
        "| requests/s | done | client |\n" + "| --- " * 11 + "|"
    )
    with tempfile.TemporaryDirectory() as folder:
        options.server, options.floor = built("mock_sse_fast", folder), built("floor_client", folder)
        for key in options.steps.split(","):
            compare(names, STEPS[key], options)


if __name__ == "__main__":
    main()
