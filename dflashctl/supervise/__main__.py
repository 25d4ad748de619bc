"""`python -m dflashctl.supervise PLAN_FILE`: the detached supervisor; its lock comes from whoever started it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.instance import ENDED, LastExit, Phase, Reason
from dflashctl.core.plan_file import load_plan
from dflashctl.env import Env
from dflashctl.supervise.detached_start import LOCK_VARIABLE
from dflashctl.supervise.foreground import run

if TYPE_CHECKING:
    from dflashctl.core.plan import Plan
    from dflashctl.ports.instances import OwnedInstance


def main(argv: list[str]) -> int:
    descriptor = os.environ.pop(LOCK_VARIABLE, None)
    env = Env()
    try:
        plan = load_plan(Path(argv[0]).read_text(encoding="utf-8"))
        if descriptor is None:
            return run(plan, env, detached=True).exit_status
        with env.instances.adopt(plan.name, int(descriptor)) as owned:
            return _run(plan, env, owned)
    except DflashError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return int(error.exit_code)


def _run(plan: Plan, env: Env, owned: OwnedInstance) -> int:
    """What keeps it from beginning is written down, for whoever waits for the start to tell."""
    try:
        return run(plan, env, detached=True, owned=owned).exit_status
    except DflashError as error:
        if owned.current.phase not in ENDED:
            owned.enter(Phase.FAILED, error.message)
            reason = Reason(code="not_started", text=error.message)
            last = LastExit(kind=reason.code, fix=error.hint)
            owned.record(
                replace(owned.current, reason=reason, last_exit=last, exit_code=int(error.exit_code))
            )
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
