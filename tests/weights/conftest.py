"""Fixtures: a fake Hub and a pair on it, once for each supported end of huggingface_hub."""

from __future__ import annotations

import os
import sys

import pytest

from tests.weights import hub_kit

OLD_PYTHON = os.environ.get("DFLASHCTL_TEST_HUB_OLD_PYTHON")
if os.environ.get("DFLASHCTL_REQUIRE_HUB_OLD") and not OLD_PYTHON:
    raise RuntimeError(
        "the oldest huggingface_hub is required here: DFLASHCTL_TEST_HUB_OLD_PYTHON is not set"
    )


@pytest.fixture(
    params=[
        "newest",
        pytest.param(
            "oldest",
            marks=pytest.mark.skipif(
                not OLD_PYTHON, reason="DFLASHCTL_TEST_HUB_OLD_PYTHON is not set (.ci/hub-old.sh)"
            ),
        ),
    ]
)
def kit(request, tmp_path):
    python = sys.executable if request.param == "newest" else str(OLD_PYTHON)
    made, process = hub_kit.start(tmp_path, python)
    yield made
    for started in made.spawned:
        started.kill()
        started.communicate()
    process.kill()
    process.wait()
    process.stdout.close()
