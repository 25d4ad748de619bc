"""Input that nobody means to give: it is refused with its reason, and is never called a bug of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.program import Program, free_port

PROFILE = (Path(__file__).resolve().parents[2] / "profiles/tiny-cpu.yaml").read_text()
DEEP = 100_000


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999", "http://h:x", "http://", "ftp://h", "[", ""]
)
@pytest.mark.parametrize(
    "words", [("smoke",), ("bench",), ("profile", "diff", "tiny-cpu")], ids=lambda words: words[0]
)
def test_an_address_that_is_none(words, url):
    result = run(*words, "--url", url, "--json")
    assert result.exit == 2
    assert "address" in result.json["errors"][0]["message"]


@pytest.mark.parametrize("text", ["[" * DEEP, "{a: " * 1000, "- " * 1000, "? " * 1000, "[" * 30 + "]" * 30])
def test_yaml_in_yaml(tmp_path, text):
    (tmp_path / "deep.yaml").write_text(f"summary: x\nengine: {text}")
    for words in (
        ("profile", "validate", "./deep.yaml"),
        ("up", "./deep.yaml", "--dry-run"),
        ("doctor", "--machine", "deep.yaml"),
        ("profile", "explain", "tiny-cpu", "--set", f"memory.page_size={text[:5000]}"),
    ):
        result = run(*words, "--json", cwd=tmp_path)
        assert result.exit == 78, (words, result.out[-500:])


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, '{"runs": ' + "[" * DEEP + "]" * DEEP + "}"])
def test_json_in_json(tmp_path, text):
    (tmp_path / "deep.json").write_text(text)
    for words in (
        ("bench", "compare", "deep.json", "deep.json"),
        ("bench", "report", "deep.json"),
        ("smoke", "--url", "http://127.0.0.1:1", "--reference", "deep.json"),
        ("doctor", "--machine", "deep.json"),
    ):
        result = run(*words, "--json", cwd=tmp_path)
        assert result.exit in (2, 78), (words, result.out[-500:])


def test_a_folder_whose_name_is_no_utf8(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/st\xff"))
    folder.mkdir()
    (folder / "mine.yaml").write_text(PROFILE)
    program = Program(folder)
    port = str(free_port())
    try:
        up = program.json("up", "./mine.yaml", "-d", "--port", port)
        assert up["exit_code"] == 0, up["errors"]
        measured = program.json("bench", "mine", "--count", "2", "--no-expect", "-o", "b.json")
        assert measured["exit_code"] == 0, measured["errors"]
        assert json.loads((folder / "b.json").read_text())["path"] == str(folder / "b.json")
        for words in (
            ("status", "mine"),
            ("logs", "mine"),
            ("profile", "show", "./mine.yaml"),
            ("doctor", "./mine.yaml"),
        ):
            assert program.run(*words).returncode in (0, 1), words
    finally:
        program.close()
