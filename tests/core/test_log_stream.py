from dflashctl.core.log_line import parse, stamp
from dflashctl.core.log_stream import FlowLimit, Line, LineSplitter
from dflashctl.core.redact import Redactor


def lines(*chunks, **options):
    splitter = LineSplitter(**options)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


def test_lines_are_cut_at_breaks_wherever_the_chunks_end():
    whole = b"one\ntwo\r\nthree\n\nfour"
    expected = [Line(text=t) for t in ("one", "two", "three", "four")]
    assert lines(whole) == expected
    assert lines(*(whole[i : i + 1] for i in range(len(whole)))) == expected


def test_a_carriage_return_marks_a_passing_state():
    assert lines(b"\r 0%\r 50%\r", b"100%\ndone\n") == [
        Line(text=" 0%", passing=True),
        Line(text=" 50%", passing=True),
        Line(text="100%"),
        Line(text="done"),
    ]


def test_a_bar_that_is_not_replaced_yet_can_be_seen():
    splitter = LineSplitter()
    assert splitter.feed(b"\rLoading 10%") == []
    assert splitter.preview() == Line(text="Loading 10%", passing=True)


def test_a_giant_line_is_cut_once_and_the_next_is_whole():
    got = lines(b"a" * 60, b"b" * 60, b"c" * 60 + b"\nnext\n", max_bytes=50)
    assert [line.text[:5] for line in got] == ["aaaaa", "next"]
    assert "cut]" in got[0].text


def test_control_characters_and_broken_utf8_do_not_pass():
    assert lines(b"\x1b[31mred\x1b[0m \x07bell \xff\n") == [Line(text="red bell \ufffd")]


def test_a_flood_is_limited_and_counted():
    limit = FlowLimit(per_second=3)
    out = [text for n in range(10) for text in limit.admit(Line(text=str(n)), 5.0)]
    assert out == ["0", "1", "2"]
    assert limit.admit(Line(text="later"), 6.5) == ["[dflashctl: 7 lines suppressed]", "later"]
    assert limit.suppressed_total == 7
    limit.admit(Line(text="x"), 6.6)
    limit.admit(Line(text="x"), 6.6)
    limit.admit(Line(text="x"), 6.6)
    assert limit.flush() == ["[dflashctl: 1 lines suppressed]"]


def test_of_a_bar_one_state_a_second_and_the_last_are_kept():
    limit = FlowLimit()
    out = [text for n in range(30) for text in limit.admit(Line(text=f"{n}%", passing=True), 100 + n / 10)]
    assert out == ["0%", "10%", "20%"]
    assert limit.admit(Line(text="end"), 103.0) == ["29%", "end"]


def test_stamps_go_and_come_back():
    line = stamp("a | b", wall_s=1796011289.8721647, phase="loading.capture")
    assert line == "2026-11-30T04:01:29.872Z loading.capture | a | b"
    parsed = parse(line)
    assert (parsed.text, parsed.phase) == ("a | b", "loading.capture")
    assert parsed.is_of("loading")
    assert parsed.is_of("capture")
    assert not parsed.is_of("load")
    assert parse("plain text").phase is None


def test_secrets_are_replaced_by_value_and_by_shape():
    redact = Redactor(("s3cret-key", "abc"))
    assert redact("x s3cret-key y abc") == "x <redacted> y abc"
    assert (
        redact("api_key='k1', admin_api_key=\"k2\", api_key=None")
        == "api_key='<redacted>', admin_api_key=\"<redacted>\", api_key=None"
    )
    assert redact("Authorization: Bearer abcdefgh12345") == "Authorization: Bearer <redacted>"
    assert redact("token hf_abcdefghijklmnopqrstuvwx.") == "token <redacted>."
    assert Redactor()("nothing to hide") == "nothing to hide"
