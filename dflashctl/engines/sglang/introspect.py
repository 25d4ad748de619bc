"""Stand-alone script: imports one SGLang and prints its command line as JSON; run by a child interpreter.

Usage: `python introspect.py [--light]`. Nothing of dflashctl is imported, so any interpreter that has
SGLang can run it. `--light` is for a host that has SGLang's sources without its GPU packages: the
kernel packages named in `GPU_ONLY` are replaced by inert stand-ins when they are absent, and double
registrations in a newer transformers are let pass. The options an SGLang offers do not depend on either.

Output: one JSON object `{"version", "options": [...]}` as the last line of standard output.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import types
from collections.abc import Sequence  # noqa: TC003 - any Python may run this

GPU_ONLY = ("triton", "torchvision", "sgl_kernel", "flashinfer", "deep_gemm", "torch_memory_saver", "cuda")
HOME = os.path.expanduser("~")


class _Inert(type):
    """Class that stands for anything: attributes are further inert classes, calls pass functions through."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inert(name, (), {})

    def __call__(cls, *args: object, **kwargs: object) -> object:
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        return _Inert("instance", (), {})


class _InertModule(types.ModuleType):
    """Module whose every attribute is inert."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inert(name, (), {})


class _Loader(importlib.abc.Loader):
    """Makes inert modules that claim to be packages, so that their submodules import as well."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _InertModule(spec.name)
        module.__path__ = []
        vars(module)["__version__"] = "3.7.0"
        return module

    def exec_module(self, _module: types.ModuleType) -> None:
        return None


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for the absent GPU packages; last in the search, so a real package always wins."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None, /
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] in GPU_ONLY:
            return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)
        return None


def _lighten() -> None:
    """Let SGLang import without its GPU packages and beside a newer transformers."""
    sys.meta_path.append(_Finder())
    with contextlib.suppress(ImportError):
        from transformers.models.auto import auto_factory, configuration_auto

        for owner in (auto_factory._LazyAutoMapping, configuration_auto._LazyConfigMapping):  # noqa: SLF001 - no other way
            owner.register = _forgiving(owner.register)


def _forgiving(register: object) -> object:
    """`register` that overwrites instead of raising when a newer transformers has the model already."""

    def wrapped(self: object, key: object, value: object, **_given: object) -> None:
        register(self, key, value, exist_ok=True)  # type: ignore[operator]

    return wrapped


def _plain(value: object) -> object:
    """JSON form of an argparse default or choice; paths under the home directory are masked."""
    if isinstance(value, str):
        return value.replace(HOME, "~") if len(HOME) > 1 else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, (set, frozenset)) else items
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(getattr(value, "value", value))


def _first_sentence(text: str | None) -> str | None:
    """First sentence of a help text, white space folded."""
    if not text or text == argparse.SUPPRESS:
        return None
    folded = " ".join(text.split())
    return re.split(r"(?<=[.;])\s", folded, maxsplit=1)[0][:200]


def _action(action: argparse.Action) -> dict[str, object]:
    """One option as plain data."""
    kind = type(action)
    described = {
        "strings": list(action.option_strings),
        "dest": action.dest,
        "action": kind.__name__.strip("_"),
        "type": getattr(action.type, "__name__", None) if action.type else None,
        "default": _plain(action.default),
        "choices": sorted(map(str, action.choices)) if action.choices else None,
        "nargs": action.nargs,
        "const": _plain(action.const),
        "required": action.required,
        "help": _first_sentence(action.help),
        "hidden": action.help == argparse.SUPPRESS,
    }
    extra = {k: _plain(v) for k, v in vars(action).items() if k not in _STANDARD}
    if extra:
        described["extra"] = extra
    return described


_STANDARD = frozenset(vars(argparse.Action(["--x"], "x"))) | {"container", "deprecated"}


def _options() -> list[dict[str, object]]:
    """Every option of the installed SGLang's own parser."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return [_action(action) for action in parser._actions if action.dest != "help"]  # noqa: SLF001 - argparse has no other list


def _version() -> str:
    """The version of the metadata; sources on the search path may have none."""
    try:
        return importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _forget_own_folder() -> None:
    """Take this script's folder off the search path: its neighbours must not be taken for top-level modules."""
    here = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else ""
    sys.path[:] = [place for place in sys.path if place != here]


def main(argv: list[str]) -> int:
    """Print the command line of the SGLang that this interpreter finds."""
    _forget_own_folder()
    if "--light" in argv:
        _lighten()
    answer = os.dup(1)
    os.dup2(2, 1)  # SGLang prints while it is imported; the answer must stay alone on standard output
    found = {"version": _version(), "options": _options()}
    with os.fdopen(answer, "w") as out:
        out.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
