"""docs/json.md names the keys that the commands really print."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.cli import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()


def documented(section: str) -> set[str]:
    """The words of the first list of keys in that section."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return {word.strip() for word in re.search(r"`([^`]+)`", text)[1].replace("\n", " ").split(",")}


def test_the_keys_of_a_dry_run():
    assert documented("up --dry-run") == set(run("up", "tiny-cpu", "--dry-run", "--json").json["data"])


def test_the_keys_of_the_envelope():
    for key in run("profile", "list", "--json").json:
        assert f"| `{key}` |" in PAGE


def test_the_keys_of_findings_and_errors():
    answer = run("up", "kimi-k3-b300", "--dry-run", "--engine-version", "0.5.19", "--json").json
    assert set(answer["findings"][0]) == {"id", "severity", "summary", "detail", "fix"}
    assert set(answer["errors"][0]) == {"message", "hint", "detail", "exit_code"}
