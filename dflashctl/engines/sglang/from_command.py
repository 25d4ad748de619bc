"""From a pasted command to the fields of a profile, with what was renamed, dropped or could not be kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dflashctl.core.findings import Finding, Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.environment import fit_environment
from dflashctl.engines.sglang.gpu_use import use_of
from dflashctl.engines.sglang.intent import BY_FLAG
from dflashctl.engines.sglang.translate import modernised, translate
from dflashctl.engines.sglang.wish import translations
from dflashctl.engines.sglang.words import read_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.engine import Translation
    from dflashctl.engines.sglang.paste import Pasted
    from dflashctl.engines.sglang.wish import Wish

_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL", re.IGNORECASE)
_KEYS = ("--api-key", "--admin-api-key")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_GPU_CHOICE = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
)
_PER_MACHINE = ("PATH", "PYTHONPATH", "HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_IN_PROFILE = {
    "--model-path": "target",
    "--revision": "target.revision",
    "--speculative-draft-model-path": "draft",
    "--speculative-draft-model-revision": "draft.revision",
    "--speculative-algorithm": "speculative.algorithm",
}


@dataclass(frozen=True, kw_only=True)
class Drafted:
    """Fields by profile path ("memory.static_fraction"); an error among `findings` means that there is no profile."""

    fields: Mapping[str, Any]
    translations: tuple[Translation, ...] = ()
    findings: tuple[Finding, ...] = field(default=())


def drafted(pasted: Pasted, release: str) -> Drafted:
    """The profile fields of a pasted command, judged for `release`."""
    have = catalogue.catalogue(catalogue.nearest(release))
    read = read_words(pasted.words, have, "the command")
    environment = fit_environment(pasted.environment, have.release, known=True)
    translated = translate((*read.wishes, *environment.wishes), have)
    shown = tuple(one for one in translated.granted if one.flag not in _KEYS)
    fields: dict[str, Any] = {}
    notes = [_note("left_out", text) for text in pasted.notes]
    if pasted.image:
        fields["engine.image"] = pasted.image
    extra = [word for one in translated.granted for word in _placed(one, fields, notes)]
    if extra:
        fields["extra_args"] = extra
    fields.update(_variables(dict(environment.variables), notes))
    fields["requirements.gpus"] = use_of(
        {one.flag: one.values for one in modernised(translated.granted)}
    ).count
    findings = (
        *read.findings,
        *translated.findings,
        *environment.findings,
        *notes,
        *_problems(fields, read.loose),
    )
    return Drafted(
        fields=fields,
        translations=(*translations(shown, translated.dropped), *environment.translations),
        findings=findings,
    )


def _placed(one: Wish, fields: dict[str, Any], notes: list[Finding]) -> tuple[str, ...]:
    """Put the wish into its field; the words that have no field are returned, for extra_args."""
    if one.flag in _KEYS:
        notes.append(_note("key_dropped", f"{one.flag} was left out: a profile holds no secrets"))
        return ()
    if one.flag in _IN_PROFILE:
        fields[_IN_PROFILE[one.flag]] = one.values[0]
        return ()
    part = BY_FLAG.get(one.flag)
    if part is None:
        return (one.flag, *one.values)
    fields[part.path] = True if part.switch else part.kind(one.values[0])
    return ()


def _variables(environment: Mapping[str, str], notes: list[Finding]) -> dict[str, Any]:
    kept = {}
    for name, value in environment.items():
        if _SECRET.search(name):
            notes.append(_note("secret_dropped", f"{name} was left out: a profile holds no secrets"))
        elif name in _GPU_CHOICE:
            notes.append(_note("gpus_dropped", f"{name} was left out: choose GPUs with --gpus"))
        elif name in _PER_MACHINE:
            notes.append(_note("variable_dropped", f"{name} was left out: it belongs to one machine"))
        else:
            kept[name] = value
    return {"environment": kept} if kept else {}


def _problems(fields: Mapping[str, Any], loose: tuple[str, ...]) -> list[Finding]:
    found = [_error("word_without_option", f"{word!r} is no option and belongs to none") for word in loose]
    algorithm = str(fields.get("speculative.algorithm", "")).upper()
    if "target" not in fields:
        found.append(_error("target_missing", "the command names no model (--model-path)"))
    if algorithm != "DFLASH":
        what = f"the command speculates with {algorithm}" if algorithm else "the command does not speculate"
        found.append(_error("not_dflash", f"{what}; a profile is for DFLASH"))
    elif "draft" not in fields:
        found.append(_error("draft_missing", "the command names no draft (--speculative-draft-model-path)"))
    return found


def model_fields(model: str, revision: str | None) -> dict[str, str]:
    """A model as the profile names it: a local path, or a repository with its commit if that is given."""
    if not _REPO.fullmatch(model) or model.startswith((".", "~")):
        return {"path": model}
    return (
        {"repo": model, "revision": revision} if revision and _COMMIT.fullmatch(revision) else {"repo": model}
    )


def _note(id_: str, summary: str) -> Finding:
    return Finding(id=id_, severity=Severity.NOTE, summary=summary)


def _error(id_: str, summary: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary)
