"""Translation: what was asked, what the release gets, and what is said about it."""

from __future__ import annotations

import pytest

from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.translate import translate
from dflashctl.engines.sglang.wish import translations
from dflashctl.engines.sglang.words import read_words


def given(words, release):
    have = catalogue.catalogue(release)
    read = read_words(words.split(), have, "after --")
    made = translate(read.wishes, have)
    said = {t.from_: t.to for t in translations(made.granted, made.dropped)}
    return " ".join(one.words for one in made.granted), said, [f.id for f in (*read.findings, *made.findings)]


CASES = [
    # asked, release, granted, translations, findings
    ("--speculative-draft-window-size 4096", "0.5.11", "--speculative-dflash-draft-window-size 4096", 1, []),
    (
        "--speculative-dflash-draft-window-size 4096",
        "0.5.11",
        "--speculative-dflash-draft-window-size 4096",
        0,
        [],
    ),
    ("--speculative-dflash-draft-window-size 4096", "0.5.13", "--speculative-draft-window-size 4096", 1, []),
    ("--speculative-dflash-draft-window-size 4096", "0.5.23", "--speculative-draft-window-size 4096", 1, []),
    ("--enable-gdn-replayssm-spec", "0.5.16", "--enable-gdn-replayssm-spec", 0, []),
    ("--enable-gdn-replayssm-spec", "0.5.17", "--enable-linear-replayssm-spec", 1, []),
    ("--enable-linear-replayssm-spec", "0.5.16", "--enable-gdn-replayssm-spec", 1, []),
    ("--enable-linear-replayssm-spec", "0.5.15", "", 1, ["option_dropped"]),
    ("--cuda-graph-max-bs 64", "0.5.13", "--cuda-graph-max-bs 64", 0, []),
    ("--cuda-graph-max-bs 64", "0.5.19", "--cuda-graph-max-bs-decode 64", 1, []),
    ("--cuda-graph-max-bs 64", "0.5.20", "--cuda-graph-max-bs-decode 64", 1, []),
    ("--cuda-graph-max-bs-decode 64", "0.5.9", "--cuda-graph-max-bs 64", 1, []),
    ("--cuda-graph-bs 1 2 4", "0.5.23", "--cuda-graph-bs-decode 1 2 4", 1, []),
    ("--disable-cuda-graph", "0.5.9", "--disable-cuda-graph", 0, []),
    (
        "--disable-cuda-graph",
        "0.5.23",
        "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
        1,
        [],
    ),
    (
        "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
        "0.5.12",
        "--disable-cuda-graph",
        1,
        [],
    ),
    ("--cuda-graph-backend-prefill breakable", "0.5.12", "--enable-breakable-cuda-graph", 1, []),
    ("--cuda-graph-backend-prefill breakable", "0.5.10", "", 1, ["option_dropped"]),
    (
        "--cuda-graph-backend-prefill tc_piecewise",
        "0.5.21",
        "--cuda-graph-backend-prefill tc_piecewise",
        0,
        [],
    ),
    ("--cuda-graph-backend-prefill tc_piecewise", "0.5.22", "", 1, ["value_replaced"]),
    ("--cuda-graph-max-bs-prefill 16384", "0.5.13", "--piecewise-cuda-graph-max-tokens 16384", 1, []),
    ("--enable-dp-attention --dp-size 8", "0.5.21", "--enable-dp-attention --dp-size 8", 0, []),
    ("--enable-dp-attention --dp-size 8", "0.5.22", "--attn-dp-size 8", 1, []),
    ("--attn-dp-size 8", "0.5.20", "--enable-dp-attention --dp-size 8", 1, []),
    ("--mamba-scheduler-strategy extra_buffer", "0.5.23", "--mamba-radix-cache-strategy extra_buffer", 1, []),
    (
        "--linear-attn-prefill-backend ptx_kda",
        "0.5.16",
        "--linear-attn-prefill-backend triton",
        1,
        ["value_replaced"],
    ),
    ("--linear-attn-verify-backend nv_cutedsl", "0.5.16", "", 1, ["option_dropped"]),
    ("--prefill-cp-mode in-seq-split", "0.5.23", "--cp-strategy zigzag", 1, []),
    ("--cp-strategy zigzag", "0.5.13", "--dsa-prefill-cp-mode in-seq-split", 1, []),
    ("--tp 8", "0.5.23", "--tp-size 8", 1, []),
    ("--tensor-parallel-size 8", "0.5.9", "--tp-size 8", 1, []),
    ("--model=m", "0.5.23", "--model-path m", 1, []),
    ("--mem-frac 0.5", "0.5.23", "--mem-fraction-static 0.5", 1, []),
    ("--tp-size 2 --tp-size 4", "0.5.23", "--tp-size 4", 0, []),
    ("--chunked-prefill-size -1", "0.5.23", "--chunked-prefill-size -1", 0, []),
    ("--speculative-algorithm DSPARK", "0.5.11", "--speculative-algorithm DSPARK", 0, []),
    ("--attention-backend fa9", "0.5.23", "", 1, ["value_unknown"]),
    ("--tp-size eight", "0.5.23", "", 1, ["value_type"]),
    ("--no-such-thing 3", "0.5.23", "", 0, ["option_unknown"]),
    ("--speculative-d 8", "0.5.23", "", 0, ["option_ambiguous"]),
    ("--tp-size", "0.5.23", "", 0, ["option_needs_value"]),
    ("--trust-remote-code=yes", "0.5.23", "", 0, ["option_takes_no_value"]),
    ("--attn-dp-size 8 --enable-dp-lm-head", "0.5.23", "--attn-dp-size 8 --enable-dp-lm-head", 0, []),
]


