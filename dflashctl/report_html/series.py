"""From runs to series: what each chart shows, without a plotting library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.bench_compare import accept_lengths
from dflashctl.core.expectations import FigureVerdict
from dflashctl.report_html.names import KIND, numbered, varied

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.run_view import RunFile, RunView


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar; `low` and `high` bound its interval, `published` is the figure to stand beside it.

    `unlike`: that figure was published for another setting, so that the bar is not judged by it.
    """

    group: str
    series: str
    value: float
    low: float | None = None
    high: float | None = None
    published: float | None = None
    unlike: bool = False

    @property
    def top(self) -> float:
        """The highest value to show."""
        return max(self.value, self.high or 0.0, self.published or 0.0)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line; points are sorted by x."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The lines of one data set; the same name in another panel is the same server."""

    name: str
    lines: tuple[Line, ...]


def all_runs(files: tuple[RunFile, ...]) -> tuple[tuple[str, RunView], ...]:
    """(prefix, run) of all files; the prefix is the file's name when there are several."""
    several = len(files) > 1
    return tuple((f"{file.name}: " if several else "", run) for file in files for run in file.runs)


def named_runs(files: tuple[RunFile, ...]) -> tuple[tuple[str, RunView], ...]:
    """(name, run) of all files, each name another one."""
    runs = [(prefix + run.label, run) for prefix, run in all_runs(files)]
    return tuple(zip(numbered(varied(runs)), (run for _, run in runs), strict=True))


def server_of(run: RunView) -> str:
    """The series a run belongs to: its block size, or none, and the profile paths that were swept."""
    if run.setting.speculation is False:
        kind = "no speculation"
    else:
        kind = f"block {run.setting.block_size}" if run.setting.block_size else "speculation"
    return ", ".join((kind, *run.setting.settings))


def accept_bars(files: tuple[RunFile, ...]) -> tuple[Bar, ...]:
    """Accept length by data set and server, each run at the lowest load that was measured."""
    return tuple(_bar(run.setting.dataset, name, run) for name, run in _at_lowest_load(files))


def _at_lowest_load(files: tuple[RunFile, ...]) -> tuple[tuple[str, RunView], ...]:
    """(server, run) of the runs with speculation; those of one setting in its lowest load alone, all of them."""
    runs = [
        (prefix + server_of(run), run)
        for prefix, run in all_runs(files)
        if run.accept_length is not None and run.setting.speculation is not False
    ]
    found: dict[tuple[str, str], list[RunView]] = {}
    for name, (_, run) in zip(varied(runs), runs, strict=True):
        found.setdefault((run.setting.dataset, name), []).append(run)
    lowest = [
        (name, [run for run in same if _load(run) == min(map(_load, same))])
        for (_, name), same in found.items()
    ]
    return tuple(
        pair for name, same in lowest for pair in zip(numbered([name] * len(same)), same, strict=True)
    )


def _bar(dataset: str, series: str, run: RunView) -> Bar:
    accept = run.accept_length
    interval = accept.mean_interval if accept else None
    published = next((e for e in run.expectations if e.metric == "accept_length"), None)
    return Bar(
        group=dataset,
        series=series,
        value=accept.mean if accept else 0.0,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        published=published.published if published else None,
        unlike=published is not None and published.verdict == FigureVerdict.UNLIKE,
    )


def _load(run: RunView) -> tuple[bool, float]:
    """Loads in order: closed loops before open ones."""
    concurrency = run.setting.concurrency
    return concurrency is None, concurrency or run.setting.request_rate or 0.0


def histograms(files: tuple[RunFile, ...]) -> tuple[Panel, ...]:
    """Share of verify steps by how many drafts they kept, one panel a data set with one line a server."""
    panels: dict[str, list[Line]] = {}
    for name, run in _at_lowest_load(files):
        if run.accept_length and run.accept_length.histogram:
            points = tuple((float(kept), share) for kept, share in enumerate(run.accept_length.histogram))
            panels.setdefault(run.setting.dataset, []).append(Line(name=name, points=points))
    return tuple(Panel(name=name, lines=tuple(lines)) for name, lines in panels.items())


def over_load(
    files: tuple[RunFile, ...],
    pick: Callable[[RunView], float | None],
    load: Callable[[Setting], float | None],
) -> tuple[Line, ...]:
    """One line a data set and server over the load; only where there are two points or more.

    A load that was measured again, as an appended file has it, goes into a line of its own, and so do runs whose
    answers were asked for otherwise.
    """
    runs = [(f"{prefix}{run.setting.dataset}, {server_of(run)}", run) for prefix, run in all_runs(files)]
    found: dict[str, list[dict[float, float]]] = {}
    for name, (_, run) in zip(varied(runs, KIND), runs, strict=True):
        value, at = pick(run), load(run.setting)
        if at is not None and value is not None:
            passes = found.setdefault(name, [])
            free = next((points for points in passes if at not in points), None)
            if free is None:
                passes.append(free := {})
            free[float(at)] = value
    lines = (
        Line(name=told, points=tuple(sorted(points.items())))
        for name, passes in found.items()
        for told, points in zip(numbered([name] * len(passes)), passes, strict=True)
    )
    return tuple(line for line in lines if len(line.points) > 1)


def ecdfs(
    files: tuple[RunFile, ...], pick: Callable[[RunView], tuple[float | None, ...]]
) -> tuple[Line, ...]:
    """The empirical distribution of a latency, one line a run: (milliseconds, share of requests)."""
    lines = []
    for name, run in named_runs(files):
        known = sorted(value for value in pick(run) if value is not None)
        points = tuple((value, (rank + 1) / len(known)) for rank, value in enumerate(known))
        if points:
            points = ((points[0][0], 0.0), *points)
            lines.append(Line(name=name, points=points))
    return tuple(lines)


def accept_ecdfs(files: tuple[RunFile, ...]) -> tuple[Line, ...]:
    """The distribution of accept length over turns."""
    return ecdfs(files, lambda run: accept_lengths(run.samples))


def gpu_lines(files: tuple[RunFile, ...], pick: str) -> tuple[Line, ...]:
    """A GPU's reading over time, the runs one after the other, one line a GPU."""
    lines: dict[int, list[tuple[float, float]]] = {}
    offset = 0.0
    for _, run in all_runs(files):
        for reading in run.gpu_readings:
            value = getattr(reading, pick)
            if value is not None:
                lines.setdefault(reading.index, []).append((offset + reading.at_s, float(value)))
        offset += max((reading.at_s for reading in run.gpu_readings), default=0.0)
    return tuple(Line(name=f"GPU {index}", points=tuple(points)) for index, points in sorted(lines.items()))
