"""README.md and docs/: links lead somewhere, commands are real, CI runs what the reader is told to run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dflashctl.cli.table import ENTRIES, GROUPS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_readme_opens_with_two_commands():
    first, second = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)[:2]
    assert "up --profile tiny-cpu" in first
    assert "pytest" in second


def test_ci_calls_exactly_the_test_command_of_the_readme():
    command = re.findall(r"```bash\n# [^\n]*\n([^\n]*pytest)\n```", README)[0]
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_command_in_a_page_exists(page):
    words = {entry.words[0] for entry in ENTRIES} | set(GROUPS)
    for line in re.findall(r"^\$? ?dflashctl ([a-z]+)", page.read_text(), re.MULTILINE):
        assert line in words, line


def test_every_page_is_reached_from_the_readme():
    linked = set(re.findall(r"\(docs/([a-z-]+\.md)\)", README))
    assert linked == {page.name for page in PAGES[1:]}
