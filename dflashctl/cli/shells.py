"""Completion scripts for bash, zsh and fish, made from the described commands.

Commands and options are written into the script, so that the shell needs no Python for them; names of profiles and
instances are asked from `dflashctl __complete`, which imports next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dflashctl.cli.describe import CommandInfo, OptionInfo

_FILES = ("FILE", "DIR", "PATH")


def _flat(infos: Sequence[CommandInfo]) -> Iterator[CommandInfo]:
    for info in infos:
        yield info
        yield from info.children


def _kind(metavar: str | None) -> str:
    """What completes a value: "profiles", "instances", "files" or ""."""
    text = (metavar or "").strip("[].")
    if "PROFILE" in text:
        return "profiles"
    if text.startswith("NAME"):
        return "instances"
    return "files" if any(word in text for word in _FILES) else ""


def _words(info: CommandInfo) -> str:
    names = [name for option in info.options for name in option.names]
    return " ".join([*(child.words[-1] for child in info.children), *names, "--help"])


def bash(infos: Sequence[CommandInfo]) -> str:
    cases = "\n".join(
        f'    "{" ".join(info.words)}") words="{_words(info)}"; kind="{_kind(info.argument)}" ;;'
        for info in _flat(infos)
    )
    values = "\n".join(
        f'    {name}) kind="{_kind(metavar)}"; value=1 ;;' for name, metavar in sorted(_valued(infos).items())
    )
    groups = " | ".join(info.words[0] for info in infos if info.children)
    top = " ".join([*(info.words[0] for info in infos), "--version", "--help"])
    return f"""# bash completion for dflashctl; made by `python -m dflashctl.cli.stored`.
_dflashctl() {{
  local cur prev command words kind value=""
  cur="${{COMP_WORDS[COMP_CWORD]}}"
  prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{top}" -- "$cur")
    return
  fi
  command="${{COMP_WORDS[1]}}"
  case "$command" in
    {groups or "''"}) if [ "$COMP_CWORD" -gt 2 ]; then command="$command ${{COMP_WORDS[2]}}"; fi ;;
  esac
  words="" kind=""
  case "$command" in
{cases}
  esac
  case "$prev" in
{values}
  esac
  if [ -n "$value" ] || [[ "$cur" != -* && -n "$kind" ]]; then
    case "$kind" in
      profiles | instances) mapfile -t COMPREPLY < <(compgen -W "$(dflashctl __complete "$kind" 2>/dev/null) ${{value:+}}" -- "$cur") ;;
      files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
    [ -n "$value" ] && return
  fi
  if [[ "$cur" == -* || -z "${{COMPREPLY[*]}}" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}}
complete -F _dflashctl dflashctl
"""


def _valued(infos: Sequence[CommandInfo]) -> dict[str, str]:
    return {
        name: option.metavar
        for info in _flat(infos)
        for option in info.options
        if option.metavar
        for name in option.names
    }


def fish(infos: Sequence[CommandInfo]) -> str:
    lines = [
        "# fish completion for dflashctl; made by `python -m dflashctl.cli.stored`.",
        "complete -c dflashctl -f",
    ]
    for info in infos:
        lines.append(
            f"complete -c dflashctl -n __fish_use_subcommand -a {info.words[0]} -d {_quoted(info.help)}"
        )
        names = " ".join(child.words[-1] for child in info.children)
        for child in info.children:
            condition = (
                f"__fish_seen_subcommand_from {info.words[0]}; and not __fish_seen_subcommand_from {names}"
            )
            lines.append(
                f"complete -c dflashctl -n '{condition}' -a {child.words[-1]} -d {_quoted(child.help)}"
            )
            lines += _fish_options(
                child,
                f"__fish_seen_subcommand_from {info.words[0]}; and __fish_seen_subcommand_from {child.words[-1]}",
            )
        lines += _fish_options(info, f"__fish_seen_subcommand_from {info.words[0]}")
    return "\n".join(lines) + "\n"


def _fish_options(info: CommandInfo, condition: str) -> list[str]:
    lines = [
        f"complete -c dflashctl -n '{condition}' {_fish_names(option)}{_fish_value(option)} -d {_quoted(option.help)}"
        for option in info.options
    ]
    kind = _kind(info.argument)
    if kind in ("profiles", "instances"):
        lines.append(f"complete -c dflashctl -n '{condition}' -a '(dflashctl __complete {kind} 2>/dev/null)'")
    elif kind == "files":
        lines.append(f"complete -c dflashctl -n '{condition}' -F")
    return lines


def _fish_names(option: OptionInfo) -> str:
    return " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)


def _fish_value(option: OptionInfo) -> str:
    kind = _kind(option.metavar)
    if option.metavar is None:
        return ""
    return {"files": " -r -F", "": " -x"}.get(kind, f" -x -a '(dflashctl __complete {kind} 2>/dev/null)'")


def zsh(infos: Sequence[CommandInfo]) -> str:
    top = "\n".join(f"      {_quoted(f'{info.words[0]}:{info.help}')}" for info in infos)
    cases = "\n".join(_zsh_case(info) for info in _flat(infos))
    groups = " | ".join(info.words[0] for info in infos if info.children)
    return f"""#compdef dflashctl
# zsh completion for dflashctl; made by `python -m dflashctl.cli.stored`.
_dflashctl_names() {{
  local -a names
  names=(${{(f)"$(dflashctl __complete ${{@[-1]}} 2>/dev/null)"}})
  compadd "${{@[1,-2]}}" -a names
}}
_dflashctl() {{
  local command shift_by=1
  if (( CURRENT == 2 )); then
    local -a commands=(
{top}
    )
    _describe command commands
    return
  fi
  command=${{words[2]}}
  case $command in
    {groups or "''"}) if (( CURRENT > 3 )); then command="$command ${{words[3]}}"; shift_by=2; fi ;;
  esac
  shift $shift_by words
  (( CURRENT -= shift_by ))
  case $command in
{cases}
  esac
}}
if [ "$funcstack[1]" = _dflashctl ]; then _dflashctl "$@"; else compdef _dflashctl dflashctl; fi
"""


def _zsh_case(info: CommandInfo) -> str:
    specs = [_zsh_option(option, name) for option in info.options for name in option.names]
    if info.children:
        specs.append(f"'1:command:({' '.join(child.words[-1] for child in info.children)})'")
    elif info.argument:
        specs.append(f"'*:{_zsh_safe(info.argument)}:{_zsh_action(_kind(info.argument))}'")
    body = " \\\n        ".join(specs) if specs else "'*: :'"
    return f"    {_quoted(' '.join(info.words))}) _arguments -s \\\n        {body} ;;"


def _zsh_option(option: OptionInfo, name: str) -> str:
    text = f"{name}[{_zsh_safe(option.help)}]"
    if option.metavar is not None:
        text += f":{_zsh_safe(option.metavar)}:{_zsh_action(_kind(option.metavar))}"
    return _quoted(text)


def _zsh_action(kind: str) -> str:
    return {
        "profiles": "_dflashctl_names profiles",
        "instances": "_dflashctl_names instances",
        "files": "_files",
    }.get(kind, " ")


def _zsh_safe(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", " -")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: dict[str, Callable[[Sequence[CommandInfo]], str]] = {
    "dflashctl.bash": bash,
    "_dflashctl": zsh,
    "dflashctl.fish": fish,
}
