"""Fetching from the fake Hub against `hf download`, in turn: python tests/benchmarks/weights_fetch.py [MB] [ROUNDS] [MB/S].

Both fetch the same two repositories into an empty cache with eight files at once. `hf download` is timed as two runs,
one a model, since it takes one repository; dflashctl also verifies every byte. The third argument limits the Hub's
rate for each connection, as a network would; without it both only meet this machine's cores. CPU seconds are told too,
since they stay comparable on a busy machine.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.weights import hub_kit

SHARDS = 16
HF = Path(sys.executable).parent / "hf"
DFLASHCTL = Path(sys.executable).parent / "dflashctl"


def hf_download(kit: hub_kit.Kit) -> float:
    began = time.perf_counter()
    for repo, commit in ((hub_kit.TARGET, hub_kit.TARGET_COMMIT), (hub_kit.DRAFT, hub_kit.DRAFT_COMMIT)):
        command = [str(HF), "download", repo, "--revision", commit, "--quiet"]
        command += [word for pattern in ("*.bin", "*.py", "*.md") for word in ("--exclude", pattern)]
        subprocess.run(command, env=kit.environ, cwd=kit.folder, capture_output=True, check=True)
    return time.perf_counter() - began


def own_fetch(kit: hub_kit.Kit) -> float:
    began = time.perf_counter()
    subprocess.run(
        [str(DFLASHCTL), "fetch", "pair"], env=kit.environ, cwd=kit.folder, capture_output=True, check=True
    )
    return time.perf_counter() - began


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def complete(kit: hub_kit.Kit) -> None:
    """Both must have brought the same weights, or the comparison means nothing."""
    for path in kit.root().glob("*.safetensors"):
        assert (kit.snapshot() / path.name).stat().st_size == path.stat().st_size
    assert (kit.snapshot(hub_kit.DRAFT, hub_kit.DRAFT_COMMIT) / "model.safetensors").exists()


def emptied(kit: hub_kit.Kit) -> None:
    shutil.rmtree(kit.folder / "hf", ignore_errors=True)
    shutil.rmtree(kit.folder / "state", ignore_errors=True)
    kit.lock.unlink(missing_ok=True)


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        kit, process = hub_kit.start(Path(folder), sys.executable)
        try:
            side = megabytes * 1_000_000 // SHARDS // 128
            kit.control["repos"][hub_kit.TARGET]["root"] = str(
                hub_kit.make_target(kit.folder / "repos" / "large", shards=SHARDS, side=side)
            )
            kit.control["rate_bytes_per_s"] = float(sys.argv[3]) * 1e6 if len(sys.argv) > 3 else None
            kit.save()
            # The fake Hub hashes its files at the first listing: nobody's transfer should wait for that.
            subprocess.run(
                [str(DFLASHCTL), "fetch", "pair", "--plan"],
                env=kit.environ,
                cwd=kit.folder,
                capture_output=True,
                check=True,
            )
            ratios = []
            for number in range(rounds):
                emptied(kit)
                start_s = cpu_s()
                theirs = hf_download(kit)
                middle_s = cpu_s()
                complete(kit)
                emptied(kit)
                ours = own_fetch(kit)
                work = (middle_s - start_s, cpu_s() - middle_s)
                complete(kit)
                ratios.append(theirs / ours)
                print(
                    f"round {number + 1}: hf download {theirs:.2f} s ({work[0]:.2f} s of CPU), "
                    f"dflashctl fetch {ours:.2f} s ({work[1]:.2f} s of CPU), {ratios[-1]:.2f} times"
                )
            print(
                f"median of {rounds}: {statistics.median(ratios):.2f} times the speed of hf download ({megabytes} MB)"
            )
        finally:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    main()
