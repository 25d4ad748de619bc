import pytest

from dflashctl.core.figure_text import figure_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (13927.4, "13927"),
        (1_234_567.8, "1234568"),
        (999.96, "1000"),
        (557.24, "557.2"),
        (12.331, "12.33"),
        (0.23321, "0.2332"),
        (0.00012345, "0.0001234"),
        (0.00001234, "0.000012"),
        (0.0, "0"),
        (-2500.0, "-2500"),
    ],
)
def test_figures_have_no_exponent(value, text):
    assert figure_text(value) == text
    assert "e" not in text
