"""The shipped profiles, the reference profile and the schema."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path

import jsonschema
import pytest
import yaml

from dflashctl.core.json_schema import profile_schema
from dflashctl.core.load import load
from dflashctl.core.profile import Profile
from dflashctl.core.profile_rules import profile_problems
from dflashctl.edges.shipped import shipped_folder
from dflashctl.edges.yaml_node import parse
from dflashctl.env import Env
from tests.support.cli import run

FOLDER = shipped_folder("profiles")
SHIPPED = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "reference")


def test_the_six_profiles_of_the_contract_ship():
    assert SHIPPED == [
        "kimi-k2.5-b200",
        "kimi-k3-b300",
        "kimi-k3-b300-peak",
        "qwen3-8b-h100",
        "tiny-cpu",
        "tiny-gpu",
    ]


@pytest.mark.parametrize("name", [*SHIPPED, "reference"])
def test_a_shipped_profile_satisfies_the_schema_that_editors_get(name):
    jsonschema.validate(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()), profile_schema())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_loads(name):
    assert Env().profiles.load(name).profile.name == name


def test_the_reference_profile_shows_every_field_and_breaks_no_rule():
    text = (FOLDER / "reference.yaml").read_text()
    node = parse(text, name="reference.yaml")
    profile, problems = load(node, Profile, extra={"name": "reference"})
    assert not problems
    assert not profile_problems(profile, node)
    assert _missing(yaml.safe_load(text), Profile, "") == []


def _missing(value, cls, path):
    hints = typing.get_type_hints(cls)
    out = []
    for field in dataclasses.fields(cls):
        at = f"{path}.{field.name}" if path else field.name
        if field.name == "name" and cls is Profile:
            continue
        if field.name not in value:
            # the draft has the same form as the target, where each field is explained
            out += [] if path == "draft" else [at]
            continue
        inner = [
            t for t in (hints[field.name], *typing.get_args(hints[field.name])) if dataclasses.is_dataclass(t)
        ]
        if inner and isinstance(value[field.name], dict):
            out += _missing(value[field.name], inner[0], at)
    return out


def test_the_reference_profile_cannot_be_started():
    result = run("up", "reference", "--dry-run")
    assert result.exit == 78
    assert "the commented schema" in result.err


def test_the_card_of_kimi_k3_is_complete():
    profile = Env().profiles.load("kimi-k3-b300").profile
    figures = {
        (f.dataset, f.block_size): f.value for f in profile.expect.figures if f.metric == "accept_length"
    }
    assert len(figures) == 14
    assert figures["humaneval", 16] == 8.358
    assert profile.draft.revision == "c192d15a43407bf758b5ae0880d5c72052fef1de"


def test_a_user_profile_shadows_a_shipped_one(tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    text = (FOLDER / "tiny-cpu.yaml").read_text().replace("port", "port")
    (folder / "tiny-cpu.yaml").write_text(text.replace("summary: ", "summary: mine, "))
    rows = {
        row["name"]: row for row in run("profile", "list", "--json", cwd=tmp_path).json["data"]["profiles"]
    }
    assert rows["tiny-cpu"]["origin"] == "here"
    assert rows["tiny-gpu"]["origin"] == "shipped"


def test_an_unreadable_profile_does_not_hide_the_others(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "broken.yaml").write_text("summary: [")
    result = run("profile", "list", "--json", cwd=tmp_path)
    assert result.json["outcome"] == "partial"
    assert len(result.json["data"]["profiles"]) == len(SHIPPED)
    assert "broken.yaml" in result.json["findings"][0]["summary"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kimi-k3", "did you mean 'kimi-k3-b300'"),
        (".", "is a folder"),
        ("nothing.yaml", "there is no profile file 'nothing.yaml'"),
    ],
)
def test_a_profile_that_is_not_there(name, expected, tmp_path):
    path = name if name != "." else f"{tmp_path}/"
    result = run("profile", "show", path, "--json", cwd=tmp_path)
    assert result.exit == 78
    assert expected in result.json["errors"][0]["message"]


def test_a_profile_that_is_not_text(tmp_path):
    Path(tmp_path / "x.yaml").write_bytes(b"summary: \xff\xfe")
    result = run("profile", "validate", str(tmp_path / "x.yaml"))
    assert result.exit == 78
    assert "is not UTF-8 text (byte 9)" in result.err


def test_the_schema_command_prints_the_schema(tmp_path):
    assert json.loads(run("profile", "schema").out) == profile_schema()
