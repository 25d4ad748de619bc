"""What the steps of deep_attempt.py mean: those that ended, the one that did not and why, and what was never begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dflashctl.core.deep import PairCopy

if TYPE_CHECKING:
    from dflashctl.edges.limited import Ended

_LONGEST = 300
_Steps = list[dict[str, Any]]


def facts_of(
    ended: Ended, *, gpus: int, python: str, limit_s: float
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of DeepFacts, and the reasons for what was not tried; the script was asked for `gpus` GPUs."""
    steps = _steps(ended.output)
    by_name = {step["step"]: step for step in steps}
    cuda, torch, reduced = (by_name.get(name, {}) for name in ("cuda", "torch", "reduce"))
    begun, cause = _unfinished(steps), _cause(ended, by_name)
    copies = [_copy(step) for step in steps if step["step"] == "copy"]
    if begun["step"] == "copying":
        copies.append(PairCopy(a=begun["a"], b=begun["b"], right=None, error=cause))
    broken = begun["step"]
    found = {
        "gpus_asked": gpus,
        "cuda_error": cuda.get("error"),
        "cuda_error_text": cause if broken == "starting" else cuda.get("text"),
        "cuda_devices": cuda.get("devices"),
        "cuda_start_s": cuda.get("seconds"),
        "torch_devices": torch.get("devices"),
        "torch_error": cause if broken == "importing" else None,
        "copies": tuple(copies),
        "all_reduce_tried": bool(reduced) or broken == "reducing",
        "all_reduce_right": reduced.get("right"),
        "all_reduce_s": limit_s if broken == "reducing" and ended.hung else reduced.get("seconds"),
        "all_reduce_error": cause if broken == "reducing" else None,
    }
    return found, _not_tried(by_name, broken, gpus=gpus, python=python)


def _steps(output: str) -> _Steps:
    """The script's lines; a library may write others."""
    steps = []
    for line in output.splitlines():
        try:
            step = json.loads(line) if line.startswith("{") else None
        except ValueError:
            continue
        if isinstance(step, dict) and "step" in step:
            steps.append(step)
    return steps


def _unfinished(steps: _Steps) -> dict[str, Any]:
    """The step that was begun and did not end, else one named "none"; death between two steps is the next one's."""
    told = [step for step in steps if step["step"] != "failed"]
    if not told:
        return {"step": "starting"}
    last = told[-1]
    following = {"torch": "reducing", "copy": "reducing"}
    if last["step"] == "cuda":
        return {"step": "none" if last["error"] else "importing"}
    if last["step"] in {"starting", "importing", "copying", "reducing"}:
        return last
    return {"step": following.get(last["step"], "none")}


def _cause(ended: Ended, by_name: dict[str, dict[str, Any]]) -> str:
    if ended.hung or "failed" not in by_name:
        text = ended.trouble or "it ended without a word"
    else:
        text = str(by_name["failed"].get("text"))
    lines = text.strip().splitlines() or [text]
    return lines[0].rstrip(".! ")[:_LONGEST]


def _copy(step: dict[str, Any]) -> PairCopy:
    return PairCopy(a=step["a"], b=step["b"], right=step["right"], gb_per_s=round(step["gb_per_s"], 1))


def _not_tried(by_name: dict[str, dict[str, Any]], broken: str, *, gpus: int, python: str) -> tuple[str, ...]:
    if broken == "copying":
        return ("all-reduce: the copies did not end",)
    if {"copy", "reduce"} & set(by_name) or broken == "reducing":
        return ()
    if "no_torch" in by_name:
        why = f"{python} has no torch"
    elif gpus == 1:
        why = "one GPU"
    elif broken == "importing":
        why = "torch cannot be imported"
    elif "torch" in by_name or "done" in by_name:
        why = f"torch sees {by_name.get('torch', {}).get('devices', 'too few')} of the {gpus} GPUs"
    else:
        why = "CUDA does not start"
    return (f"copies and all-reduce: {why}",)
