"""The catalogue: runs of releases, spellings, variables, model hooks."""

from __future__ import annotations

import json

import pytest

from dflashctl.engines.sglang import catalogue, make_catalogue
from dflashctl.engines.sglang.options import from_data, from_dump, to_data
from dflashctl.engines.sglang.runs import fold, number, unfold, within

RELEASES = catalogue.releases()


def test_the_releases_are_those_that_are_promised():
    assert tuple(f"0.5.{n}" for n in range(9, 24)) == RELEASES


@pytest.mark.parametrize(
    ("release", "numbers"),
    [
        ("0.5.9", (0, 5, 9)),
        ("0.5.23.post1", (0, 5, 23)),
        ("0.5.24rc1", (0, 5, 24)),
        ("0.6.dev3+gabc", (0, 6)),
    ],
)
def test_a_release_is_compared_by_its_numbers(release, numbers):
    assert number(release) == numbers


def test_runs_leave_the_newest_side_open_so_that_a_new_release_changes_nothing():
    assert fold(["1", "2"], {"1": "a", "2": "a"}) == [("1", None, "a")]
    assert fold(["1", "2", "3"], {"1": "a", "2": "a", "3": "a"}) == [("1", None, "a")]
    assert fold(["1", "2", "3"], {"1": "a", "3": "b"}) == [("1", "1", "a"), ("3", None, "b")]


def test_runs_can_be_unfolded():
    values = {"1": "a", "2": "a", "4": "b"}
    assert unfold(["1", "2", "3", "4"], fold(["1", "2", "3", "4"], values)) == values


@pytest.mark.parametrize(
    ("release", "since", "until", "inside"),
    [("0.5.10", "0.5.9", None, True), ("0.5.9", "0.5.10", None, False), ("0.5.9", None, "0.5.9", True)],
)
def test_within_compares_numbers_not_text(release, since, until, inside):
    assert within(release, since, until) is inside


@pytest.mark.parametrize(
    ("string", "span"),
    [
        ("--speculative-dflash-draft-window-size", "0.5.11 to 0.5.19"),
        ("--speculative-draft-window-size", "0.5.12 and later"),
        ("--enable-gdn-replayssm-spec", "0.5.16 to 0.5.19"),
        ("--tp-size", "0.5.9 and later"),
        ("--no-such-option", "no release"),
    ],
)
def test_which_releases_take_a_spelling(string, span):
    assert catalogue.span(catalogue.releases_with(string)) == span


def test_a_deprecated_option_is_known_as_such_with_the_parser_s_own_advice():
    option = catalogue.catalogue("0.5.23").find("--disable-cuda-graph")
    assert option.deprecated
    assert option.replacement == "--cuda-graph-backend-{decode,prefill}=disabled"
    assert not catalogue.catalogue("0.5.9").find("--disable-cuda-graph").deprecated


def test_choices_grow_with_the_releases():
    assert not catalogue.catalogue("0.5.16").find("--linear-attn-prefill-backend").allows("ptx_kda")
    assert catalogue.catalogue("0.5.17").find("--linear-attn-prefill-backend").allows("ptx_kda")


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("SGLANG_ENABLE_OVERLAP_PLAN_STREAM", RELEASES),
        ("SGLANG_ENABLE_SPEC_V2", RELEASES[:12]),
        ("SGLANG_ENABLE_DFLASH_SPEC_V2", ()),
        ("SGL_FORCE_SHUTDOWN", RELEASES),
    ],
)
def test_which_releases_read_a_variable(name, releases):
    assert catalogue.environment_releases(name) == releases


def test_which_targets_can_serve_a_dflash_draft():
    assert catalogue.releases_with_hook("KimiK3ForConditionalGeneration") == ("0.5.21", "0.5.22", "0.5.23")
    assert catalogue.releases_with_hook("KimiK25ForConditionalGeneration")[0] == "0.5.11"
    assert catalogue.capture_hooks("KimiK3ForConditionalGeneration", "0.5.19") == ("dspark",)
    assert catalogue.capture_hooks("KimiK3ForConditionalGeneration", "0.5.16") is None


def test_draft_classes_by_release():
    assert catalogue.releases_with_class("DFlashDraftModel")[0] == "0.5.11"
    assert catalogue.releases_with_class("DFlash2DraftModel")[0] == "0.5.19"


@pytest.mark.parametrize(
    ("release", "near"), [("0.5.30", "0.5.23"), ("0.5.8", "0.5.9"), ("0.5.12", "0.5.12")]
)
def test_an_unknown_release_is_judged_by_its_nearest(release, near):
    assert catalogue.nearest(release) == near


def test_options_survive_their_way_into_the_data_file():
    for option in catalogue.catalogue("0.5.23").options:
        assert from_data(option.strings[0], json.loads(json.dumps(to_data(option)))) == option


def dump(flag, **given):
    usual = {
        "dest": flag[2:].replace("-", "_"), "action": "Store", "type": "str", "default": None, "choices": None,
        "nargs": None, "const": None, "required": False, "help": None,
    }  # fmt: skip
    return {"strings": [flag], **usual, **given}


def record(*options):
    return {
        "facts": {"date": "2026-12-01", "parser": "x"},
        "options": list(options),
        "environment": frozenset({"SGLANG_A"}),
        "models": {"M": ("dflash",)},
        "marks": (),
    }


def test_a_new_release_is_merged_without_the_wheels_of_the_old_ones(tmp_path):
    make_catalogue.write({"0.5.1": record(dump("--a")), "0.5.2": record(dump("--a"), dump("--b"))}, tmp_path)
    before = (tmp_path / "options.json").read_text()
    make_catalogue.write({"0.5.3": record(dump("--a"))}, tmp_path)
    options = json.loads((tmp_path / "options.json").read_text())
    assert options["--a"] == json.loads(before)["--a"]
    assert options["--b"][0][:2] == ["0.5.2", "0.5.2"]
    assert json.loads((tmp_path / "models.json").read_text())["M"] == [["0.5.1", None, ["dflash"]]]


def test_help_that_calls_an_option_deprecated_is_believed():
    option = from_dump(dump("--old", help="(Deprecated: use --new=auto) Old."))
    assert (option.deprecated, option.replacement) == (True, "--new=auto")
