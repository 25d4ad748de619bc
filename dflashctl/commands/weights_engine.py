"""Whether the engine has classes for both models and the hook between them, asked before a terabyte is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.profile import EngineName, Profile
from dflashctl.engines.sglang import catalogue

if TYPE_CHECKING:
    from dflashctl.core.engine import EngineBuild
    from dflashctl.core.model_config import ModelConfig
    from dflashctl.core.weights import ModelPlan


def engine_findings(
    profile: Profile, models: list[ModelPlan], configs: list[ModelConfig], build: EngineBuild | None
) -> tuple[Finding, ...]:
    """Errors for classes that `build` lacks, or that no known release has the hook for when `build` is None.

    A class that no release has is only warned about: it may come from the model's own code.
    """
    if profile.engine.name is not EngineName.SGLANG:
        return ()
    speculates = len(models) > 1
    found = [
        _judged(m, c.facts.architecture, build, speculates=speculates)
        for m, c in zip(models, configs, strict=True)
    ]
    return tuple(finding for finding in found if finding is not None)


def _judged(
    model: ModelPlan, architecture: str | None, build: EngineBuild | None, *, speculates: bool
) -> Finding | None:
    if architecture is None:
        return _finding(
            "pair.architecture", Severity.WARNING, f"config.json of {model.label} names no architecture", None
        )
    having = catalogue.releases_with_class(architecture)
    hooked = catalogue.releases_with_hook(architecture)
    hooks = _hooks(architecture, build)
    needs_hook = speculates and model.role == "target"
    detail = f"{architecture} in config.json of {model.label}"
    if not having and not hooks:
        return _finding(
            "pair.architecture", Severity.WARNING, "no known release of SGLang has that model class", detail
        )
    if build is None:
        if needs_hook and not hooked:
            summary = f"no release of SGLang can hand the hidden states of {architecture} to a DFlash draft"
            return _finding("pair.hook", Severity.ERROR, summary, detail)
        return None
    if hooks is None:
        fix = f"releases that have it: {catalogue.span(having)}"
        return _finding(
            "pair.architecture",
            Severity.ERROR,
            f"SGLang {build.release} has no class {architecture}",
            detail,
            fix,
        )
    if needs_hook and "dflash" not in hooks:
        summary = f"SGLang {build.release} cannot hand the hidden states of {architecture} to a DFlash draft"
        return _finding(
            "pair.hook", Severity.ERROR, summary, detail, f"releases that can: {catalogue.span(hooked)}"
        )
    return None


def _hooks(architecture: str, build: EngineBuild | None) -> tuple[str, ...] | None:
    """The class's hooks in that build; empty when the build is not known well enough to say no."""
    if build is None:
        return None
    if build.model_hooks is not None:
        return dict(build.model_hooks).get(architecture)
    if build.release not in catalogue.releases() or not build.known:
        return ("dflash",)
    return catalogue.capture_hooks(architecture, build.release)


def _finding(
    id_: str, severity: Severity, summary: str, detail: str | None, fix: str | None = None
) -> Finding:
    return Finding(id=id_, severity=severity, summary=summary, detail=detail, fix=fix)
