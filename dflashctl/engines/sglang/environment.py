"""Engine variables: which of a profile's environment a release reads, and what becomes of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.engine import Translation
from dflashctl.core.findings import Finding, Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.runs import within
from dflashctl.engines.sglang.suggest import nearest_names
from dflashctl.engines.sglang.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIXES = ("SGLANG_", "SGL_")


@dataclass(frozen=True, kw_only=True)
class Inert:
    """A variable that some releases know but that changes nothing there for DFLASH."""

    name: str
    since: str | None
    until: str | None
    reason: str
    source: str


INERT: tuple[Inert, ...] = (
    Inert(
        name="SGLANG_ENABLE_DFLASH_SPEC_V2",
        since=None,
        until=None,
        reason="no release reads it; only the DFLASH branch before its merge did",
        source="sgl-project/sglang pull request 20547",
    ),
    Inert(
        name="SGLANG_ENABLE_SPEC_V2",
        since=None,
        until="0.5.13",
        reason="it never affected DFLASH",
        source="sglang 0.5.13: srt/arg_groups/speculative_hook.py",
    ),
    Inert(
        name="SGLANG_ENABLE_SPEC_V2",
        since="0.5.14",
        until=None,
        reason="removed in 0.5.14: overlapped speculation is on unless --disable-overlap-schedule is given",
        source="sglang 0.5.14: srt/arg_groups/speculative_hook.py:69",
    ),
    Inert(
        name="SGLANG_ENABLE_OVERLAP_PLAN_STREAM",
        since="0.5.11",
        until="0.5.13",
        reason="DFLASH reads it from 0.5.14 on",
        source="sglang 0.5.14: srt/speculative/dflash_info_v2.py:28",
    ),
)
_OVERLAP_OFF = {"SGLANG_ENABLE_SPEC_V2": ("0", "false", "False", "no")}


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The variables to set, options that replace some, and what was dropped."""

    variables: tuple[tuple[str, str], ...]
    wishes: tuple[Wish, ...] = ()
    translations: tuple[Translation, ...] = ()
    findings: tuple[Finding, ...] = ()


def fit_environment(variables: Mapping[str, str], release: str, *, known: bool) -> Environment:
    """The variables that `release` reads; a changed build (`known` False) keeps those that nobody knows."""
    kept: list[tuple[str, str]] = []
    wishes: list[Wish] = []
    dropped: list[Translation] = []
    findings: list[Finding] = []
    for name, value in variables.items():
        why = _inert(name, release)
        if why is None or (not known and not catalogue.environment_releases(name)):
            kept.append((name, value))
            continue
        replaced = _option_instead(name, value, release)
        wishes += [replaced] if replaced else []
        to = replaced.words if replaced else ""
        dropped.append(Translation(from_=f"{name}={value}", to=to, reason=why[0], source=why[1]))
        findings += _mistyped(name)
    return Environment(
        variables=tuple(kept), wishes=tuple(wishes), translations=tuple(dropped), findings=tuple(findings)
    )


def _inert(name: str, release: str) -> tuple[str, str | None] | None:
    """Why the variable does nothing in the release, with a source; None when it is read (or not the engine's)."""
    if not name.startswith(_PREFIXES):
        return None
    for entry in INERT:
        if entry.name == name and within(release, entry.since, entry.until):
            return entry.reason, entry.source
    readers = catalogue.environment_releases(name)
    if release in readers:
        return None
    if not readers:
        return f"no SGLang release from {catalogue.releases()[0]} to {catalogue.newest()} reads it", None
    return f"SGLang {release} does not read it ({catalogue.span(readers)})", None


def _option_instead(name: str, value: str, release: str) -> Wish | None:
    """The option that a removed variable became, where its value meant something else than today's default."""
    if value not in _OVERLAP_OFF.get(name, ()) or not within(release, "0.5.14", None):
        return None
    asked = f"{name}={value}"
    return Wish(
        flag="--disable-overlap-schedule",
        origin=f"environment: {name}",
        asked="--disable-overlap-schedule",
        why=asked,
    )


def _mistyped(name: str) -> list[Finding]:
    if catalogue.environment_releases(name) or any(entry.name == name for entry in INERT):
        return []
    near = nearest_names(name, catalogue.environment_names(), 2)
    if not near:
        return []
    fix = f"did you mean {' or '.join(near)}?"
    return [
        Finding(
            id="variable_unknown", severity=Severity.NOTE, summary=f"no SGLang release reads {name}", fix=fix
        )
    ]
