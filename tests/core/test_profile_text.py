"""Profile text: what is written is what is read."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dflashctl.core.profile_text import profile_yaml


@pytest.mark.parametrize(
    "value",
    [
        "a/b",
        "on",
        "no",
        "1e3",
        "0x1f",
        "12:30",
        "",
        " x",
        "a: b",
        "a #b",
        "#x",
        "- x",
        "{a: 1}",
        "~",
        "\u00e4",
        'say "hi"',
        "-1",
        "x:",
    ],
)
def test_text_stays_text(value):
    assert yaml.safe_load(profile_yaml({"a.b": value})) == {"a": {"b": value}}


@given(st.text())
def test_any_text_survives(value):
    assert yaml.safe_load(profile_yaml({"a.b": value, "c": [value]})) == {"a": {"b": value}, "c": [value]}


def test_numbers_switches_and_nested_mappings():
    fields = {"a.b": 1, "a.c": 0.5, "a.d": True, "e": {"F": "1"}}
    assert yaml.safe_load(profile_yaml(fields)) == {"a": {"b": 1, "c": 0.5, "d": True}, "e": {"F": "1"}}


def test_comments_stay_comments_even_over_several_lines():
    text = profile_yaml({"a": "b"}, ["one\ntwo: 2", ""])
    assert text == "# one\n# two: 2\na: b\n"
