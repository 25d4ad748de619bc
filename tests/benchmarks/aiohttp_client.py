"""A client in the style of SGLang's Python bench_serving: aiohttp, a session a request, readline, json."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp


def quantiles(samples: list[float]) -> tuple[float, float]:
    ordered = sorted(samples) or [0.0]
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def run(url: str, out: Path, step: dict) -> None:
    body = {"model": "default", "messages": [{"role": "user", "content": "word " * 16}], "stream": True}
    ttfts: list[float] = []
    gaps: list[float] = []
    tpots: list[float] = []

    async def one(gate: asyncio.Semaphore) -> None:
        async with gate, aiohttp.ClientSession(read_bufsize=10 << 20) as session:
            sent = last = time.perf_counter()
            first, chunks = 0.0, 0
            async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                async for raw in answer.content:
                    line = raw.strip().removeprefix(b"data: ")
                    if not line or line == b"[DONE]":
                        continue
                    choices = json.loads(line)["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        now = time.perf_counter()
                        if chunks:
                            gaps.append((now - last) * 1e3)
                        else:
                            first = now
                        chunks, last = chunks + 1, now
            ttfts.append((first - sent) * 1e3)
            tpots.append((last - first) / max(1, chunks - 1) * 1e3)

    async def main() -> float:
        gate = asyncio.Semaphore(step["streams"])
        start = time.perf_counter()
        await asyncio.gather(*(one(gate) for _ in range(step["requests"])))
        return time.perf_counter() - start

    wall = asyncio.run(main())
    report = {
        "ttft": quantiles(ttfts),
        "itl": quantiles(gaps),
        "tpot": quantiles(tpots),
        "wall_s": wall,
        "done": len(ttfts),
    }
    out.write_text(json.dumps(report))


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
