"""Start-up: each command against `python -c pass` of the same interpreter, in turns; prints medians and ratios.

python tests/benchmarks/startup.py [ROUNDS]
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HELLO = (
    'import typer\napp = typer.Typer()\n@app.command()\ndef main(name: str = "x"):\n    """Hello."""\napp()\n'
)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    folder = Path(tempfile.mkdtemp())
    (folder / "hello.py").write_text(HELLO)
    tool = str(Path(sys.executable).parent / "dflashctl")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "dflashctl --version": [tool, "--version"],
        "dflashctl --help": [tool, "--help"],
        "dflashctl __complete profiles": [tool, "__complete", "profiles"],
        "dflashctl status --json": [tool, "status", "--json"],
        "typer hello --help": [sys.executable, str(folder / "hello.py"), "--help"],
        "dflashctl up --help": [tool, "up", "--help"],
        "dflashctl status --help": [tool, "status", "--help"],
        "dflashctl profile list --help": [tool, "profile", "list", "--help"],
        "dflashctl doctor --help": [tool, "doctor", "--help"],
    }
    environment = {**os.environ, "HOME": str(folder)}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 2):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=False
            )
            times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(values[2:]) for name, values in times.items()}
    base, hello = medians["python -c pass"], medians["typer hello --help"]
    print(f"{'command':32} {'median':>9} {'x python -c pass':>17} {'x typer hello':>14}")
    for name, median in medians.items():
        print(f"{name:32} {median * 1000:6.1f} ms {median / base:17.2f} {median / hello:14.2f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
