"""Which engine an image has, when it can be asked and when it cannot."""

from __future__ import annotations

import pytest

from dflashctl.commands.image_build import image_build
from dflashctl.core.engine import EngineBuild
from dflashctl.core.errors import Unavailable
from dflashctl.engines import ENGINES
from dflashctl.env import Env

SGLANG = ENGINES["sglang"]


class Engines:
    def __init__(self, images):
        self.images = images

    def find_in_image(self, *, image):
        if image not in self.images:
            raise Unavailable("no such image")
        return self.images[image]


def test_an_image_that_is_here_is_asked():
    build = EngineBuild(release="0.5.20", installed=True)
    assert image_build(Env(engines=Engines({"img": build})), "img", SGLANG) == (build, ())


@pytest.mark.parametrize(
    ("image", "release", "why"),
    [
        ("lmsysorg/sglang:v0.5.21-cu130", "0.5.21", "its tag names it"),
        ("localhost:5000/sglang:0.5.20", "0.5.20", "its tag names it"),
        ("lmsysorg/sglang:latest", SGLANG.NEWEST_RELEASE, "newest"),
        (None, SGLANG.NEWEST_RELEASE, "newest"),
    ],
)
def test_otherwise_its_tag_counts_and_that_is_said(image, release, why):
    build, (note,) = image_build(Env(engines=Engines({})), image, SGLANG)
    assert build.release == release
    assert why in note.summary


def test_an_image_without_the_engine_is_judged_by_its_tag():
    build, notes = image_build(Env(engines=Engines({"x:v0.5.22": None})), "x:v0.5.22", SGLANG)
    assert (build.release, len(notes)) == ("0.5.22", 1)
