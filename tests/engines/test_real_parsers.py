"""Every shipped profile and every published command on the real parser of every release."""

from __future__ import annotations

import re

import pytest

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.command import MODULE, command
from dflashctl.engines.sglang.equivalents import EQUIVALENTS, SAME
from dflashctl.engines.sglang.options import from_dump
from dflashctl.engines.sglang.translate import translate
from dflashctl.engines.sglang.wish import wish

from . import published
from .asking import B300, SHIPPED, profile, request
from .conftest import MATRIX

pytestmark = pytest.mark.real_parsers
RELEASES = catalogue.releases()


def refusals(made):
    return [finding for finding in made.findings if finding.severity is Severity.ERROR]


def asked(name, release):
    if name in published.COMMANDS:
        return request(name, release, profile=published.as_profile(name), capability=B300)
    return request(name, release)


def test_every_command_is_accepted_or_rightly_refused(parser):
    release = parser.release
    names = (*SHIPPED, *published.VALID)
    made = {name: command(asked(name, release)) for name in names}
    running = {name: list(m.module_argv[len(MODULE) :]) for name, m in made.items() if not refusals(m)}
    answers = dict(zip(running, parser.ask(list(running.values())), strict=True))
    assert {name: answer for name, answer in answers.items() if answer is not None} == {}
    for name, plan in made.items():
        refused = refusals(plan)
        MATRIX[name, release] = "x" if refused else "~" if plan.translations else "="
        for finding in refused:
            assert rightly(finding, parser), (name, release, finding)


def rightly(finding, parser):
    """Checks a refusal against the release itself."""
    if finding.id == "dflash_absent":
        model = ["--model-path", "m", "--speculative-algorithm", "DFLASH"]
        return parser.ask([model])[0] is not None
    sources = parser.sources / "sglang" / "srt"
    texts = [path.read_text(encoding="utf-8-sig") for path in (sources / "models").glob("*.py")]
    if finding.id == "target_class_absent":
        return not any("class KimiK3ForConditionalGeneration" in text for text in texts)
    if finding.id == "target_without_dflash_hook":
        k3 = (sources / "models" / "kimi_k3.py").read_text(encoding="utf-8")
        return "def set_dflash_layers_to_capture" not in k3
    if finding.id in ("value_unknown", "option_not_in_release"):
        words = re.search(r"(--[\w-]+)(?: (\S+))?", finding.summary.replace("'", ""))
        value = [words[2]] if finding.id == "value_unknown" and words[2] else []
        return parser.ask([["--model-path", "m", words[1], *value]])[0] is not None
    return finding.id in LATE


# What no parser can refuse; tests/engines/test_resolution.py and the sources stand for these.
LATE = ("linear_flashinfer_state_type", "gdn_replayssm_spec_kind")


@pytest.mark.parametrize("release", RELEASES)
def test_shipped_profiles_use_no_deprecated_option(release):
    have = catalogue.catalogue(release)
    for name in SHIPPED:
        made = command(request(name, release))
        if not refusals(made):
            assert [
                a.flag for a in made.arguments if have.find(a.flag) is None or have.find(a.flag).deprecated
            ] == []


def test_the_catalogue_is_what_the_parser_says(parser):
    real = {option.strings: option for option in map(from_dump, parser.options)}
    ours = {option.strings: option for option in catalogue.catalogue(parser.release).options}
    assert ours == real


def sides():
    for equivalent in EQUIVALENTS:
        yield equivalent, equivalent.old
        yield equivalent, equivalent.new


def sample(equivalent, piece):
    """Words for one piece: its literal value, or one that the option takes in the newest release that has it."""
    if piece.value != SAME:
        return (piece.value,) if piece.value is not None else ()
    flags = [other.flag for other in (*equivalent.new, *equivalent.old) if other.value in (SAME, None)]
    options = [catalogue.catalogue(catalogue.releases_with(flag)[-1]).find(flag) for flag in flags]
    choices = next((option.choices for option in options if option.choices), None)
    return (choices[0],) if choices else ("8",)


def test_both_spellings_of_every_renamed_option_come_out_right(parser):
    have = catalogue.catalogue(parser.release)
    commands, refused = [], []
    for equivalent, pieces in sides():
        wishes = [wish(piece.flag, *sample(equivalent, piece)) for piece in pieces]
        made = translate(wishes, have)
        wrong = any(finding.severity is Severity.ERROR for finding in made.findings)
        words = wishes if wrong else made.granted
        (refused if wrong else commands).append(
            ["--model-path", "m", *(w for one in words for w in (one.flag, *one.values))]
        )
    answers = parser.ask([*commands, *refused])
    wrongly_granted = [(c, a) for c, a in zip(commands, answers, strict=False) if a is not None]
    wrongly_refused = [c for c, a in zip(refused, answers[len(commands) :], strict=True) if a is None]
    assert (wrongly_granted, wrongly_refused) == ([], [])


def test_every_shipped_sglang_profile_is_covered():
    assert all(profile(name).engine.name.value == "sglang" for name in SHIPPED)
