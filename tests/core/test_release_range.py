"""What a profile compares with: releases, drivers, compute capabilities."""

from __future__ import annotations

import pytest

from dflashctl.commands.planned import planned
from dflashctl.core.errors import ProfileError
from dflashctl.core.options import PlanRequest
from dflashctl.core.release_range import in_range, is_range
from dflashctl.env import Env


@pytest.mark.parametrize(
    ("release", "text", "inside"),
    [
        ("0.5.23", ">=0.5.21", True),
        ("0.5.21", ">=0.5.21", True),
        ("0.5.9", ">=0.5.21", False),
        ("0.5.23", ">=0.5.99", False),
        ("0.5.23.post1", "==0.5.23", True),
        ("0.5.23+local", "0.5.23", True),
        ("v0.5.23", "<= v0.5.23", True),
        ("0.5.23", ">=0.5.21, <0.5.23", False),
        ("0.5.22", ">=0.5.21,<0.5.23", True),
        ("0.6.0", ">0.5", True),
        ("0.6.0", "==0.6", True),
        ("0.5.22", "!=0.5.22", False),
        ("0.5.23", "~=0.5.21", True),
        ("0.5.20", "~=0.5.21", False),
        ("0.6.0", "~=0.5.21", False),
        ("", ">=0.5.21", False),
    ],
)
def test_a_release_in_a_range(release, text, inside):
    assert is_range(text)
    assert in_range(release, text) is inside


def plan(home, *sets):
    env = Env(environ={"HOME": str(home)}, cwd=home)
    request = PlanRequest(profile="qwen3-8b-h100", dry_run=True, engine_version="0.5.22", sets=sets)
    return planned(env, request).plan


@pytest.mark.parametrize(
    ("versions", "warned"), [(">=0.5.99", True), (">=0.5.21", False), ("0.5.22", False), ("<0.5.22", True)]
)
def test_another_release_than_the_profile_is_meant_for_is_a_warning(versions, warned, tmp_path):
    made = plan(tmp_path, f'engine.versions="{versions}"')
    assert made.refusals == ()
    assert any(versions in text and "0.5.22" in text for text in made.warnings) is warned


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("engine.versions", "banana"),
        ("engine.versions", ""),
        ("engine.versions", ">=0.5.21,"),
        ("engine.versions", "~0.5"),
        ("requirements.driver", "abc"),
        ("requirements.driver", ""),
        ("requirements.driver", "580.x"),
        ("requirements.driver", ">=580"),
        ("requirements.compute_capability", "[banana]"),
        ("requirements.compute_capability", '["103"]'),
        ("requirements.compute_capability", '["10.3", "sm_100"]'),
    ],
)
def test_what_compares_with_nothing_is_no_valid_profile(path, value, tmp_path):
    text = value if value.startswith("[") else f'"{value}"'
    with pytest.raises(ProfileError) as raised:
        plan(tmp_path, f"{path}={text}")
    assert path in str(raised.value) + str(raised.value.detail)
