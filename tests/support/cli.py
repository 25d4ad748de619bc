"""Run the whole program in this process: `run("up", "tiny-cpu", "--dry-run")` -> exit, out, err, json."""

from __future__ import annotations

import io
import json as json_module
from dataclasses import dataclass

from dflashctl.boundary import run_app
from dflashctl.env import Env
from dflashctl.ui.screen import Screen


@dataclass(frozen=True, kw_only=True)
class Result:
    exit: int
    out: str
    err: str

    @property
    def json(self):
        return json_module.loads(self.out)


def run(*argv: str, cwd=None, environ=None, **parts) -> Result:
    """The result of the command line `argv` in a world made of `parts` (see Env)."""
    out, err = io.StringIO(), io.StringIO()
    screen = Screen.of(argv, out=out, err=err)
    code = run_app(
        argv,
        screen=screen,
        make_env=lambda s: Env(notify=s.notify, cwd=cwd, environ=environ, **parts),
    )
    return Result(exit=code, out=out.getvalue(), err=err.getvalue())
