"""Run by the light environment: answers for the real parser of the release that it finds.

First line of the answer: the options as introspect.py prints them. Then, for each line of input (a JSON list of
argument lists), one line: a list with null where the parser accepted, else its message.
"""

import argparse
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if place != HERE]


class RefusedError(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise RefusedError(message)


def answer(parser, command):
    try:
        parser.parse_args(command)
    except RefusedError as refusal:
        return str(refusal)
    return None


def main(introspect):
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    introspect._lighten()
    from sglang.srt.server_args import ServerArgs

    parser = Parser()
    ServerArgs.add_cli_args(parser)
    out.write(json.dumps(introspect._options()) + "\n")
    for line in sys.stdin:
        out.write(json.dumps([answer(parser, command) for command in json.loads(line)]) + "\n")


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("introspect", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main(module)
