"""`profile list`: what can be served, and where each profile comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.profile_view import ProfileRow, ProfileRows
from dflashctl.core.report import Outcome, Report

if TYPE_CHECKING:
    from dflashctl.env import Env
    from dflashctl.ports.profiles import ProfileFile


def profile_list(env: Env) -> Report:
    """Every profile by name; one that cannot be read is a finding, the others are listed all the same."""
    rows, findings = [], []
    for file in env.profiles.list():
        if file.name == "reference":
            continue
        try:
            rows.append(_row(env, file))
        except DflashError as error:
            findings.append(
                Finding(
                    id="profile_unreadable", severity=Severity.WARNING, summary=error.message, fix=error.hint
                )
            )
    return Report(
        command="profile list",
        data=ProfileRows(profiles=tuple(rows)),
        outcome=Outcome.PARTIAL if findings else Outcome.OK,
        findings=tuple(findings),
        next_steps=("dflashctl up tiny-cpu", "dflashctl profile show NAME"),
    )


def _row(env: Env, file: ProfileFile) -> ProfileRow:
    profile = env.profiles.load(file.name).profile
    return ProfileRow(
        name=file.name,
        summary=profile.summary,
        engine=profile.engine.name.value,
        target=profile.target.label,
        draft=profile.draft.label if profile.draft else None,
        block_size=profile.speculative.block_size,
        gpus=profile.requirements.gpus,
        origin=file.origin,
        path=str(file.path),
    )
