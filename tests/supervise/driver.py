"""Run one supervision in the foreground, as `up` does after planning, at a pace fit for tests."""

import json
import os
import sys
from pathlib import Path

from dflashctl.core.decode import decode
from dflashctl.core.errors import DflashError
from dflashctl.core.pace import Pace
from dflashctl.core.plan_file import load_plan
from dflashctl.core.report import to_json
from dflashctl.env import Env
from dflashctl.supervise import run


def main():
    plan_file, pace, *flags = sys.argv[1:]
    plan = load_plan(Path(plan_file).read_text(encoding="utf-8"))
    screen = (lambda line: print(line, flush=True)) if "--screen" in flags else None
    told = {"notify": lambda event: print(event.text, flush=True)} if "--progress" in flags else {}
    try:
        result = run(
            plan,
            Env(**told),
            screen=screen,
            detached="--detached" in flags,
            pace=decode(Pace, json.loads(pace)),
        )
    except DflashError as error:
        sys.stderr.write(f"{error.message}\n")
        os._exit(int(error.exit_code))
    Path(plan_file).with_suffix(".result").write_text(json.dumps(to_json(result)))
    os._exit(result.exit_status)


main()
