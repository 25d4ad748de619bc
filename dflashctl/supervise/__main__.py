"""`python -m dflashctl.supervise PLAN_FILE`: the detached supervisor; its lock comes from whoever started it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dflashctl.core.errors import DflashError
from dflashctl.core.plan_file import load_plan
from dflashctl.env import Env
from dflashctl.supervise.detached import LOCK_VARIABLE
from dflashctl.supervise.foreground import run


def main(argv: list[str]) -> int:
    descriptor = os.environ.pop(LOCK_VARIABLE, None)
    env = Env()
    try:
        plan = load_plan(Path(argv[0]).read_text(encoding="utf-8"))
        if descriptor is None:
            return run(plan, env, detached=True).exit_status
        with env.instances.adopt(plan.name, int(descriptor)) as owned:
            return run(plan, env, detached=True, owned=owned).exit_status
    except DflashError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
