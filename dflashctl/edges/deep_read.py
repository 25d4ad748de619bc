"""Stand-alone script: read the largest weight file of a folder past the page cache; one JSON object on stdout.

A process of its own, since a read from a network disk that is gone never returns. Imports nothing of dflashctl.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

_READ_BYTES = 1 << 30
_CHUNK_BYTES = 16 << 20
# A slow disk is measured by what it gave until then.
_ENOUGH_S = 30.0


def largest(folder: Path) -> Path | None:
    return max(folder.glob("*.safetensors"), key=lambda file: file.stat().st_size, default=None)


def measure(path: Path) -> dict[str, object]:
    """Bytes and seconds, after asking the kernel to forget the file's pages; no figure of less than one chunk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        begin, read = time.monotonic(), 0
        while read < _READ_BYTES and time.monotonic() - begin < _ENOUGH_S:
            chunk = os.read(handle, _CHUNK_BYTES)
            if not chunk and read < _CHUNK_BYTES:
                return {"skipped": "the weights are too small to measure with"}
            if not chunk:
                break
            read += len(chunk)
        return {"path": str(path), "bytes": read, "seconds": time.monotonic() - begin}
    finally:
        os.close(handle)


def main() -> None:
    try:
        path = largest(Path(sys.argv[1]))
        answer = measure(path) if path else {"skipped": "no weights on disk yet"}
    except OSError as error:
        answer = {"error": f"{error.filename or sys.argv[1]}: {error.strerror}"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
