"""A mock server that knows the truth, and requests for it."""

from __future__ import annotations

import pytest

from dflashctl.bench import BenchRequest, LoadSpec, run_load
from tests.fakes.mock_sse import MockServer


@pytest.fixture
def server():
    with MockServer() as running:
        yield running


@pytest.fixture
def load(server):
    """load(wish, ..., spec options) -> LoadResult; a wish is the `mock` part of one request's body."""

    def run(*wishes, api="chat", notify=None, warmup=(), **options):
        requests = [request(f"r{i}", wish, api) for i, wish in enumerate(wishes)]
        spec = LoadSpec(url=server.url, **{"concurrency": 1, **options})
        return run_load(
            spec, requests, notify, warmup=[request(f"w{i}", w, api) for i, w in enumerate(warmup)]
        )

    return run


@pytest.fixture
def one(load):
    """The record of a single request."""

    def run(api="chat", spec=None, **wish):
        return load(wish, api=api, **(spec or {})).records[0]

    return run


def request(name, wish, api="chat"):
    body = {"messages": [{"role": "user", "content": "hi"}]} if api == "chat" else {"text": "hi"}
    return BenchRequest(id=name, body={**body, "mock": {"id": name, **wish}}, api=api)
