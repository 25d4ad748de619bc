"""Where each shell looks for completions, and what `completion` answers."""

from __future__ import annotations

from dataclasses import dataclass

FILES = {"bash": "dflashctl.bash", "zsh": "_dflashctl", "fish": "dflashctl.fish"}


@dataclass(frozen=True, kw_only=True)
class CompletionScript:
    """`installed` is the file written, None when only printed."""

    shell: str
    text: str
    installed: str | None = None


def install_path(shell: str, home: str, data_home: str | None, config_home: str | None) -> str:
    """The file that `shell` reads on its own; zsh needs its folder in fpath."""
    data = data_home or f"{home}/.local/share"
    config = config_home or f"{home}/.config"
    return {
        "bash": f"{data}/bash-completion/completions/dflashctl",
        "zsh": f"{data}/zsh/site-functions/_dflashctl",
        "fish": f"{config}/fish/completions/dflashctl.fish",
    }[shell]
