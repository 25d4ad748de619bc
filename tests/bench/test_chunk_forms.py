"""Chunks of every form give the counts and the text that a JSON parser finds in them, however they arrive."""

from __future__ import annotations

import json

import pytest

from dflashctl.bench.answer import Answer, read_head
from dflashctl.bench.kept_text import KeptText
from dflashctl.bench.scan import ChatReader
from dflashctl.bench.tally import Tally

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
TEXTS = [
    "tok ", "a", "\n\n", 'say "x"', '","', '\\",', ",", '"', "\\", '\\\\"', "é😀", '","reasoning_content":null', ':"',
    '"completion_tokens":99,', '"delta":{"content":"x', "\u2028", "\x7f", "0\r\n\r\n",
]  # fmt: skip


def sglang(n, text, *, thinks=False):
    delta = {
        "role": None,
        "content": None if thinks else text,
        "reasoning_content": text if thinks else None,
        "tool_calls": None,
    }
    usage = {
        "prompt_tokens": 3,
        "total_tokens": 3 + n,
        "completion_tokens": n,
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
    }
    return {"id": "a", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": usage}


def bare(n, text):
    """Without the members that are null, the count at the very end."""
    return {"id": "a", "choices": [{"delta": {"content": text}}], "usage": {"completion_tokens": n}}


def without_usage(n, text):
    return {**sglang(0, text), "usage": None}


def usage_first(n, text):
    found = sglang(n, text)
    return {"usage": found.pop("usage"), **found}


def half_of_them(n, text):
    return sglang(n, text) if n % 4 else without_usage(n, text)


def other_members(n, text):
    """What follows the text changes in mid-stream, with the bytes of before further on."""
    found = sglang(n, text)
    if n > 20:
        delta = found["choices"][0]["delta"]
        later = [delta.pop(name) for name in ("reasoning_content", "tool_calls")]
        delta |= {"refusal": "no", "reasoning_content": later[0], "tool_calls": later[1]}
    return found


def nested_count(n, text):
    found = sglang(n, text)
    found["usage"] = {"completion_tokens_details": {"rejected": 4}, **found["usage"]}
    return found


def going_down(n, text):
    return sglang(n if n % 7 else n - 5, text)


FORMS = {
    "SGLang": sglang,
    "SGLang, several tokens": lambda n, text: sglang(n * 5, text),
    "SGLang, counts with many digits": lambda n, text: sglang(n * 997, text),
    "reasoning": lambda n, text: sglang(n, text, thinks=True),
    "reasoning, then content": lambda n, text: sglang(n, text, thinks=n < 25),
    "in turns": lambda n, text: sglang(n, text, thinks=bool(n % 2)),
    "bare": bare,
    "without usage": without_usage,
    "usage first": usage_first,
    "usage in some": half_of_them,
    "other members later": other_members,
    "a nested object before the count": nested_count,
    "counts that go down": going_down,
    "a text that is empty at times": lambda n, text: sglang(n, text if n % 9 else ""),
    "ids that change": lambda n, text: {**sglang(n, text), "id": str(n)},
}
CHUNKS = 60


def payloads(form, ascii_only):
    for n in range(1, CHUNKS + 1):
        text = TEXTS[n % len(TEXTS)]
        yield json.dumps(form(n, text), separators=(",", ":"), ensure_ascii=ascii_only)


def expected(found):
    """(content, reasoning, tokens by chunk, the last count) as JSON reads them."""
    content, reasoning, tokens, seen = "", "", [], 0
    for payload in found:
        chunk = json.loads(payload)
        delta = chunk["choices"][0]["delta"]
        content += delta.get("content") or ""
        reasoning += delta.get("reasoning_content") or ""
        if chunk["usage"] and (delta.get("content") or delta.get("reasoning_content")):
            count = chunk["usage"]["completion_tokens"]
            tokens.append(max(0, count - seen))
            seen = count
    return content, reasoning, tokens, seen


def framed(payload):
    data = b"data: %b\n\n" % payload.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "UTF-8"])
