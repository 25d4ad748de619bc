"""Shell text as data: words of each command in it, with variables of the text itself filled in; nothing is run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPOGRAPHY = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " "})
_DASH = re.compile(r"(?<=\s)[\u2013\u2014](?=\w)")
_FENCE = re.compile(r"^\s*```")
_PROMPT = re.compile(r"^\s*(?:\$|>)\s+")
_CONTINUED = re.compile(r"\\[ \t]*$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?:\[[@*]\])?(?::?[-=](?P<default>[^}]*))?\}|(?P<plain>\w+))")
_OPERATORS = ";&|()<>"
_ENDS = (";", "&&", "||", "|", "&", ";;")


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What a text says.

    `commands` are words after substitution, `exported` is the environment that the text sets, `unset` are variables
    without a value, and `substitutions` tells that the text wants the output of other commands.
    """

    commands: tuple[tuple[str, ...], ...]
    exported: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    substitutions: bool = False


def read_shell(text: str, known: Mapping[str, str] | None = None) -> Shell:
    """The commands in `text`; ValueError for quotes that do not close."""
    scope = _Scope(values=dict(known or {}))
    commands = []
    for words in _split(_tidy(text)):
        command = scope.take(words)
        if command:
            commands.append(command)
    return Shell(
        commands=tuple(commands),
        exported=scope.exported,
        unset=tuple(sorted(scope.unset)),
        substitutions="$(" in text or "`" in _without_fences(text),
    )


def fill_in(text: str, values: Mapping[str, str], unset: set[str]) -> str:
    """`text` with $NAME, ${NAME} and ${NAME:-default} filled in; names without a value go to `unset`."""

    def value(match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        if values.get(name):
            return values[name]
        if match["default"] is not None:
            return fill_in(match["default"].strip("\"'"), values, unset)
        if name not in values:
            unset.add(name)
        return values.get(name, "")

    return _VARIABLE.sub(value, text)


def _without_fences(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _FENCE.match(line))


def _tidy(text: str) -> str:
    """One logical line per command: comments, prompts and fences gone, continued lines joined."""
    tidy = _DASH.sub("--", text.translate(_TYPOGRAPHY).replace("\r", ""))
    lines = []
    for line in _without_fences(tidy).splitlines():
        if line.strip().startswith("#"):
            continue
        lines.append(_without_comment(_PROMPT.sub("", line)))
    return re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))


def _without_comment(line: str) -> str:
    for match in re.finditer(r"\s#\s", line):
        before = line[: match.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before
    return line


def _split(text: str) -> list[list[str]]:
    """Words by command; operators and line ends separate commands, redirections are dropped."""
    lexer = shlex.shlex(_ends_marked(text), posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if skip:
            skip = False
        elif word in _ENDS:
            found.append([])
        elif set(word) <= set("<>&"):
            skip = True
            if found[-1] and found[-1][-1] in ("1", "2"):
                found[-1].pop()
        else:
            found[-1].append(word)
    return [words for words in found if words]


def _ends_marked(text: str) -> str:
    """Line ends outside quotes and arrays as `;`."""
    marked, quote, depth = [], "", 0
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char == "(") - (char == ")")
        marked.append(" ; " if char == "\n" and not quote and depth <= 0 else char)
    return "".join(marked)


@dataclass(kw_only=True)
class _Scope:
    """Variables of the text: plain ones, exported ones, arrays."""

    values: dict[str, str]
    exported: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)

    def take(self, words: list[str]) -> tuple[str, ...]:
        """The words of a command after substitution; assignments are remembered and give none."""
        if self._is_array(words):
            return ()
        if words[0] == "export":
            self.exported.update(self._assigned(words[1:]))
            return ()
        assigned = self._leading(words)
        if len(assigned) == len(words):
            self._assigned(assigned)
            return ()
        return tuple(word for raw in words for word in self._expanded(raw))

    def _is_array(self, words: list[str]) -> bool:
        name = re.fullmatch(r"(\w+)\+?=", words[0])
        if name is None or words[1:2] != ["("]:
            return False
        items = [self._filled(word) for word in words[2:] if word != ")"]
        before = self.arrays.get(name[1], []) if words[0].endswith("+=") else []
        self.arrays[name[1]] = before + items
        return True

    def _leading(self, words: list[str]) -> list[str]:
        count = 0
        while count < len(words) and _ASSIGNMENT.fullmatch(words[count]):
            count += 1
        return words[:count]

    def _assigned(self, words: list[str]) -> dict[str, str]:
        found = {}
        for word in words:
            match = _ASSIGNMENT.fullmatch(word)
            if match:
                found[match[1]] = self._filled(match[2])
        self.values.update(found)
        return found

    def _expanded(self, word: str) -> list[str]:
        array = re.fullmatch(r"\$\{(\w+)\[[@*]\](?:[^}]*)?\}", word)
        if array and array[1] in self.arrays:
            return self.arrays[array[1]]
        filled = self._filled(word)
        whole = _VARIABLE.fullmatch(word)
        return shlex.split(filled) if whole and " --" in f" {filled}" else [filled]

    def _filled(self, word: str) -> str:
        return fill_in(word, self.values, self.unset)
