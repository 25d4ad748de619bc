"""Numbers that make no sense are refused by their option's name, with what it takes, before a request is sent."""

from __future__ import annotations

import json

import pytest

from dflashctl.core.report import to_json
from tests.bench_report.made_runs import result, spread
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


@pytest.mark.parametrize("value", [*BENCH["--max-regression"], "inf", "-inf"])
def test_compare_takes_the_numbers_that_bench_takes(tmp_path, value):
    """Each would switch the gate off, or fail what has not changed."""
    (tmp_path / "run.json").write_text(json.dumps(to_json(result(spread(20)))))
    argv = ("bench", "compare", "run.json", "run.json", "--json", f"--max-regression={value}")
    told = run(*argv, cwd=tmp_path, environ={"HOME": str(tmp_path)})
    (error,) = told.json["errors"]
    assert told.exit == 2, error
    assert "--max-regression" in error["message"]
    assert "number of at least 0" in error["message"]


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
