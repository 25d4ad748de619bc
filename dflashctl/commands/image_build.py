"""The engine inside a Docker image: asked where Docker and the image are here, else taken from the image's tag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dflashctl.core.engine import EngineBuild
from dflashctl.core.errors import Unavailable
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.core.engine import Engine
    from dflashctl.env import Env

_TAG = re.compile(r":v?(?P<release>\d+\.\d+\.\d+)")


def image_build(env: Env, image: str | None, engine: Engine) -> tuple[EngineBuild, tuple[Finding, ...]]:
    """The build in `image`; a note says when it is only what the tag, or nothing at all, tells."""
    if image is not None:
        try:
            found = env.engines.find_in_image(image=image)
        except Unavailable:
            found = None
        if found is not None:
            return found, ()
    tag = _TAG.search(image or "")
    release = tag["release"] if tag else engine.NEWEST_RELEASE
    return EngineBuild(release=release), (_not_asked(image, release, by_tag=tag is not None),)


def _not_asked(image: str | None, release: str, *, by_tag: bool) -> Finding:
    why = "its tag names it" if by_tag else "it is the newest that is known"
    return Finding(
        id="image_not_asked",
        severity=Severity.NOTE,
        summary=f"image {image or 'none'!r} could not be asked for its engine: planned for {release}, because {why}",
        fix=f"docker pull {image}" if image else "--image IMAGE, or engine.image in the profile",
    )
