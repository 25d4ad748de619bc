"""A hang is noticed about when the profile asks for it, not a minute later."""

import pytest

from dflashctl.core.pace import Pace


@pytest.mark.parametrize(
    ("hang_after_s", "interval_s", "timeout_s"),
    [(300, 60, 60), (60, 60, 60), (40, 40, 40), (15, 15, 25), (1, 1, 25)],
)
def test_test_completions_keep_to_the_limit_of_a_hang(hang_after_s, interval_s, timeout_s):
    pace = Pace().within(hang_after_s)
    assert (pace.canary_interval_s, pace.canary_timeout_s) == (interval_s, timeout_s)
    assert pace.metrics_s == Pace().metrics_s


def test_a_test_completion_never_ends_before_the_engines_own_health_check():
    engines_own_s = 20
    assert all(Pace().within(limit).canary_timeout_s > engines_own_s for limit in (1, 10, 100, 1000))
