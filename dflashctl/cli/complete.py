"""`dflashctl __complete profiles|instances`: names for the shell, importing next to nothing."""

from __future__ import annotations

import os
import sys


def complete(words: list[str]) -> int:
    """Print the names, one a line; an unknown question has no answer."""
    finders = {"profiles": _profiles, "instances": _instances}
    find = finders.get(words[0]) if words else None
    for name in sorted(find() if find else ()):
        sys.stdout.write(f"{name}\n")
    return 0


def _profiles() -> set[str]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    user = os.environ.get("DFLASHCTL_CONFIG_DIR") or os.path.join(config, "dflashctl")
    folders = (
        "profiles",
        os.path.join(user, "profiles"),
        os.path.join(package, "shipped", "profiles"),
        os.path.join(os.path.dirname(package), "profiles"),
    )
    names = {name for folder in folders for name in _names(folder)}
    return {os.path.splitext(name)[0] for name in names if name.endswith((".yaml", ".yml"))} - {"reference"}


def _instances() -> set[str]:
    from dflashctl.edges.places import state_folder

    return set(_names(os.path.join(state_folder(os.environ), "v1", "instances")))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
