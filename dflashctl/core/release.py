"""Release numbers as people write them."""

from __future__ import annotations

import re

from dflashctl.core.errors import UsageProblem

_RELEASE = re.compile(r"v?(?P<release>\d+\.\d+\.\d+(?:[.+-]?[A-Za-z0-9]+)*)")


def release_named(text: str) -> str:
    """The release that `--engine-version` names, without the `v` of its tag; UsageProblem when it names none."""
    found = _RELEASE.fullmatch(text.strip())
    if found is None:
        raise UsageProblem(f"--engine-version {text!r} is no release", hint="--engine-version 0.5.22")
    return found["release"]
