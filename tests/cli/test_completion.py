"""The completions in real shells: what a person gets when pressing Tab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dflashctl.edges.shipped import shipped_folder
from tests.support.cli import run

FOLDER = shipped_folder("completions")
CASES = [
    ("dflashctl ", {"up", "down", "status", "profile"}, {"__complete"}),
    ("dflashctl pro", {"profile"}, {"up"}),
    ("dflashctl profile ", {"list", "show", "validate"}, {"up"}),
    ("dflashctl up kimi", {"kimi-k3-b300", "kimi-k2.5-b200"}, {"tiny-cpu", "reference"}),
    ("dflashctl up --profile tiny", {"tiny-cpu", "tiny-gpu"}, {"kimi-k3-b300"}),
    ("dflashctl up --dr", {"--dry-run"}, {"--set"}),
    ("dflashctl profile show tiny", {"tiny-cpu"}, set()),
    ("dflashctl bench --th", {"--thinking"}, {"--thinking/--no-thinking"}),
    ("dflashctl bench --no-", {"--no-thinking", "--no-speculation", "--no-baseline", "--no-expect"}, set()),
    ("dflashctl bench --keep", {"--keep-cache"}, set()),
    ("dflashctl down run", {"running-one"}, {"tiny-cpu"}),
]


@pytest.fixture
def shell_environment(tmp_path):
    """A shell that finds dflashctl, and one instance called running-one."""
    (tmp_path / "state" / "v1" / "instances" / "running-one").mkdir(parents=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "dflashctl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dflashctl "$@"\n')
    (tools / "dflashctl").chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "DFLASHCTL_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "TERM": "dumb",
    }


def needed(shell: str) -> None:
    if shutil.which(shell) is None:
        assert not os.environ.get("DFLASHCTL_REQUIRE_SHELLS"), f"{shell} is required here"
        pytest.skip(f"{shell} is not installed")


def bash(line: str) -> str:
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    return (
        f"source {FOLDER / 'dflashctl.bash'}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _dflashctl; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )


def fish(line: str) -> str:
    return f"source {FOLDER / 'dflashctl.fish'}; complete -C '{line}'"


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"), [*CASES, ("dflashctl bench run", {"running-one"}, {"tiny-cpu"})]
)
def test_tab_offers(shell, line, wanted, unwanted, shell_environment, tmp_path):
    needed(shell)
    script = {"bash": bash, "fish": fish}[shell](line)
    result = subprocess.run(
        [shell, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=shell_environment,
        cwd=tmp_path,
    )
    assert result.stderr == ""
    offered = {row.split("\t")[0] for row in result.stdout.split("\n")}
    assert wanted <= offered
    assert not unwanted & offered


ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1= PROMPT= RPROMPT=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; cd {cwd}"
zpty -w z "LISTMAX=1000; zstyle ':completion:*' list-prompt ''; echo rea''dy"
zpty -r -m z line '*ready*'
zpty -w -n z "{line}"$'\\t\\t'
sleep 1
zpty -w -n z $'\\C-u'"echo fini''shed"$'\\n'
zpty -r -m z text '*finished*'
print -r -- "$text"
"""


@pytest.mark.parametrize(("line", "wanted", "unwanted"), CASES)
def test_tab_offers_in_zsh(line, wanted, unwanted, shell_environment, tmp_path):
    needed("zsh")
    script = ZSH.format(folder=FOLDER, line=line, cwd=tmp_path)
    result = subprocess.run(
        ["zsh", "-f", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=shell_environment,
        timeout=60,
    )
    assert all(word in result.stdout for word in wanted), result.stdout + result.stderr
    del unwanted  # the echo of a terminal cannot tell what was not offered


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/dflashctl"),
        ("zsh", ".local/share/zsh/site-functions/_dflashctl"),
        ("fish", ".config/fish/completions/dflashctl.fish"),
    ],
)
def test_install_writes_where_the_shell_looks(shell, place, tmp_path):
    result = run("completion", "--install", environ={"HOME": str(tmp_path), "SHELL": f"/bin/{shell}"})
    assert result.exit == 0
    assert (tmp_path / place).read_text() == Path(
        FOLDER / {"zsh": "_dflashctl"}.get(shell, f"dflashctl.{shell}")
    ).read_text()


def test_install_into_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / ".local").write_text("a file, not a folder")
    result = run("completion", "bash", "--install", environ={"HOME": str(tmp_path)})
    assert result.exit == 78
    assert ".local" in result.err


def test_the_script_is_printed_as_it_is():
    assert run("completion", "bash").out == (FOLDER / "dflashctl.bash").read_text()