@pytest.mark.parametrize("together", [1, 2, 7, 30, CHUNKS], ids=lambda n: f"{n} a read")
def test_counts_and_texts_are_those_that_json_finds(form, ascii_only, together):
    found = list(payloads(form, ascii_only))
    events = [framed(payload) for payload in found]
    answer = Answer(api="chat", chunk_usage=True, keep_text=True)
    answer.begin(read_head(HEAD))
    for start in range(0, len(events), together):
        answer.feed(float(start), b"".join(events[start : start + together]))
    answer.feed(99.0, END)
    answer.end(99.0, closed=False)
    tally = answer.tally
    assert tally.error is None
    assert tally.mismatches == 0
    got = (tally.text.whole(), tally.reasoning.whole(), list(tally.chunk_tokens), tally.seen_tokens)
    assert got == expected(found)
    assert len(tally.gaps_s) == tally.chunks - 1


PIECES = {
    "ASCII": ["word "] * 5000,
    "a letter each": list("abcdefgh") * 3000,
    "quotes": ['"\\\n'] * 6000,
    "CJK": ["漢字"] * 4000,
    "beyond the BMP": ["😀"] * 4000,
    "halves of a pair": ["\ud83d", "\ude00"] * 3000,
    "short": ["a"],
    "none": [],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "UTF-8"])
def test_only_the_end_of_a_text_is_kept(pieces, escaped):
    kept, whole, largest = KeptText(2000), KeptText(), 0
    for piece in pieces:
        if escaped or "\ud83d" in pieces:
            raw = json.dumps(piece)[1:-1].encode()
        else:
            raw = json.dumps(piece, ensure_ascii=False)[1:-1].encode()
        kept.add_escaped(raw)
        whole.add_escaped(raw)
        largest = max(largest, len(kept.escaped))
    assert kept.whole() == whole.whole()[-2000:]
    assert largest < 2000 * 25
    kept.replace("x" * 9000 + "end")
    assert kept.whole() == "x" * 1997 + "end"


@pytest.mark.parametrize("together", [1, 30])
@pytest.mark.parametrize("thinks", [True, False])
def test_a_long_answer_holds_no_more_than_the_end_of_its_text(together, thinks):
    chunks = (sglang(n, f"{n} ", thinks=thinks) for n in range(1, 6001))
    events = [framed(json.dumps(chunk, separators=(",", ":"))) for chunk in chunks]
    answer = Answer(api="chat", chunk_usage=True, keep_text=True, text_end=100)
    answer.begin(read_head(HEAD))
    largest = 0
    for start in range(0, len(events), together):
        answer.feed(float(start), b"".join(events[start : start + together]))
        largest = max(largest, len(answer.tally.text.escaped) + len(answer.tally.reasoning.escaped))
    answer.feed(9e9, END)
    answer.end(9e9, closed=False)
    kept = answer.tally.reasoning if thinks else answer.tally.text
    assert kept.whole() == "".join(f"{n} " for n in range(1, 6001))[-100:]
    assert largest < 2000


@pytest.mark.parametrize("keep_text", [True, False])
@pytest.mark.parametrize("chunk_usage", [True, False])
@pytest.mark.parametrize("before", [0, 3])
def test_an_event_that_was_cut_off_anywhere_ends_no_reading(keep_text, chunk_usage, before):
    """What ends before its text begins is a fault of the stream, also as the first event and when many come together."""
    whole = json.dumps(sglang(4, "tok ")).encode()
    begins = whole.index(b"tok ")
    for length in range(len(whole)):
        for together in (False, True):
            tally = Tally(keep_text=keep_text)
            reader = ChatReader(tally, chunk_usage=chunk_usage)
            for n in range(before):
                reader.event(0.1 * n, json.dumps(sglang(n + 1, "tok ")).encode())
            cut = whole[:length]
            if not (together and reader.many(1.0, [b"data: " + cut + b"\n\n"])):
                reader.event(1.0, cut)
            reader.end()
            assert length > begins or tally.error is not None, (cut, together)
