"""Text comes out in whole characters, and stop strings are found wherever tokens and steps cut them."""

from __future__ import annotations

import itertools

import pytest

from dflashctl.reference.text import TextStream


def decode(tokens):
    """Each token is one byte."""
    return bytes(tokens).decode(errors="replace")


def stream(*stop: str, keep_stop=False):
    return TextStream(decode, stop, keep_stop=keep_stop)


def feed(text, steps):
    """Push ``steps`` of bytes; return what each released, what the end released, and the stop found."""
    shown = []
    for step in steps:
        found = text.push(step)
        shown.append(text.release(final=found is not None))
        if found is not None:
            return shown, "", found
    return shown, text.release(final=True), None


def cuts(raw, size):
    return [raw[at : at + size] for at in range(0, len(raw), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("said", ["plain", "déjà vu €5 😀!", "日本語😀"])
def test_no_character_is_ever_shown_in_halves(said, size):
    shown, last, _ = feed(stream(), cuts(said.encode(), size))
    assert "".join(shown) + last == said
    assert all("\ufffd" not in part for part in shown)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 30])
def test_a_stop_string_is_found_across_tokens_and_steps(size):
    shown, last, found = feed(stream("STOP"), cuts(b"go on SSTOP and more", size))
    assert (found, "".join(shown) + last) == ("STOP", "go on S")


def test_text_that_may_become_a_stop_string_is_held_back_until_it_cannot():
    text = stream("<end>")
    text.push(b"a <en")
    assert text.release(final=False) == "a "
    text.push(b"dless>")
    assert text.release(final=False) == "<endless>"


def test_what_was_held_back_appears_at_the_end():
    shown, last, _ = feed(stream("<end>"), [b"a <en"])
    assert (shown, last) == (["a "], "<en")


def test_the_earliest_of_several_stop_strings_wins():
    shown, _, found = feed(stream("later", "on", "n l"), [b"go on later"])
    assert (found, shown) == ("on", ["go "])


def test_a_stop_string_may_be_kept():
    shown, _, found = feed(stream("\n", keep_stop=True), [b"one\ntwo"])
    assert (found, shown) == ("\n", ["one\n"])


def test_bytes_that_are_no_text_do_not_block_what_follows():
    shown, last, _ = feed(stream(), [b"a\xff", b"b", b"\xe2\x82"])
    assert "".join(shown) + last == "a\ufffdb\ufffd"


def test_every_way_to_cut_a_short_text_gives_the_same():
    raw = "é<x>ü".encode()
    for marks in itertools.product([False, True], repeat=len(raw) - 1):
        steps, begin = [], 0
        for at, mark in enumerate((*marks, True), 1):
            if mark:
                steps.append(raw[begin:at])
                begin = at
        shown, last, found = feed(stream("<x>"), steps)
        assert ("".join(shown) + last, found) == ("é", "<x>")
