"""Make the stored files: `python -m dflashctl.cli.stored` rewrites the top-level help and completions/."""

from __future__ import annotations

from pathlib import Path

from dflashctl.cli.app import SUMMARY
from dflashctl.cli.describe import CommandInfo, commands
from dflashctl.cli.shells import SHELLS

_HERE = Path(__file__).resolve().parent
_HEADER = '"""The top-level help as text; made by `python -m dflashctl.cli.stored`, kept equal by a test."""\n\n'


def top_level_help() -> str:
    """The text of `dflashctl --help`."""
    infos = commands()
    width = max(len(info.words[0]) for info in infos)
    lines = [f"  {info.words[0]:<{width}}  {_summary(info)}" for info in infos]
    return "\n".join(
        (
            "Usage: dflashctl COMMAND [OPTIONS]",
            "",
            SUMMARY,
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  --version   Print the version and exit.",
            "  -h, --help  Show this text; `dflashctl COMMAND --help` shows a command with an example.",
            "",
            "Start here:  dflashctl up tiny-cpu     a real DFlash server on this computer, no GPU needed",
            "             dflashctl profile list    what else can be served",
            "",
        )
    )


def stored_files() -> dict[Path, str]:
    """Every stored file with the text it must have."""
    files = {_HERE / "stored_help.py": f"{_HEADER}TOP_LEVEL = {_literal(top_level_help())}\n"}
    folder = _HERE.parent.parent / "completions"
    return {**files, **{folder / name: make(commands()) for name, make in SHELLS.items()}}


def _summary(info: CommandInfo) -> str:
    return info.help


def _literal(text: str) -> str:
    return '"""\\\n' + text.replace("\\", "\\\\") + '"""'


def main() -> None:
    for path, text in stored_files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
