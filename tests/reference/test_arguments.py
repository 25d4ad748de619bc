"""The command line takes SGLang's names, and nothing that it does not understand."""

from __future__ import annotations

import pytest

from dflashctl.reference.arguments import parse, resolve_block_size
from dflashctl.reference.errors import StartError

DFLASH = ("--speculative-algorithm", "dflash", "--speculative-draft-model-path", "/d")


def settings(*arguments: str):
    return parse(["--model-path", "/m", *arguments])


def test_defaults():
    found = settings()
    assert (found.host, found.port, found.served_model_name) == ("127.0.0.1", 30000, "/m")
    assert (found.max_running_requests, found.decode_log_interval) == (48, 40)
    assert found.speculative_algorithm is None


def test_the_algorithm_in_any_case_and_the_block_size_under_either_name():
    assert settings(*DFLASH).speculative_algorithm == "DFLASH"
    for name in ("--speculative-dflash-block-size", "--speculative-num-draft-tokens"):
        assert settings(*DFLASH, name, "8").speculative_dflash_block_size == 8


@pytest.mark.parametrize("off", [("--no-speculation",), ()])
def test_without_the_algorithm_or_with_the_switch_the_draft_is_not_used(off):
    arguments = (*(DFLASH if off else DFLASH[2:]), "--speculative-dflash-block-size", "8", *off)
    found = settings(*arguments)
    assert found.speculative_draft_model_path is None
    assert found.speculative_dflash_block_size is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tp-size", "8"], "unrecognized arguments: --tp-size 8"),
        (["--speculative-dflash-block", "8"], "unrecognized arguments"),
        (["--api-key", "secret"], "unrecognized arguments"),
        (["--port", "70000"], "must be 0..65535"),
        (["--max-running-requests", "0"], "must be at least 1"),
        (["--speculative-algorithm", "EAGLE"], "unknown speculative algorithm name: EAGLE"),
        (["--speculative-algorithm", "DFLASH"], "needs --speculative-draft-model-path"),
        (
            [*DFLASH, "--speculative-dflash-block-size", "8", "--speculative-num-draft-tokens", "4"],
            "must match",
        ),
    ],
)
def test_bad_arguments_end_with_code_2_and_a_reason(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        settings(*arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_config_file_adds_arguments_and_the_command_line_wins(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("port: 31000\nhost: 0.0.0.0\nenable-metrics: true\ntrust-remote-code: false\n")
    found = settings("--config", str(file), "--port", "31001")
    assert (found.port, found.host, found.enable_metrics, found.trust_remote_code) == (
        31001,
        "0.0.0.0",
        True,
        False,
    )


def test_keys_come_from_the_config_file_only_and_are_never_shown(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("api-key: s3cret\nadmin-api-key: t0psecret\n")
    found = settings("--config", str(file))
    assert found.api_keys == ("s3cret", "t0psecret")
    assert "cret" not in repr(found) + str(found.shown())


@pytest.mark.parametrize("text", ["- a list\n", "api-key: [s3cret", "\x00"])
def test_a_config_file_that_cannot_be_read_is_refused_without_quoting_it(tmp_path, capsys, text):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(SystemExit) as caught:
        settings("--config", str(file))
    assert caught.value.code == 2
    assert "s3cret" not in capsys.readouterr().err


def test_a_missing_config_file_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        settings("--config", str(tmp_path / "none.yaml"))
    assert "none.yaml" in capsys.readouterr().err


def test_block_sizes():
    assert resolve_block_size(None, 16, None) == 16
    assert resolve_block_size(1, 16, None) == 1
    with pytest.raises(StartError, match="block size 17 is above the 16"):
        resolve_block_size(17, 16, None)
    with pytest.raises(StartError, match="smaller than the block size 16"):
        resolve_block_size(None, 16, 8)
