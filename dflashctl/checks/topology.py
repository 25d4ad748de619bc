"""topology: whether the GPUs that work together reach each other over NVLink, and if not, over what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.machine import LinkKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Link

ID = "topology"
NEEDS = ("gpus",)
SOURCE = (
    "runbook-fabric-manager-failure: one GPU outside the fabric shows PHB or SYS instead of NV# and slows all; "
    "local-inference-lab/vllm#262: hangs between PCIe GPUs across sockets"
)


def check(facts: Facts) -> Iterator[Finding]:
    if facts.ranks < 2 or not facts.links:  # noqa: PLR2004 - one GPU has no peers
        return
    known = [link for link in facts.links if link.kind is not LinkKind.UNKNOWN]
    without = [link for link in known if link.kind is not LinkKind.NVLINK]
    if without and len(without) < len(known):
        yield _odd_ones(facts, without)
    elif without and facts.profile and facts.profile.requirements.nvlink:
        yield found(
            ID,
            Severity.ERROR,
            f"{gpus_named(facts.gpus)} have no NVLink, which profile {facts.profile.name!r} needs",
            fix="use a machine whose GPUs are joined by NVLink (nvidia-smi topo -m shows NV#)",
        )
    elif len(known) < len(facts.links):
        yield from _untold(facts)
    elif without:
        yield from _pcie_only(facts, without)
    refused = [link for link in facts.links if link.kind is LinkKind.NVLINK and link.p2p is False]
    if refused:
        yield found(
            ID,
            Severity.ERROR,
            f"GPUs {refused[0].a} and {refused[0].b} are joined by NVLink, but the driver refuses peer access",
            detail=_pairs(refused),
            fix="look at: nvidia-smi topo -p2p r; a virtual machine must pass the whole NVSwitch partition through",
        )


def _untold(facts: Facts) -> Iterator[Finding]:
    """Nothing may be concluded from a pair that the driver does not tell about, only that somebody should look."""
    if facts.profile is None or not facts.profile.requirements.nvlink:
        return
    unknown = [link for link in facts.links if link.kind is LinkKind.UNKNOWN]
    yield found(
        ID,
        Severity.WARNING,
        f"the driver does not tell whether {gpus_named(facts.gpus)} have NVLink, which profile {facts.profile.name!r} needs",
        detail=_pairs(unknown),
        fix="look at: nvidia-smi topo -m (NV# between all of them); dflashctl doctor --deep measures their copies",
    )


def _odd_ones(facts: Facts, without: list[Link]) -> Finding:
    """Some pairs have NVLink and others not: name the GPUs that are outside most."""
    counts = {gpu.index: sum(gpu.index in (link.a, link.b) for link in without) for gpu in facts.gpus}
    outside = [index for index, count in counts.items() if count == max(counts.values())]
    planned = facts.needs_gpus
    return found(
        ID,
        Severity.ERROR if planned else Severity.WARNING,
        f"{gpus_named(outside)} has no NVLink to {len(without)} of the {len(facts.links)} pairs' partners: "
        "collectives will run at PCIe speed",
        detail=_pairs(without),
        fix="choose GPUs that are fully joined (--gpus); a GPU outside its fabric needs a reset or service",
    )


def _pcie_only(facts: Facts, without: list[Link]) -> Iterator[Finding]:
    far = [link for link in without if link.kind is LinkKind.SYS]
    if far and facts.profile:
        yield found(
            ID,
            Severity.WARNING,
            f"GPUs {far[0].a} and {far[0].b} talk across CPU sockets: tensor parallelism will be slow",
            detail=_pairs(far),
            fix="choose GPUs under one socket: --gpus LIST (nvidia-smi topo -m)",
        )
        return
    blocked = any(link.p2p is False for link in without)
    how = "through the host's memory" if blocked else "over PCIe"
    yield found(
        ID, Severity.NOTE, f"{gpus_named(facts.gpus)} have no NVLink and talk {how}", detail=_pairs(without)
    )


def _pairs(links: list[Link]) -> str:
    return ", ".join(f"{link.a}-{link.b} {link.kind.value.upper()}" for link in links)
