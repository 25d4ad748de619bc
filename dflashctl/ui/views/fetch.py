"""fetch: the verdict, then a table of both models, the plan's numbers, and the code that would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.model_files import BAD
from dflashctl.core.report import Outcome
from dflashctl.core.weights import FetchData
from dflashctl.ui.progress_line import bytes_text, elapsed_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report
    from dflashctl.core.weights import ModelPlan, WeightsPlan


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, FetchData)
    data = report.data
    lines: list[RenderableType] = [_verdict(report, data), _models(data.models)]
    if data.plan is not None and (data.only_plan or data.plan.wanted_bytes):
        lines += _numbers(data.plan)
    lines += _bad(data.models)
    lines += _code(data.models)
    lines += [Text(f"set aside: {place}", style="detail") for place in data.set_aside]
    if data.lock is not None:
        lines.append(Text(f"lock: {data.lock}", style="detail"))
    return lines


def _verdict(report: Report, data: FetchData) -> Text:
    if report.outcome is Outcome.FAILED:
        return Text.assemble(("FAIL ", "error"), f"the weights of {data.profile} are not ready")
    if data.only_plan:
        wanted = data.plan.wanted_bytes if data.plan else 0
        what = f"{bytes_text(wanted)} to fetch" if wanted else "nothing to fetch"
        return Text.assemble(("ok   ", "ok"), f"{data.profile}: {what}")
    parts = [f"the weights of {data.profile} are here and proven"]
    if data.transferred_bytes:
        parts.append(
            f"{bytes_text(data.transferred_bytes)} fetched{_in(data.transfer_s)} by {data.transport}"
        )
    if data.verified_bytes:
        parts.append(f"{bytes_text(data.verified_bytes)} verified{_in(data.verify_s)}")
    if data.restarts:
        parts.append(f"{data.restarts} restart after a stall")
    if data.orphans_bytes:
        parts.append(f"{bytes_text(data.orphans_bytes)} of dead transfers removed")
    return Text.assemble(("ok   ", "ok"), "; ".join(parts))


def _in(seconds: float | None) -> str:
    return f" in {elapsed_text(seconds)}" if seconds is not None else ""


def _models(models: tuple[ModelPlan, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="heading")
    for heading in ("", "MODEL", "COMMIT", "FILES", "SIZE", "MISSING", "IN"):
        table.add_column(heading, no_wrap=heading != "IN", overflow="fold")
    for model in models:
        table.add_row(
            model.role,
            Text(model.label, style="key"),
            model.commit[:12] if model.commit else "-",
            str(len(model.files)),
            bytes_text(model.total_bytes),
            f"{len(model.wanted)} files, {bytes_text(model.wanted_bytes)}" if model.wanted else "-",
            model.folder,
        )
    return table


def _numbers(plan: WeightsPlan) -> list[RenderableType]:
    rows = []
    if plan.room is not None:
        rows.append(
            f"disk: {bytes_text(plan.needed_bytes)} needed with the margin, {bytes_text(plan.room.free_bytes)} free"
            f" on {plan.room.mount} (cache {plan.room.path})"
        )
    if plan.wanted_bytes:
        rate = plan.rate_bytes_per_s
        time = (
            f"about {elapsed_text(plan.expected_s)} at the {bytes_text(rate)}/s of the last fetch"
            if rate and plan.expected_s is not None
            else "unknown before the first fetch from here"
        )
        rows.append(f"time: {time}")
    access = plan.access
    token = f"token from {access.token}" if access.token else "no token"
    withheld = " (not sent to this endpoint)" if access.token and not access.sends_token else ""
    rows.append(f"hub: {access.endpoint}{' (offline)' if access.offline else ''}, {token}{withheld}")
    return [Text(row, style="detail") for row in rows]


def _bad(models: tuple[ModelPlan, ...]) -> list[RenderableType]:
    return [
        Text.assemble(
            ("bad  ", "error"), f"{model.folder}/{report.file.path}: {report.detail or report.status.value}"
        )
        for model in models
        for report in model.files
        if report.status in BAD
    ]


def _code(models: tuple[ModelPlan, ...]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for model in models:
        if model.code:
            lines.append(Text(f"code that runs with {model.label}:", style="heading"))
            lines += [Text(f"  {c.sha256 or 'known after the fetch':64}  {c.path}") for c in model.code]
    return lines
