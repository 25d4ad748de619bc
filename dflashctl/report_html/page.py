"""The HTML page: what was measured, where, the table, the charts and the formulas, in one file."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dflashctl.core.bench_remarks import faults, notes
from dflashctl.core.client_line import client_line
from dflashctl.core.latency import DEFINITIONS
from dflashctl.report_html.charts import svg_charts
from dflashctl.report_html.series import all_runs, named_runs, server_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dflashctl.core.bench_setting import Provenance
    from dflashctl.core.run_view import DistributionView, RunFile, RunView

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 0 auto; max-width: 1240px; padding: 24px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 32px 0 8px; } h3 { font-size: 15px; margin: 0 0 4px; }
p.made { color: #666; margin: 0 0 16px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 7px; text-align: right; white-space: nowrap; border-bottom: 1px solid #e4e4e4; }
th { font-weight: 600; border-bottom: 2px solid #bbb; } td.left, th.left { text-align: left; }
td.reproduced, td.above, td.faster { color: #00674a; } td.below, td.slower { color: #a52a00; font-weight: 600; } td.unlike, td.unjudged { color: #7a5c00; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(520px, 1fr)); gap: 24px; }
figure { margin: 0; padding: 12px; border: 1px solid #e4e4e4; border-radius: 6px; } figure svg { width: 100%; height: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; font-size: 13px; margin: 0; } dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }
ul.warnings { color: #7a5c00; font-size: 13px; } ul.notes { font-size: 13px; }
@media print { figure { break-inside: avoid; } }
"""
_HEADINGS = (
    "Data set", "Server", "Load", "Done", "Accept length [95 %]", "Pooled", "Published", "Verdict",
    "Tok/s a request", "Tok/s in all", "TTFT ms p50 / p99", "TPOT ms p50 / p99", "E2E ms p50 / p99", "Speed-up",
)  # fmt: skip
_UNKNOWN = "-"


def page(files: tuple[RunFile, ...], title: str, made_at: str) -> str:
    """A whole document; every text from outside is escaped."""
    figures = "".join(
        f"<figure><h3>{escape(name)}</h3>{_titled(svg, name)}</figure>" for name, svg in svg_charts(files)
    )
    parts = (
        f"<h1>{escape(title)}</h1><p class='made'>made {escape(made_at)} by dflashctl bench report</p>",
        *(_section("Where it was measured", _origins(files)),),
        *(_section("Runs", f"<div class='wide'>{_table(files)}</div>{_warnings(files)}"),),
        *(_section("Charts", f"<div class='charts'>{figures}</div>"),),
        *(_section("How the figures are defined", _list(_definitions())),),
    )
    head = (
        "<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return f"<!doctype html>\n<html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}"


def _titled(svg: str, name: str) -> str:
    """The chart with a name that screen readers say."""
    return svg.replace("<svg", f"<svg role='img' aria-label='{escape(name, quote=True)}'", 1)


def _origins(files: tuple[RunFile, ...]) -> str:
    """One row a session; columns that nobody filled are left out."""
    rows = [dict(_origin(file, session)) for file in files for session in file.sessions]
    names = [name for name in _ORIGIN_NAMES if any(row.get(name) for row in rows)]
    head = "".join(f"<th class='left'>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td class=left>{escape(row.get(name) or _UNKNOWN)}</td>' for name in names)}</tr>"
        for row in rows
    )
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


_ORIGIN_NAMES = (
    "file", "measured", "profile", "target", "draft", "engine", "speculation", "GPUs", "chat template", "dflashctl",
)  # fmt: skip


def _origin(file: RunFile, session: Provenance) -> Iterable[tuple[str, str]]:
    yield "file", file.name
    yield "measured", session.started_at
    yield "profile", session.profile or ""
    yield "target", _named(session.target.name, session.target.revision)
    yield "draft", _named(session.draft.name, session.draft.revision) if session.speculative_algorithm else ""
    yield "engine", f"{session.engine or ''} {session.engine_version or 'unknown'}".strip()
    block = f", block {session.block_size}" if session.block_size else ""
    yield (
        "speculation",
        f"{session.speculative_algorithm}{block}" if session.speculative_algorithm else "none",
    )
    yield (
        "GPUs",
        f"{len(session.gpus)}x {session.gpus[0].name}, driver {session.driver or '?'}"
        if session.gpus
        else "",
    )
    yield "chat template", session.template_hash or ""
    yield "dflashctl", session.dflashctl_version


