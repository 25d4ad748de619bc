"""Saved machines for tests: the topologies by name, with single facts changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from dflashctl.edges.machine_file import parse_machine

TOPOLOGIES = Path(__file__).parent.parent / "topologies"
NAMES = tuple(sorted(path.stem for path in TOPOLOGIES.glob("*.yaml") if path.stem != "verdicts"))
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")


def topology(name, change=None):
    """The machine in topologies/NAME.yaml; `change` maps paths such as gpus[3].fabric.status to values."""
    document = yaml.safe_load((TOPOLOGIES / f"{name}.yaml").read_text(encoding="utf-8"))
    for path, value in (change or {}).items():
        steps = [key or ("*" if index == "*" else int(index)) for key, index in _STEP.findall(path)]
        _set(document, steps, value)
    return parse_machine(json.dumps(document), name=f"{name}.yaml")


def _set(node, steps, value):
    head, rest = steps[0], steps[1:]
    if head == "*":
        for place in range(len(node)):
            _set(node, [place, *rest], value)
    elif not rest:
        if value == "absent":
            node.pop(head, None)
        else:
            node[head] = value
    else:
        if isinstance(node, dict):
            node.setdefault(head, {})
        _set(node[head], rest, value)
