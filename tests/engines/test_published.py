"""Published DFlash commands become profiles that run on the newest release, or are refused for the right reason."""

from __future__ import annotations

import pytest

from dflashctl.core.assumed import assumed_machine
from dflashctl.core.engine import EngineBuild
from dflashctl.core.errors import UsageProblem
from dflashctl.core.findings import Severity
from dflashctl.core.plan import PlanOptions, make_plan
from dflashctl.engines import ENGINES
from dflashctl.engines.sglang import command
from dflashctl.engines.sglang.from_command import drafted, model_fields
from dflashctl.engines.sglang.paste import read_pasted

from .asking import B300, request
from .published import COMMANDS, VALID, as_profile, draft

REFUSED = tuple(name for name in COMMANDS if name not in VALID)


def test_there_are_enough_of_them_each_with_its_source():
    assert len(COMMANDS) >= 25
    assert all(command["source"] for command in COMMANDS.values())


@pytest.mark.parametrize("name", VALID)
def test_a_published_command_becomes_a_valid_profile(name):
    wanted = COMMANDS[name].get("becomes", {})
    assert [f for f in draft(name).findings if f.severity is Severity.ERROR] == []
    fields = dict(draft(name).fields)
    for role in ("target", "draft"):
        fields.update({f"{role}.{key}": value for key, value in model_fields(fields[role], None).items()})
    assert {path: fields.get(path) for path in wanted} == wanted
    changed = [translation.from_ for translation in draft(name).translations]
    for spelling in COMMANDS[name].get("renamed", ()):
        assert any(spelling in text for text in changed), (spelling, changed)
    assert as_profile(name).name == name


# What the profile of a published command still is refused for, on eight B300.
LATE = {"lmsys-blog-qwen3.5-397b": ["linear_flashinfer_state_type"]}


@pytest.mark.parametrize("name", VALID)
def test_the_profile_plans_for_the_newest_release(name):
    made = command(request(name, "0.5.23", profile=as_profile(name), capability=B300))
    assert [f.id for f in made.findings if f.severity is Severity.ERROR] == LATE.get(name, [])


@pytest.mark.parametrize("name", VALID)
def test_the_profile_plans_where_there_are_no_gpus(name):
    """As `up --dry-run` does on a laptop: no GPU is made up that the command could not run on."""
    mine = as_profile(name)
    plan = make_plan(
        mine,
        assumed_machine(mine.requirements),
        ENGINES["sglang"],
        EngineBuild(release="0.5.23"),
        PlanOptions(),
    )
    assert plan.refusals == ()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_served_is_refused_for_the_right_reason(name):
    wanted = COMMANDS[name]["refused"]
    if wanted[0].isupper() or wanted == "vLLM":
        with pytest.raises(UsageProblem, match=wanted):
            read_pasted(COMMANDS[name]["text"])
        return
    found = drafted(read_pasted(COMMANDS[name]["text"]), "0.5.23")
    assert [f.id for f in found.findings if f.severity is Severity.ERROR] == [wanted]


def test_secrets_and_this_machine_s_variables_stay_behind():
    text = (
        "HF_TOKEN=hf_xyzzy CUDA_VISIBLE_DEVICES=0,1 HF_HOME=/x NCCL_DEBUG=INFO sglang serve a/b --api-k sk-xyzzy "
        "--speculative-algorithm dflash --speculative-draft-model-path c/d"
    )
    found = drafted(read_pasted(text), "0.5.23")
    assert "xyzzy" not in str(found)
    assert found.fields["environment"] == {"NCCL_DEBUG": "INFO"}
    assert {f.id for f in found.findings} == {
        "secret_dropped",
        "gpus_dropped",
        "variable_dropped",
        "key_dropped",
    }


@pytest.mark.parametrize(
    ("model", "revision", "fields"),
    [
        ("a/b", "c" * 40, {"repo": "a/b", "revision": "c" * 40}),
        ("a/b", "main", {"repo": "a/b"}),
        ("/a/b", None, {"path": "/a/b"}),
        ("./a/b", None, {"path": "./a/b"}),
        ("~/m", None, {"path": "~/m"}),
        ("model", None, {"path": "model"}),
    ],
)
def test_a_model_is_a_repository_or_a_folder(model, revision, fields):
    assert model_fields(model, revision) == fields