def _named(name: str | None, revision: str | None) -> str:
    return f"{name or 'unknown'}{f' @ {revision[:12]}' if revision else ''}"


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in pairs)}</dl>"


def _table(files: tuple[RunFile, ...]) -> str:
    head = "".join(f"<th{_left(index)}>{escape(name)}</th>" for index, name in enumerate(_HEADINGS))
    rows = "".join(f"<tr>{_cells(prefix, run)}</tr>" for prefix, run in all_runs(files))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _left(index: int) -> str:
    return " class='left'" if index < 2 else ""  # noqa: PLR2004 - the two columns of names


def _cells(prefix: str, run: RunView) -> str:
    verdict = next((e for e in run.expectations if e.metric == "accept_length"), None)
    speed = run.speedup.aggregate if run.speedup else None
    classes = {7: verdict.verdict if verdict else "", 13: _speed_class(speed)}
    cells = (
        prefix + run.setting.dataset,
        server_of(run),
        *_load(run),
        *_accept(run),
        *_verdict(run),
        *_rates(run, speed),
    )
    return "".join(
        f"<td class='{'left' if index < 2 else classes.get(index, '')}'>{escape(cell)}</td>"  # noqa: PLR2004
        for index, cell in enumerate(cells)
    )


def _speed_class(speed: float | None) -> str:
    if speed is None:
        return ""
    return "slower" if speed < 1 else "faster"


def _load(run: RunView) -> Sequence[str]:
    rate, done = run.setting.request_rate, run.requests - run.errors
    load = f"{rate:g}/s" if rate is not None else f"c{run.setting.concurrency}"
    return load, f"{done} of {run.requests}" if run.errors else str(done)


def _accept(run: RunView) -> Sequence[str]:
    accept = run.accept_length
    if accept is None:
        return _UNKNOWN, _UNKNOWN
    interval = accept.mean_interval
    bounds = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
    return f"{accept.mean:.3f}{bounds}", f"{accept.pooled:.3f}"


def _verdict(run: RunView) -> Sequence[str]:
    found = next((e for e in run.expectations if e.metric == "accept_length"), None)
    return (f"{found.published:g}", found.verdict) if found else (_UNKNOWN, _UNKNOWN)


def _rates(run: RunView, speed: float | None) -> Sequence[str]:
    rate = run.per_request_tokens_per_s
    return (
        f"{rate.p50:.0f}" if rate else _UNKNOWN,
        f"{run.output_tokens_per_s:.0f}" if run.output_tokens_per_s else _UNKNOWN,
        *(_two(latency) for latency in (run.ttft_ms, run.tpot_ms, run.e2e_ms)),
        f"x{speed:.2f}" if speed is not None else _UNKNOWN,
    )


def _two(latency: DistributionView | None) -> str:
    return f"{latency.p50:.1f} / {latency.p99:.1f}" if latency else _UNKNOWN


def _warnings(files: tuple[RunFile, ...]) -> str:
    told = [
        f"{name}: {warning}"
        for name, run in named_runs(files)
        for warning in (
            *faults(run),
            *run.withheld,
            *run.warnings,
            *(f"not as published: {e.why}" for e in run.expectations if e.why),
        )
    ]
    plain = [
        f"{name}: {note}"
        for name, run in named_runs(files)
        for note in (
            *notes(run),
            *_client(run),
            *(f"{e.metric}: {e.note}" for e in run.expectations if e.note),
        )
    ]
    return _bullets("warnings", told) + _bullets("notes", plain)


def _client(run: RunView) -> Sequence[str]:
    return (f"client: {client_line(run.client)}",) if run.client else ()


def _bullets(kind: str, told: list[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in told)
    return f"<ul class='{kind}'>{items}</ul>" if items else ""


def _definitions() -> Iterable[tuple[str, str]]:
    yield (
        "accept_length",
        "mean over generation turns of completion tokens / verify steps, as the engine counted them",
    )
    yield "95 % interval", "bootstrap over turns, beyond 2500 of them by the central limit theorem"
    yield "speed-up", "output tokens a second against the run without speculation in the same setting"
    yield from DEFINITIONS.items()
