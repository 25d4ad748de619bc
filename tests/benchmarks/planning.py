"""Planning: what making a plan for a known release costs, against `launch_server --help` of SGLang.

    python tests/benchmarks/planning.py [ROUNDS] [PARSERS]

PARSERS is the folder of `bash .ci/parsers.sh`; without it the ratio to SGLang is left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# In a fresh interpreter: imports of the engine knowledge and the first plan, then a second plan.
CHILD = """
import json, time
from pathlib import Path
from dflashctl.core.engine import EngineBuild
from dflashctl.core.machine import Gpu, Machine
from dflashctl.core.plan import PlanOptions, make_plan
from dflashctl.edges.profile_store import FileProfileStore
profile = FileProfileStore(cwd=Path("/"), environ={"HOME": "/"}).load("kimi-k3-b300").profile
gpus = tuple(Gpu(index=i, uuid=f"GPU-{i}", name="NVIDIA B300", memory_total_bytes=1, compute_capability=(10, 3)) for i in range(8))
times = []
began = time.perf_counter()
from dflashctl.engines import ENGINES
from dflashctl.engines.sglang import catalogue
imported = time.perf_counter()
catalogue.catalogue("0.5.23")
times += [imported - began, time.perf_counter() - imported]
for _ in range(2):
    began = time.perf_counter()
    make_plan(profile, Machine(gpus=gpus), ENGINES["sglang"], EngineBuild(release="0.5.23"), PlanOptions())
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""
PARTS = ("import the engine knowledge", "load the catalogue", "first plan", "second plan")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    samples = [_child() for _ in range(rounds + 1)][1:]
    medians = [statistics.median(column) for column in zip(*samples, strict=True)]
    for part, median in zip(PARTS, medians, strict=True):
        print(f"{part:32} {median * 1000:8.1f} ms")
    total = sum(medians[:3])
    print(f"{'beyond start-up, in all':32} {total * 1000:8.1f} ms")
    if len(sys.argv) > 2:
        asked = _sglang(Path(sys.argv[2]))
        print(f"{'SGLang 0.5.23 launch_server --help':32} {asked * 1000:8.1f} ms   {asked / total:.0f} x")


def _child() -> list[float]:
    run = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, cwd=ROOT)
    times: list[float] = json.loads(run.stdout)
    return times


def _sglang(folder: Path) -> float:
    """Seconds of `python -m sglang.launch_server --help`: the least that asking the engine can cost."""
    command = [folder / "env" / "bin" / "python", "-m", "sglang.launch_server", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src" / "0.5.23")}
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
