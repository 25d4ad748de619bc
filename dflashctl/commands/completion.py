"""`completion`: the script of a shell, printed or installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.completion import FILES, CompletionScript, install_path
from dflashctl.core.errors import Permanent, UsageProblem
from dflashctl.core.report import Report

if TYPE_CHECKING:
    from dflashctl.env import Env


def completion(env: Env, shell: str | None, *, install: bool) -> Report:
    """The script for `shell` (default: that of $SHELL); with `install`, where the shell finds it by itself."""
    name = shell or Path(env.environ.get("SHELL", "")).name
    if name not in FILES:
        raise UsageProblem(f"no completion for the shell {name!r}", hint="dflashctl completion bash|zsh|fish")
    text = env.shipped("completions", FILES[name]).read_text(encoding="utf-8")
    if not install:
        return Report(command="completion", data=CompletionScript(shell=name, text=text))
    path = _install(env, name, text)
    steps: tuple[str, ...] = ("start a new shell",)
    if name == "zsh":
        steps = (f"add to ~/.zshrc before compinit: fpath=({path.parent} $fpath)", *steps)
    return Report(
        command="completion",
        data=CompletionScript(shell=name, text=text, installed=str(path)),
        next_steps=steps,
    )


def _install(env: Env, shell: str, text: str) -> Path:
    home = env.environ.get("HOME", "")
    path = Path(
        install_path(shell, home, env.environ.get("XDG_DATA_HOME"), env.environ.get("XDG_CONFIG_HOME"))
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Permanent(
            f"{str(path)!r} cannot be written: {error.strerror}", hint=f"dflashctl completion {shell} > FILE"
        ) from error
    return path
