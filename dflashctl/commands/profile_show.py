"""`profile show` and `profile validate`: the text of a profile, and whether it is one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dflashctl.core.json_schema import profile_schema
from dflashctl.core.profile_view import ProfileText, ProfileVerdict, ProfileVerdicts
from dflashctl.core.report import Report

if TYPE_CHECKING:
    from dflashctl.env import Env


def profile_show(env: Env, name: str) -> Report:
    """The profile's file as it stands; `reference` is the commented schema."""
    file = env.profiles.find(name)
    return Report(
        command="profile show",
        data=ProfileText(
            name=file.name, path=str(file.path), origin=file.origin, text=env.profiles.read_text(file)
        ),
    )


def profile_validate(env: Env, names: tuple[str, ...]) -> Report:
    """Loads each profile; ProfileError tells every problem of the first bad one with file and line."""
    verdicts = []
    for name in names:
        loaded = env.profiles.load(name)
        verdicts.append(ProfileVerdict(name=loaded.profile.name, path=str(loaded.file.path)))
    first = verdicts[0].name
    return Report(
        command="profile validate",
        data=ProfileVerdicts(profiles=tuple(verdicts)),
        next_steps=(f"dflashctl up {names[0]} --dry-run", f"dflashctl profile explain {first}"),
    )


def profile_schema_report() -> Report:
    """The schema as text: indented JSON, so that it can be redirected into a file."""
    text = json.dumps(profile_schema(), indent=2)
    return Report(
        command="profile schema", data=ProfileText(name="schema", path="", origin="shipped", text=text)
    )
