"""docs/json.md against a server that really ran."""

from __future__ import annotations

from tests.cli.test_json_page import documented
from tests.support.program import Program, free_port


def test_the_keys_of_up_status_and_smoke(tmp_path):
    program = Program(tmp_path)
    try:
        up = program.json("up", "tiny-cpu", "--port", str(free_port()), "-d")
        status, smoke = program.json("status"), program.json("smoke", "--quick")
    finally:
        program.close()
    assert documented("up") == set(up["data"])
    assert documented("status") <= set(status["data"])
    assert documented("smoke") <= set(smoke["data"])
    assert {"id", "title", "status", "why", "evidence", "elapsed_s"} == set(smoke["data"]["proofs"][0])
