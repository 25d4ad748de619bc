"""up: the plan of a dry run, or what came up and where it is reached."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.plan import Plan
from dflashctl.core.up_result import UpResult
from dflashctl.ui.views.proofs import proof_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    if isinstance(report.data, Plan):
        return plan_lines(report.data, refused=bool(report.errors))
    assert isinstance(report.data, UpResult)
    return result_lines(report.data)


def plan_lines(plan: Plan, *, refused: bool) -> list[RenderableType]:
    """The facts of the plan, then the command as it can be pasted, then what was changed and why."""
    facts = Table.grid(padding=(0, 2))
    for key, value in _facts(plan):
        facts.add_row(Text(key, style="key"), value)
    lines: list[RenderableType] = [facts]
    if not refused:
        lines += [Text(""), command_text(plan)]
    if plan.translations:
        lines += [Text(""), Text("changed for this release:", style="heading")]
        lines += [_translation(t.from_, t.to, t.reason) for t in plan.translations]
    return lines


def command_text(plan: Plan) -> str:
    """The command in shell words, one option a line."""
    words = [f"{key}={shlex.quote(value)}" for key, value in plan.env]
    groups: list[list[str]] = []
    for word in plan.argv:
        if word.startswith("--") or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return " \\\n  ".join([*words, *(shlex.join(group) for group in groups)])


def result_lines(result: UpResult) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if result.ready:
        how = "already up" if result.already_up else "ready"
        lines.append(Text.assemble((f"{how}  ", "ok"), f"{result.name} at {result.url}"))
    else:
        lines.append(Text.assemble((f"{result.phase}  ", "heading"), result.name))
    # After a run in front the proofs were shown when they were made.
    return [*lines, *(proof_lines(result.proofs) if result.ready else [])]


def _facts(plan: Plan) -> list[tuple[str, str]]:
    draft = plan.draft.model if plan.draft else "none (no speculation)"
    return [
        ("profile", plan.profile),
        ("engine", f"{plan.engine} {plan.engine_version}" + (f" in {plan.image}" if plan.image else "")),
        ("target", _model(plan.target.model, plan.target.revision)),
        ("draft", _model(draft, plan.draft.revision if plan.draft else None)),
        (
            "block size",
            str(plan.block_size or "-")
            + (f", draft window {plan.draft_window_size}" if plan.draft_window_size else ""),
        ),
        ("gpus", ", ".join(plan.gpus) or "none"),
        ("listens on", f"{plan.host}:{plan.port}"),
        ("fingerprint", plan.fingerprint),
    ]


def _model(model: str, revision: str | None) -> str:
    return f"{model} @ {revision[:12]}" if revision else model


def _translation(before: str, after: str, reason: str) -> Text:
    change = f"{before} → {after}" if after else f"{before} dropped"
    return Text.assemble(f"  {change}", ("  " + reason, "detail"))
