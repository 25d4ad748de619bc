"""Makes the catalogue of SGLang releases from the released wheels; adding a release is one run of this script.

    python -m dflashctl.engines.sglang.make_catalogue --work DIR --python ENV/bin/python 0.5.24

ENV has a CPU build of torch and the packages of tests/engines/parsers-requirements.txt. Each wheel is
downloaded with pip (or taken from DIR/wheels), unpacked into DIR/src, imported by `introspect.py --light` in
ENV, and its sources are scanned. Releases that the data has already are kept unless named again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.engines.sglang import scan
from dflashctl.engines.sglang.identify import parser_hash
from dflashctl.engines.sglang.options import from_dump, to_data
from dflashctl.engines.sglang.runs import fold, number, unfold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

HERE = Path(__file__).parent
DATA = HERE / "data"
Record = dict[str, Any]


def main(argv: list[str]) -> int:
    """Read the named releases and write the data files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for wheels and sources, outside the repository"
    )
    parser.add_argument("--python", required=True, help="interpreter of the light environment")
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args(argv)
    fresh = {release: read_release(release, args.work, args.python) for release in args.releases}
    write(fresh, args.data)
    return 0


def read_release(release: str, work: Path, python: str) -> Record:
    """All that is known of one release: options, environment variables, models, marks and wheel date."""
    root = unpack(release, work, python)
    texts = dict(scan.sources(root / "sglang" / "srt"))
    marks = json.loads((HERE / "marks.json").read_text())
    literals = tuple(literal for group in ("log", "endpoint", "request") for literal in marks[group])
    dump = introspect(root, python)
    sys.stderr.write(f"{release}: {len(dump['options'])} options\n")
    return {
        "facts": {"date": wheel_date(work, release), "parser": parser_hash(str(root / "sglang"))},
        "options": dump["options"],
        "environment": scan.environment(texts),
        "models": scan.models(root / "sglang" / "srt" / "models"),
        "marks": scan.containing(texts, literals),
    }


def unpack(release: str, work: Path, python: str) -> Path:
    """The folder with the release's sources, fetched and unpacked when it is not there."""
    root = work / "src" / release
    if not (root / "sglang").is_dir():
        with zipfile.ZipFile(fetch(release, work, python)) as wheel:
            wheel.extractall(root)
    return root


def fetch(release: str, work: Path, python: str) -> Path:
    """The release's wheel in DIR/wheels, downloaded without its dependencies when it is not there."""
    folder = work / "wheels"
    if not any(folder.glob(f"sglang-{release}-*.whl")):
        command = [
            python,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            f"sglang=={release}",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return next(folder.glob(f"sglang-{release}-*.whl"))


def wheel_date(work: Path, release: str) -> str | None:
    """When the wheel was built, from the newest file in it."""
    for path in (work / "wheels").glob(f"sglang-{release}-*.whl"):
        with zipfile.ZipFile(path) as wheel:
            newest = max(info.date_time for info in wheel.infolist())
        return "-".join(f"{part:02d}" for part in newest[:3])
    return None


def introspect(root: Path, python: str) -> Record:
    """The options of the release's own parser."""
    env = {**os.environ, "PYTHONPATH": str(root)}
    command = [python, str(HERE / "introspect.py"), "--light"]
    run = subprocess.run(command, env=env, check=True, capture_output=True, cwd=root)
    found: Record = json.loads(run.stdout.splitlines()[-1])
    return found


def write(fresh: Mapping[str, Record], data: Path) -> None:
    """Merge the fresh releases into the data files and write them, one line for each name."""
    known = _load(data / "releases.json")
    facts = {**known, **{release: record["facts"] for release, record in fresh.items()}}
    releases = sorted(facts, key=number)
    data.mkdir(exist_ok=True)
    _dump(data / "releases.json", facts)
    _merge(data / "options.json", known, releases, {r: _options(f["options"]) for r, f in fresh.items()})
    for part, take in _PARTS.items():
        _merge(data / f"{part}.json", known, releases, {r: take(f[part]) for r, f in fresh.items()})
    newest = max(fresh, key=number)
    help_ = {option["strings"][0]: option["help"] for option in fresh[newest]["options"] if option["help"]}
    _dump(data / "help.json", {**_load(data / "help.json"), **help_})


def _names(names: Iterable[str]) -> dict[str, Any]:
    return dict.fromkeys(sorted(names), True)


def _hooks(models: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    return {name: list(hooks) for name, hooks in models.items()}


_PARTS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "environment": _names,
    "models": _hooks,
    "marks": _names,
}


def _options(dump: Iterable[Record]) -> dict[str, Any]:
    return {option.strings[0]: to_data(option) for option in map(from_dump, dump)}


def _merge(
    path: Path, known: Iterable[str], releases: list[str], fresh: Mapping[str, dict[str, Any]]
) -> None:
    by_name: dict[str, dict[str, Any]] = {}
    before = sorted(known, key=number)
    for name, runs in _load(path).items():
        kept = {r: value for r, value in unfold(before, runs).items() if r not in fresh}
        by_name[name] = kept
    for release, values in fresh.items():
        for name, value in values.items():
            by_name.setdefault(name, {})[release] = value
    _dump(path, {name: fold(releases, values) for name, values in by_name.items() if values})


def _load(path: Path) -> Record:
    if not path.exists():
        return {}
    found: Record = json.loads(path.read_text())
    return found


def _dump(path: Path, content: Mapping[str, Any]) -> None:
    """One name a line, sorted, so that a new release shows as the lines that it changed."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(content.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
