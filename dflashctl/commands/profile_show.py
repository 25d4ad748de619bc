"""`profile show` and `profile validate`: the text of a profile, and whether it is one."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from dflashctl.core.errors import ExitCode, ProfileError
from dflashctl.core.json_schema import profile_schema
from dflashctl.core.profile_view import ProfileText, ProfileVerdict, ProfileVerdicts
from dflashctl.core.report import ErrorInfo, Outcome, Report

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
    """Loads every profile; each bad one is an error that tells all its problems with file and line, exit 78."""
    judged = [_judged(env, name) for name in names]
    verdicts = [one for one in judged if isinstance(one, ProfileVerdict)]
    errors = [one for one in judged if isinstance(one, ProfileError)]
    first = shlex.quote(names[0])  # as it was named: a file that no search finds has no other name
    good_steps = (f"dflashctl up {first} --dry-run", f"dflashctl profile explain {first}")
    hints = dict.fromkeys(e.hint for e in errors if e.hint and e.hint.startswith("dflashctl "))
    return Report(
        command="profile validate",
        data=ProfileVerdicts(profiles=tuple(verdicts)) if verdicts else None,
        outcome=Outcome.FAILED if errors else Outcome.OK,
        exit_code=ExitCode.PERMANENT if errors else ExitCode.OK,
        errors=tuple(map(ErrorInfo.of, errors)),
        next_steps=tuple(hints) if errors else good_steps,
    )


def _judged(env: Env, name: str) -> ProfileVerdict | ProfileError:
    try:
        loaded = env.profiles.load(name)
    except ProfileError as error:
        return error
    return ProfileVerdict(name=loaded.profile.name, path=str(loaded.file.path))


def profile_schema_report() -> Report:
    """The schema as text: indented JSON, so that it can be redirected into a file."""
    text = json.dumps(profile_schema(), indent=2)
    return Report(
        command="profile schema", data=ProfileText(name="schema", path="", origin="shipped", text=text)
    )
