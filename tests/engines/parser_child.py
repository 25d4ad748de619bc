"""Run by the light environment: gives each command line on standard input to one release's real parser.

Input: a JSON list of argument lists. Output: one JSON object with `options` (as introspect.py prints them) and
`answers`: null where the parser accepted, else its message.
"""

import argparse
import json
import os
import sys


class Refused(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)


def main(introspect):
    commands = json.load(sys.stdin)
    answer = os.dup(1)
    os.dup2(2, 1)
    introspect._lighten()
    from sglang.srt.server_args import ServerArgs

    parser = Parser()
    ServerArgs.add_cli_args(parser)
    answers = []
    for command in commands:
        try:
            parser.parse_args(command)
            answers.append(None)
        except Refused as refusal:
            answers.append(str(refusal))
    with os.fdopen(answer, "w") as out:
        out.write(json.dumps({"options": introspect._options(), "answers": answers}) + "\n")


if __name__ == "__main__":
    import importlib.util

    spec = importlib.util.spec_from_file_location("introspect", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main(module)
