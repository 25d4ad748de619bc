"""The reference engine as a real server on a free port."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from tempfile import TemporaryFile

from dflashctl.reference import tiny_paths


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def reference_server(*, block_size: int = 8, speculation: bool = True, args: tuple[str, ...] = ()):
    """The URL of a running tiny pair; `speculation=False` starts it as a server without."""
    target, draft = tiny_paths()
    port = _free_port()
    spec = (
        *("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", str(draft)),
        *("--speculative-dflash-block-size", str(block_size)),
    )
    argv = [sys.executable, "-m", "dflashctl.reference", "--model-path", str(target), "--port", str(port)]
    argv += [*(spec if speculation else ()), "--enable-metrics", *args]
    with TemporaryFile() as log, subprocess.Popen(argv, stdout=log, stderr=log) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            end = time.monotonic() + 60
            while not _ready(url):
                if server.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise AssertionError(re.sub(rb"\n+", b"\n", log.read()).decode(errors="replace")[-2000:])
                time.sleep(0.05)
            yield url
        finally:
            server.terminate()
            server.wait(timeout=30)
