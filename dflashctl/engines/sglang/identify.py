"""Stand-alone script: says which SGLang an interpreter has, from metadata and files, without importing it.

Nothing of dflashctl is imported, so any interpreter can run it. Output: one JSON object on standard output:
`version` (null: there is none), `direct_url` (how it was installed, when not from an index), `record` (hash of
RECORD), `root` (the package's folder) and `parser` (hash of the sources that make its command line).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import sys


def parser_hash(root: str) -> str | None:
    """Hash over srt/server_args.py and srt/arg_groups, names included; None when there is no such file."""
    base = os.path.join(root, "srt")
    names = ["server_args.py"]
    for folder, _, files in os.walk(os.path.join(base, "arg_groups")):
        names += [os.path.relpath(os.path.join(folder, name), base) for name in files if name.endswith(".py")]
    total = hashlib.sha256()
    try:
        for name in sorted(names):
            with open(os.path.join(base, name), "rb") as source:
                total.update(name.encode() + b"\0" + hashlib.sha256(source.read()).digest())
    except OSError:
        return None
    return total.hexdigest()


def identify() -> dict[str, object]:
    """What this interpreter has."""
    spec = importlib.util.find_spec("sglang")
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        return {"version": None}
    found: dict[str, object] = {"version": "unknown", "root": places[0], "parser": parser_hash(places[0])}
    try:
        distribution = importlib.metadata.distribution("sglang")
    except importlib.metadata.PackageNotFoundError:
        return found
    found["version"] = distribution.version
    direct = distribution.read_text("direct_url.json")
    found["direct_url"] = json.loads(direct).get("url") if direct else None
    record = distribution.read_text("RECORD")
    found["record"] = hashlib.sha256(record.encode()).hexdigest() if record else None
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(identify()) + "\n")
