"""Where the files that ship with dflashctl lie: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path


def shipped_folder(kind: str) -> Path:
    """The folder of `kind`: "profiles", "templates" or "completions"."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "shipped" / kind
    return installed if installed.is_dir() else package.parent / kind
