"""Make the stored files: `python -m dflashctl.cli.stored` rewrites the help texts and completions/."""

from __future__ import annotations

import textwrap
from pathlib import Path

from dflashctl.cli.describe import CommandInfo, OptionInfo, commands
from dflashctl.cli.shells import SHELLS
from dflashctl.cli.table import GROUPS, SUMMARY
from dflashctl.edges.shipped import shipped_folder

_HERE = Path(__file__).resolve().parent
_WIDTH = 100
_HEADER = '"""The help of every command as text; made by `python -m dflashctl.cli.stored`, kept equal by a test."""\n\n'


def top_level_help() -> str:
    """The text of `dflashctl --help`."""
    infos = commands()
    width = max(len(info.words[0]) for info in infos)
    lines = [f"  {info.words[0]:<{width}}  {info.help}" for info in infos]
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


def group_help(info: CommandInfo) -> str:
    """The text of `dflashctl GROUP --help`."""
    name = " ".join(info.words)
    rows = [(child.words[-1], child.help) for child in info.children]
    tail = f"`dflashctl {name} COMMAND --help` shows a command with an example."
    return "\n".join(
        (
            f"Usage: dflashctl {name} COMMAND [OPTIONS]",
            "",
            info.help,
            "",
            *_section("Commands", rows),
            tail,
            "",
        )
    )


def command_help(info: CommandInfo) -> str:
    """The text of `dflashctl COMMAND --help`."""
    name = " ".join(info.words)
    usage = " ".join(("Usage: dflashctl", name, "[OPTIONS]", *(metavar for metavar, _ in info.arguments)))
    paragraphs = info.text.split("\n\n")
    examples = [p.removeprefix("Example: ") for p in paragraphs if p.startswith("Example: ")]
    prose = [p for p in paragraphs if not p.startswith("Example: ")]
    lines = [usage, ""]
    for paragraph in prose:
        lines += [*textwrap.wrap(paragraph, _WIDTH), ""]
    lines += ["Examples:", *(f"  {example}" for example in examples), ""]
    if info.children:
        lines += _section("Commands", [(child.words[-1], child.help) for child in info.children])
    if info.arguments:
        lines += _section("Arguments" if len(info.arguments) > 1 else "Argument", list(info.arguments))
    for panel in dict.fromkeys(("Options", *(option.panel for option in info.options))):
        rows = [(_names(option), option.help) for option in info.options if option.panel == panel]
        lines += _section(panel, [*rows, ("-h, --help", "Show this text.")] if panel == "Options" else rows)
    return "\n".join(lines[:-1]) + "\n"


def _names(option: OptionInfo) -> str:
    names = ", ".join(sorted(option.names, key=lambda name: name.startswith("--")))
    return f"{names} {option.metavar}" if option.metavar else names


def _section(title: str, rows: list[tuple[str, str]]) -> list[str]:
    """A heading, then two columns with the second one wrapped, then an empty line."""
    width = min(28, max(len(name) for name, _ in rows))
    lines = [f"{title}:"]
    for name, text in rows:
        wrapped = textwrap.wrap(text, _WIDTH - width - 4) or [""]
        fits = len(name) <= width
        if not fits:
            lines.append(f"  {name}")
        lines.append(f"  {name if fits else '':<{width}}  {wrapped[0]}".rstrip())
        lines += [" " * (width + 4) + more for more in wrapped[1:]]
    return [*lines, ""]


def stored_files() -> dict[Path, str]:
    """Every stored file with the text it must have."""
    infos = commands()
    body = "".join(f'    "{name}": {_literal(text)},\n' for name, text in _help_texts(infos).items())
    files = {_HERE / "stored_help.py": f"{_HEADER}HELP = {{\n{body}}}\n"}
    folder = shipped_folder("completions")
    return {**files, **{folder / name: make(infos) for name, make in SHELLS.items()}}


def _help_texts(infos: tuple[CommandInfo, ...]) -> dict[str, str]:
    texts = {"": top_level_help()}
    for info in infos:
        name = " ".join(info.words)
        texts[name] = group_help(info) if name in GROUPS else command_help(info)
        texts |= {" ".join(child.words): command_help(child) for child in info.children}
    return texts


def _literal(text: str) -> str:
    return '"""\\\n' + text.replace("\\", "\\\\") + '"""'


def main() -> None:
    for path, text in stored_files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
