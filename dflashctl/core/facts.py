"""Facts: all that checks judge: the machine, and with a profile the plan and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.deep import DeepFacts
    from dflashctl.core.fit import Fit
    from dflashctl.core.host import Host, Software
    from dflashctl.core.machine import Gpu, Link, Machine
    from dflashctl.core.plan import Plan
    from dflashctl.core.profile import Profile
    from dflashctl.core.running import RunningServer
    from dflashctl.core.serving import Serving


@dataclass(frozen=True, kw_only=True)
class PortUse:
    """A port the plan needs: `purpose` says what for; the owner is known where this user may see it.

    `problem` and `fix` tell why nothing can listen there although nobody else does.
    """

    port: int
    purpose: str
    free: bool
    owner_pid: int | None = None
    owner_name: str | None = None
    problem: str | None = None
    fix: str | None = None


@dataclass(frozen=True, kw_only=True)
class WeightsOnDisk:
    """Weights of one model: what there should be and what lies there; None where it is not known."""

    label: str
    wanted_bytes: int | None = None
    present_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """`fit` is for GPUs without other users, `fit_now` for what is free at this moment.

    `running` is the plan's own server when it runs already; `machine` is then as it will be without it.
    `named` are the UUIDs of the GPUs to judge without a plan, none for all that are visible.
    `release_asked` is True when the engine need not be here (--engine-version). `deep` only after `--deep`. Without a profile everything about the plan is None or empty.
    """

    machine: Machine
    profile: Profile | None = None
    plan: Plan | None = None
    serving: Serving | None = None
    fit: Fit | None = None
    fit_now: Fit | None = None
    ports: tuple[PortUse, ...] = ()
    weights: tuple[WeightsOnDisk, ...] = ()
    deep: DeepFacts | None = None
    release_asked: bool = False
    install_hint: str | None = None
    named: tuple[str, ...] = ()
    running: RunningServer | None = None

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that matter: the plan's or those named, else (the plan found none) all that are visible."""
        keys = self.plan.gpus if self.plan else self.named
        chosen = [gpu for key in keys if (gpu := self.machine.gpu(key))]
        return tuple(chosen) or self.machine.visible_gpus

    @property
    def links(self) -> tuple[Link, ...]:
        """The connections among `gpus`."""
        indices = {gpu.index for gpu in self.gpus}
        return tuple(link for link in self.machine.links if {link.a, link.b} <= indices)

    @property
    def host(self) -> Host | None:
        return self.machine.host

    @property
    def software(self) -> Software | None:
        """The engine's software; None also for a plan in a container image, which brings its own."""
        return None if self.plan and self.plan.runtime == "docker" else self.machine.software

    @property
    def variables(self) -> dict[str, str]:
        """The variables that steer the engine: the plan's over those that are set on this machine."""
        inherited = dict(self.host.engine_variables) if self.host else {}
        return {**inherited, **dict(self.plan.env if self.plan else ())}

    @property
    def needs_gpus(self) -> bool:
        return self.profile is not None and self.profile.requirements.gpus > 0

    @property
    def ranks(self) -> int:
        """How many GPUs of this machine work: the plan's, without a plan all of them."""
        return self.serving.ranks if self.serving else len(self.gpus)

    @property
    def on_sglang(self) -> bool:
        return self.plan is not None and self.plan.engine == "sglang"

    def has(self, need: str) -> bool:
        """Whether the part that a check names in NEEDS is there."""
        parts: dict[str, object] = {
            "gpus": self.gpus and (self.profile is None or self.needs_gpus),
            "host": self.host,
            "software": self.software,
            "profile": self.profile,
            "plan": self.plan,
            "sglang_plan": self.on_sglang,
            "fit": self.fit,
            "tried_cuda": self.deep is not None
            and (self.deep.cuda_error is not None or self.deep.cuda_error_text is not None),
            "tried_torch": self.deep is not None
            and (self.deep.torch_devices is not None or self.deep.torch_error is not None),
            "tried_links": self.deep is not None and (self.deep.copies or self.deep.all_reduce_tried),
            "tried_disk": self.deep is not None
            and (self.deep.disk_read_gb_per_s is not None or self.deep.disk_error is not None),
            "tried_jit": self.deep is not None
            and (self.deep.jit_compile_s is not None or self.deep.jit_error is not None),
        }
        return bool(parts[need])
