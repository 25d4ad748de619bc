"""Peak memory of a fetch: python tests/benchmarks/weights_memory.py [FILES] [SPARSE_GB].

One fetch of a repository with that many files from the fake Hub, and one proof of a local model whose one weight file
is sparse and that large. Prints the largest resident set of any process and fails above 300 MB.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.weights import hub_kit

LIMIT_BYTES = 300e6
DFLASHCTL = str(Path(sys.executable).parent / "dflashctl")


def measured(command: list[str], **how: object) -> tuple[float, int]:
    """Seconds, and the peak of the command or of any process that it waited for, in bytes."""
    began = time.perf_counter()
    process = os.fork()
    if process == 0:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
        sys.stderr.write(done.stderr if done.returncode else "")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        Path(how["env"]["PEAK"]).write_text(f"{peak} {done.returncode}")
        os._exit(0)
    os.waitpid(process, 0)
    peak, code = Path(how["env"]["PEAK"]).read_text().split()
    assert code == "0", f"exit {code}"
    return time.perf_counter() - began, int(peak) * 1024


def many_files(folder: Path, count: int) -> tuple[float, int]:
    kit, hub = hub_kit.start(folder, sys.executable)
    root = kit.folder / "repos" / "many"
    hub_kit.make_target(root, shards=1)
    weight_map = {}
    for number in range(count):
        name = f"part-{number:05}.safetensors"
        hub_kit.safetensors(root / name, {f"t{number}": (4, 64)})
        weight_map[f"t{number}"] = name
    (root / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    kit.control["repos"][hub_kit.TARGET]["root"] = str(root)
    kit.save()
    try:
        return measured(
            [DFLASHCTL, "fetch", "pair"], env={**kit.environ, "PEAK": str(folder / "peak")}, cwd=kit.folder
        )
    finally:
        hub.kill()
        hub.communicate()


def sparse_file(folder: Path, gigabytes: int) -> tuple[float, int]:
    place = folder / "profiles"
    place.mkdir()
    hub_kit.make_target(place / "big", shards=1)
    hub_kit.make_draft(place / "draft")
    weights = place / "big" / "model-00001-of-00001.safetensors"
    size = gigabytes * 1_000_000_000
    header = json.dumps({"t": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    weights.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(weights, 8 + len(header) + size)
    (place / "pair.yaml").write_text(
        "summary: sparse\nengine: {name: sglang}\ntarget: {path: big}\ndraft: {path: draft}\n"
    )
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "PEAK": str(folder / "peak")}
    return measured([DFLASHCTL, "fetch", "pair"], env=environ, cwd=folder)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    gigabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    for name, run in (
        (f"{count} files", lambda f: many_files(f, count)),
        (f"a sparse file of {gigabytes} GB", lambda f: sparse_file(f, gigabytes)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            seconds, peak = run(Path(folder))
        print(f"{name}: at most {peak / 1e6:.0f} MB in {seconds:.0f} s")
        assert peak < LIMIT_BYTES, name


if __name__ == "__main__":
    main()
