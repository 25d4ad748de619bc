"""One server of each block size for the whole run, and the models in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dflashctl.reference.arguments import parse
from dflashctl.reference.load import load
from dflashctl.reference.log import Log

from .running import SPECULATIVE, TARGET, Server

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def block_8(tmp_path_factory):
    yield from _server(
        tmp_path_factory, "--enable-metrics", "--speculative-dflash-block-size", "8", *SPECULATIVE
    )


@pytest.fixture(scope="session")
def block_16(tmp_path_factory):
    yield from _server(tmp_path_factory, *SPECULATIVE)


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    yield from _server(tmp_path_factory, "--enable-metrics")


@pytest.fixture(scope="session")
def models():
    return load(parse(["--model-path", TARGET, *SPECULATIVE]), Log("error"))


@pytest.fixture(scope="session")
def problems():
    return json.loads((DATA / "recorded_problems.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def replies():
    return json.loads((DATA / "sglang_replies.json").read_text(encoding="utf-8"))


@pytest.fixture
def start(tmp_path):
    """Start servers that are gone after the test."""
    servers = []

    def starting(*arguments: str, **options: Any):
        servers.append(Server(tmp_path / f"server{len(servers)}.log", *arguments, **options))
        return servers[-1]

    yield starting
    for server in servers:
        server.kill()


def _server(tmp_path_factory, *arguments: str):
    server = Server(tmp_path_factory.mktemp("server") / "log", *arguments)
    try:
        yield server.wait_ready()
    finally:
        server.kill()
