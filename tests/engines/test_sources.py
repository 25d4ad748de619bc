"""Where the data says that SGLang does something, there is such a place in that release."""

from __future__ import annotations

import re

import pytest

from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.environment import INERT
from dflashctl.engines.sglang.equivalents import EQUIVALENTS
from dflashctl.engines.sglang.rules import ALL_RULES

pytestmark = pytest.mark.real_parsers
PLACE = re.compile(
    r"^(?:sglang (?P<release>[\d.]+): )?(?P<path>srt/[\w/.]+)(?::(?P<line>\d+))?(?:: (?P<name>\w+))?$"
)
ELSEWHERE = ("flashinfer: ", "observed at ", "sgl-project/")
SOURCES = sorted({entry.source for entry in (*ALL_RULES, *EQUIVALENTS, *INERT)})


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_there(parsers_folder, source):
    if source.startswith(ELSEWHERE):
        return
    place = PLACE.match(source)
    assert place, source
    path = parsers_folder / "src" / (place["release"] or catalogue.newest()) / "sglang" / place["path"]
    assert path.exists()
    if place["line"]:
        assert len(path.read_text(encoding="utf-8-sig").splitlines()) >= int(place["line"])
    if place["name"]:
        assert place["name"] in path.read_text(encoding="utf-8-sig")
