"""Engine requests for the tests: a shipped profile, a release, a machine of one kind."""

from __future__ import annotations

from pathlib import Path

from dflashctl.core.engine import EngineBuild, EngineRequest
from dflashctl.core.machine import Gpu, Machine
from dflashctl.edges.profile_store import FileProfileStore

SHIPPED = ("kimi-k2.5-b200", "kimi-k3-b300", "kimi-k3-b300-peak", "qwen3-8b-h100", "tiny-gpu")
CAPABILITY = {"kimi-k3-b300": (10, 3), "kimi-k3-b300-peak": (10, 3), "kimi-k2.5-b200": (10, 0)}
B300, B200, H100, RTX = (10, 3), (10, 0), (9, 0), (12, 0)


def machine(capability=B300, count=8):
    return Machine(
        gpus=tuple(
            Gpu(index=i, uuid=f"GPU-{i:08}", name="GPU", memory_total_bytes=1, compute_capability=capability)
            for i in range(count)
        )
    )


def profile(name):
    store = FileProfileStore(cwd=Path("/nonexistent"), environ={"HOME": "/nonexistent"})
    return store.load(name).profile


def request(name, release, *, raw=(), capability=None, **given):
    mine = given.pop("profile", None) or profile(name)
    return EngineRequest(
        profile=mine,
        machine=machine(capability or CAPABILITY.get(name, H100)),
        build=given.pop("build", None) or EngineBuild(release=release),
        target_model=mine.target.repo or "/models/target",
        draft_model=(mine.draft.repo or "/models/draft") if mine.draft else None,
        raw_args=tuple(raw),
        **given,
    )
