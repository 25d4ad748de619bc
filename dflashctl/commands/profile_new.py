"""`profile new --from-command`: a published launch command becomes a profile; nothing of it is run."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dflashctl.core.errors import DflashError, EngineError, ExitCode, Permanent, UsageProblem
from dflashctl.core.findings import Severity
from dflashctl.core.new_profile import NewProfile
from dflashctl.core.profile_rules import NAME
from dflashctl.core.profile_text import profile_yaml
from dflashctl.core.release import release_named
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.engines.sglang import NEWEST_RELEASE
from dflashctl.engines.sglang.from_command import drafted, model_fields
from dflashctl.engines.sglang.paste import read_pasted
from dflashctl.ports.hub import TokenRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.engine import Translation
    from dflashctl.core.findings import Finding
    from dflashctl.engines.sglang.from_command import Drafted
    from dflashctl.env import Env

_COMMAND = "profile new"
_FIRST = ("summary", "engine.name", "engine.image")
_MODELS = ("target", "draft")


def profile_new(
    env: Env, *, name: str, text: str, engine_version: str | None = None, offline: bool = False
) -> Report:
    """The profile `name` made of the command in `text`, judged for a release (the newest).

    Commits come from the command, from profiles that pin the same repository, or from the hub unless `offline`.
    Exit 78 when the command is refused; outcome partial when a commit is missing from the file.
    """
    if not NAME.fullmatch(name):
        raise UsageProblem(
            f"{name!r} cannot name a profile", hint="use a-z, 0-9, '.', '_' and '-', at most 63"
        )
    release = NEWEST_RELEASE if engine_version is None else release_named(engine_version)
    draft = drafted(read_pasted(text), release)
    errors = tuple(f for f in draft.findings if f.severity is Severity.ERROR)
    if errors:
        return _refused(draft, errors)
    fields, unpinned = _with_models(env, draft.fields, offline=offline)
    made = NewProfile(
        name=name,
        text=profile_yaml(_ordered(fields), _comments(draft, unpinned)),
        translations=draft.translations,
        unpinned=unpinned,
    )
    return Report(
        command=_COMMAND,
        data=made,
        outcome=Outcome.PARTIAL if unpinned else Outcome.OK,
        findings=draft.findings,
        next_steps=(f"dflashctl profile validate {name}.yaml", f"dflashctl profile explain {name}.yaml"),
    )


def _refused(draft: Drafted, errors: tuple[Finding, ...]) -> Report:
    return Report(
        command=_COMMAND,
        outcome=Outcome.FAILED,
        exit_code=ExitCode.PERMANENT,
        findings=draft.findings,
        errors=tuple(ErrorInfo.of(EngineError(f.summary, hint=f.fix, detail=f.detail)) for f in errors),
    )


def _with_models(
    env: Env, fields: Mapping[str, Any], *, offline: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields with both models as the profile names them, and repositories without a commit."""
    found = {key: value for key, value in fields.items() if key.split(".")[0] not in _MODELS}
    unpinned = []
    for role in _MODELS:
        model = model_fields(str(fields[role]), fields.get(f"{role}.revision"))
        if "repo" in model and "revision" not in model:
            commit = _pinned(env, model["repo"]) or (None if offline else _latest(env, model["repo"]))
            unpinned += [] if commit else [model["repo"]]
            model["revision"] = commit or "0" * 40
        found.update({f"{role}.{key}": value for key, value in model.items()})
        trust = f"{role}.trust_remote_code"
        found.update({trust: fields[trust]} if trust in fields else {})
    return found, tuple(unpinned)


def _pinned(env: Env, repo: str) -> str | None:
    """The commit that a profile which is there already pins for `repo`."""
    for file in env.profiles.list():
        try:
            profile = env.profiles.load(file.name).profile
        except DflashError:
            continue
        for ref in (profile.target, profile.draft):
            if ref is not None and ref.repo == repo and ref.revision:
                return ref.revision
    return None


def _latest(env: Env, repo: str) -> str | None:
    """The commit that the hub gives for `repo` now; None when it cannot be asked."""
    try:
        return env.hub.listing(repo, None, TokenRules(), lambda _event: None).commit
    except DflashError:
        return None


def _ordered(fields: Mapping[str, Any]) -> dict[str, Any]:
    target, draft = (
        fields.get("target.repo", fields.get("target.path")),
        fields.get("draft.repo", fields.get("draft.path")),
    )
    head = {"summary": f"{target} with {draft}, from a launch command", "engine.name": "sglang", **fields}
    sections = (*_FIRST, "target", "draft", "speculative", "backends", "parallel", "memory", "server")
    order = {section: place for place, section in enumerate(sections)}

    def place(path: str) -> int:
        return order.get(path, order.get(path.split(".", maxsplit=1)[0], len(order)))

    return {path: head[path] for path in sorted(head, key=place)}


def _comments(draft: Drafted, unpinned: tuple[str, ...]) -> tuple[str, ...]:
    lines = ["Made from a launch command."]
    lines += [_told(translation) for translation in draft.translations]
    lines += [finding.summary for finding in draft.findings if finding.severity is Severity.NOTE]
    lines += [f"TO DO: replace the zeros by the commit of {repo} that you mean." for repo in unpinned]
    return tuple(lines)


def _told(translation: Translation) -> str:
    return f"{translation.from_} -> {translation.to or 'left out'}: {translation.reason}"


def profile_new_from(
    env: Env, *, name: str, source: str, engine_version: str | None, offline: bool, output: str | None
) -> Report:
    """As profile_new, for a command given as text, as a file or as "-" for standard input; `output` is written once."""
    if output is not None and os.path.exists(env.cwd / output):
        raise UsageProblem(f"{output!r} exists already", hint="name another file: -o FILE")
    text = env.read_input(source)
    report = profile_new(env, name=name, text=text, engine_version=engine_version, offline=offline)
    if output is None or not isinstance(report.data, NewProfile):
        return report
    try:
        (env.cwd / output).write_text(report.data.text, encoding="utf-8")
    except OSError as error:
        raise Permanent(
            f"{output!r} cannot be written: {error.strerror}", hint="name another file: -o FILE"
        ) from error
    named = shlex.quote(output)
    return replace(
        report,
        data=replace(report.data, path=output),
        next_steps=(f"dflashctl profile explain {named}", f"dflashctl up {named} --dry-run"),
    )
