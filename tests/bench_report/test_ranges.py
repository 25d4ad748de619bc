"""Numbers that make no sense are refused by their option's name, with what it takes, before a request is sent."""

from __future__ import annotations

import pytest

from tests.support.cli import run

NOT_ABOVE_ZERO = ("0", "-1", "nan", "inf")
BENCH = {
    "--count": ("-1",),
    "--max-tokens": ("0", "-5"),
    "--input-tokens": ("0", "-1"),
    "--prefix-tokens": ("0", "-1"),
    "--groups": ("0", "-1"),
    "--warm-up": ("-1",),
    "--processes": ("0", "-1"),
    "--concurrency": ("0", "-1", "²", "1,0"),
    "--rate": (*NOT_ABOVE_ZERO, "2,nan"),
    "--timeout": NOT_ABOVE_ZERO,
    "--max-duration": NOT_ABOVE_ZERO,
    "--min-accept-length": NOT_ABOVE_ZERO,
    "--slo-ttft-ms": NOT_ABOVE_ZERO,
    "--slo-tpot-ms": NOT_ABOVE_ZERO,
    "--slo-e2e-ms": NOT_ABOVE_ZERO,
    "--temperature": ("-0.1", "nan", "inf"),
    "--top-p": ("0", "1.1", "-1", "nan"),
    "--max-regression": ("-0.1", "nan"),
    "--expect-tolerance": ("-5", "nan", "inf", "1.5"),
}
SMOKE = {"--near-tie": ("-1", "nan", "inf"), "--timeout": NOT_ABOVE_ZERO}
SWEEPS = ["concurrency=²", "concurrency=0", "block_size=٣", "block_size=-8", "rate=nan", "rate=inf", "rate=0"]


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        (command, option, value)
        for command, table in (("bench", BENCH), ("smoke", SMOKE))
        for option, values in table.items()
        for value in values
    ],
)
def test_a_number_out_of_range_is_a_usage_error(tmp_path, command, option, value):
    result = run(
        command,
        "--url",
        "http://127.0.0.1:1",
        f"{option}={value}",
        "--json",
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
    )
    (error,) = result.json["errors"]
    assert result.exit == 2, error
    assert option in error["message"]
    assert "number" in error["message"]


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_sweep_of_no_numbers_is_a_usage_error(tmp_path, sweep):
    result = run(
        "bench",
        "--url",
        "http://127.0.0.1:1",
        "--sweep",
        sweep,
        "--json",
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
    )
    (error,) = result.json["errors"]
    assert result.exit == 2, error
    assert sweep.partition("=")[2] in error["message"]
