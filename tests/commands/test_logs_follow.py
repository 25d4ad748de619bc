"""`logs -f` as a script reads it: every line, as it comes."""

from __future__ import annotations

import json

from tests.support.program import Program, free_port


def test_followed_lines_come_at_once_and_none_is_lost(tmp_path):
    program = Program(tmp_path)
    try:
        assert program.json("up", "tiny-cpu", "--port", str(free_port()), "-d")["exit_code"] == 0
        follower = program.start("logs", "tiny-cpu", "-f", "--json", "-n", "5")
        first = json.loads(follower.stdout.readline())
        assert len(first["data"]["lines"]) == 5
        assert program.json("smoke", "tiny-cpu", "--quick")["exit_code"] == 0
        assert program.json("down", "tiny-cpu")["exit_code"] == 0
        rest, err = follower.communicate(timeout=30)
        objects = [first, *map(json.loads, rest.splitlines())]
        shown = [line["text"] for one in objects for line in one["data"]["lines"]]
        log = program.state / "v1/instances/tiny-cpu/logs/server.log"
        written = log.read_text().splitlines()
        assert follower.returncode == objects[-1]["exit_code"] == 3, err
        assert len(shown) > 5
        assert all(any(text in line for line in written) for text in shown)
        assert "Gracefully exiting" in " ".join(shown)
    finally:
        program.close()
