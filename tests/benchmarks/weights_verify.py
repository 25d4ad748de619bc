"""Verification against sha256sum on the same files, in turn: python tests/benchmarks/weights_verify.py [GB] [ROUNDS].

Prints for each round the rate of one `sha256sum`, of as many `openssl dgst` at once as there are cores (the
cores' own limit), and of dflashctl's hasher, all from a warm page cache so that neither is given the disk's time; the ratios' medians are the result.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dflashctl.core.model_files import FileStatus, ModelFile
from dflashctl.edges.cores import usable_cores
from dflashctl.edges.hashing import PoolHasher
from dflashctl.ports.weight_store import HashJob

FILES = 8


def one_sha256sum(paths: list[Path]) -> float:
    began = time.perf_counter()
    subprocess.run(["sha256sum", *map(str, paths)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def openssl_on_all_cores(paths: list[Path]) -> float:
    """What these cores can do: OpenSSL uses their SHA instructions, which many builds of sha256sum do not."""
    began = time.perf_counter()
    subprocess.run(
        ["xargs", "-0", "-n1", f"-P{usable_cores()}", "openssl", "dgst", "-sha256"],
        input=b"\0".join(bytes(p) for p in paths),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def hasher(paths: list[Path], files: list[ModelFile]) -> float:
    began = time.perf_counter()
    with PoolHasher(lambda _path, _sha256: None) as pool:
        for path, file in zip(paths, files, strict=True):
            pool.submit(HashJob(path=path, file=file))
        results = pool.results()
    assert all(report.status is FileStatus.VERIFIED for _, report in results)
    return time.perf_counter() - began


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 4) * 1e9) // FILES
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        paths = [Path(folder) / f"{n}.safetensors" for n in range(FILES)]
        block = os.urandom(1 << 24)
        for path in paths:
            with path.open("wb") as stream:
                for _ in range(size >> 24):
                    stream.write(block)
        sums = subprocess.run(
            ["sha256sum", *map(str, paths)], capture_output=True, text=True, check=True
        ).stdout
        files = [
            ModelFile(path=p.name, size_bytes=p.stat().st_size, sha256=line.split()[0])
            for p, line in zip(paths, sums.splitlines(), strict=True)
        ]
        total = sum(f.size_bytes for f in files)
        against_one, against_all = [], []
        for number in range(rounds):
            one, every, own = one_sha256sum(paths), openssl_on_all_cores(paths), hasher(paths, files)
            against_one.append(one / own)
            against_all.append(every / own)
            print(
                f"round {number + 1}: sha256sum {total / one / 1e9:.2f} GB/s, {usable_cores()} openssl at once "
                f"{total / every / 1e9:.2f} GB/s, dflashctl {total / own / 1e9:.2f} GB/s"
            )
        print(
            f"median of {rounds}: {statistics.median(against_one):.2f} times one sha256sum, "
            f"{statistics.median(against_all):.2f} of {usable_cores()} openssl at once"
        )


if __name__ == "__main__":
    main()
