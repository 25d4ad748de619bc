"""Signature store: the signatures that ship with dflashctl, one YAML file each."""

from __future__ import annotations

from pathlib import Path

import yaml

from dflashctl.core.decode import decode
from dflashctl.core.diagnose import Signature

FOLDER = Path(__file__).resolve().parent.parent / "signatures"


def load_signatures(folder: Path = FOLDER) -> tuple[Signature, ...]:
    """All of them by name; the file's name is the signature's id."""
    return tuple(_load(path) for path in sorted(folder.glob("*.yaml")))


def _load(path: Path) -> Signature:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return decode(Signature, {"id": path.stem, **content}, at=path.name)
