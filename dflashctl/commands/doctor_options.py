"""DoctorOptions: what the command line asks of doctor, and which of it means nothing together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from dflashctl.core.errors import UsageProblem
from dflashctl.core.options import PlanRequest

# What also means something without a profile, and the switches that never mean anything to doctor, as their help says.
_WITHOUT_PROFILE = frozenset({"profile", "gpus", "machine", "python", "dry_run", "skip_doctor", "skip_fetch"})


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """`plan` names the profile (empty: judge the machine alone) and a saved machine; `verbose` shows all facts."""

    plan: PlanRequest = field(default_factory=lambda: PlanRequest(profile=""))
    deep: bool = False
    save_machine: str | None = None
    watch: bool = False
    verbose: bool = False


def refuse_nonsense(options: DoctorOptions) -> None:
    """UsageProblem for an option that would only seem to be obeyed."""
    if options.plan.machine is not None:
        _refuse_with_saved_machine(options)
    if options.watch:
        _refuse_with_watch(options)
    if not options.plan.profile:
        _refuse_without_profile(options.plan)


def _refuse_with_saved_machine(options: DoctorOptions) -> None:
    if options.deep:
        raise UsageProblem("--deep tries this machine; a saved one cannot be tried", hint="leave out --deep")
    if options.watch:
        raise UsageProblem(
            "--watch looks at this machine; a saved one does not change", hint="leave out --watch"
        )
    if options.plan.python is not None and not options.plan.profile:
        raise UsageProblem(
            "--python names an interpreter of this machine; a saved one has its own",
            hint="leave out --python",
        )


def _refuse_with_watch(options: DoctorOptions) -> None:
    given = {
        "--save-machine": options.save_machine is not None,
        "--deep": options.deep,
        "a profile": bool(options.plan.profile),
        "--python": options.plan.python is not None,
    }
    wrong = next((option for option, is_given in given.items() if is_given), None)
    if wrong is not None:
        raise UsageProblem(
            f"--watch only looks at the GPUs, so {wrong} means nothing beside it",
            hint="dflashctl doctor --watch   (with --gpus LIST for some of them)",
        )


def _refuse_without_profile(plan: PlanRequest) -> None:
    for option in fields(plan):
        if option.name in _WITHOUT_PROFILE or getattr(plan, option.name) == option.default:
            continue
        words = {"sets": "--set", "raw_args": "what follows --"}
        named = words.get(option.name, f"--{option.name.replace('_', '-')}")
        raise UsageProblem(
            f"{named} is about a profile's plan, and no profile is named", hint="dflashctl doctor PROFILE …"
        )