@pytest.mark.parametrize(("asked", "release", "granted", "changes", "findings"), CASES)
def test_translation(asked, release, granted, changes, findings):
    words, said, ids = given(asked, release)
    assert (words, len(said), ids) == (granted, changes, findings), said


def test_a_change_names_what_was_typed_what_becomes_of_it_and_where_that_is_known_from():
    have = catalogue.catalogue("0.5.23")
    made = translate(read_words(["--enable-gdn-replayssm-spec"], have, "").wishes, have)
    (change,) = translations(made.granted, made.dropped)
    assert (change.from_, change.to) == ("--enable-gdn-replayssm-spec", "--enable-linear-replayssm-spec")
    assert "renamed" in change.reason
    assert change.source.startswith("sglang 0.5.17")


def test_an_ambiguous_old_name_says_which_meaning_was_taken():
    have = catalogue.catalogue("0.5.23")
    (one,) = read_words(["--cuda-graph-max-bs", "8"], have, "").wishes
    assert "--cuda-graph-max-bs-decode or --cuda-graph-max-bs-prefill" in one.reasons[0]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--mem-fraction-statik", "--mem-fraction-static"),
        ("--speculative-dflash-blocksize", "--speculative-dflash-block-size"),
    ],
)
def test_an_unknown_option_is_told_the_nearest_ones(word, hint):
    read = read_words([word, "1"], catalogue.catalogue("0.5.23"), "")
    assert hint in read.findings[0].fix


def test_an_unknown_value_is_told_what_there_is_and_which_release_knows_it():
    have = catalogue.catalogue("0.5.16")
    made = translate(read_words(["--reasoning-parser", "kimi_k3"], have, "").wishes, have)
    (finding,) = made.findings
    assert "0.5.17 and later" in finding.summary
    assert "kimi_k2" in finding.detail


def test_words_that_belong_to_no_option_are_kept_apart():
    assert read_words(["model", "--tp-size", "2", "x"], catalogue.catalogue("0.5.23"), "").loose == (
        "model",
        "x",
    )


def _words(spelling, option):
    """That option with a value it takes."""
    if option.nargs == 0:
        return (spelling,)
    count = option.nargs if isinstance(option.nargs, int) else 1
    return (spelling, *([option.choices[0] if option.choices else "1"] * count))


@pytest.mark.parametrize("release", catalogue.releases())
def test_every_option_of_a_release_in_good_standing_stays_the_option_that_it_is(release):
    """Whatever the newest release calls it: nothing refused, nothing dropped, no other option in its place."""
    have = catalogue.catalogue(release)
    wrong = []
    for option in have.options:
        for spelling in option.strings if not option.deprecated else ():
            words = _words(spelling, option)
            read = read_words(words, have, "after --")
            made = translate(read.wishes, have)
            kept = [(have.find(one.flag), one.values) for one in made.granted]
            if kept != [(option, words[1:])] or read.findings or made.findings:
                wrong.append((words, [one.words for one in made.granted]))
    assert wrong == []
