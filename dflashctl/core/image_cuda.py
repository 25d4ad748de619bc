"""Which CUDA a container image is built for, as far as its name tells."""

from __future__ import annotations

import re

# "v0.5.22-cu130", "dev-cu13", "latest-cu129-runtime": the last digit of three is the minor version.
_TAG = re.compile(r"[-_.:]cu(?:da)?(?P<major>1\d)[.-]?(?P<minor>\d)?(?![\d])")
_RELEASE = re.compile(r"lmsysorg/sglang:v(?P<release>\d+\.\d+\.\d+)(?:-runtime)?")
# SGLang's own images without a CUDA in the tag: 13 is the default since 0.5.11.
_SINCE_CUDA_13 = (0, 5, 11)


def image_cuda(image: str) -> str | None:
    """As "13.0" for lmsysorg/sglang:v0.5.22-cu130; None where the name does not say."""
    found = _TAG.search(image)
    if found is not None:
        return f"{found['major']}.{found['minor'] or 0}"
    release = _RELEASE.fullmatch(image)
    if release is None:
        return None
    number = tuple(int(part) for part in release["release"].split("."))
    return "13.0" if number >= _SINCE_CUDA_13 else None
