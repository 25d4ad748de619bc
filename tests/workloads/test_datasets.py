"""Data sets are fetched at their pinned commit, once, and read without the `datasets` package."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dflashctl.core.errors import Permanent, Unavailable
from dflashctl.edges.datasets import HubDataSets
from dflashctl.workloads import WORKLOADS, gsm8k, longbench_v2, math500

DATA = Path(__file__).parent / "data"


class _Hub(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Quiet."""

    def answer(self, *, with_body: bool) -> None:
        self.server.seen.append(f"{self.command} {self.path}")
        body = self.server.files.get(self.path.removeprefix("/datasets/"))
        if body is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.path.partition("/resolve/")[2].partition("/")[0])
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)


@contextmanager
def hub(tmp_path, files):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    server.files, server.seen = files, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    environ = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HUB_CACHE": str(tmp_path)}
    try:
        yield HubDataSets(environ=environ), server.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def address(source) -> str:
    return f"{source.repo}/resolve/{source.revision}/{source.path}"


def test_json_lines_come_at_the_pinned_commit_and_only_once(tmp_path):
    source = replace(math500.SOURCE, rows=1)
    with hub(tmp_path, {address(source): (DATA / "math500.jsonl").read_bytes()}) as (sets, seen):
        (record,) = sets.records(source)
        assert record["answer"] == "\\sqrt{51}"
        assert all(f"/resolve/{source.revision}/" in path for path in seen)
        gets = sum(path.startswith("GET") for path in seen)
        assert sets.records(source, offline=True) == (record,)
        assert sum(path.startswith("GET") for path in seen) == gets


def test_parquet_gives_the_same_records(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [json.loads(line) for line in (DATA / "gsm8k.jsonl").read_text(encoding="utf-8").splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    source = replace(gsm8k.SOURCE, rows=5)
    with hub(tmp_path / "cache", {address(source): (tmp_path / "t.parquet").read_bytes()}) as (sets, _):
        assert list(sets.records(source)) == rows


def test_a_json_list_is_read_whole(tmp_path):
    rows = [{"_id": "a"}, {"_id": "b"}]
    source = replace(longbench_v2.SOURCE, rows=2)
    with hub(tmp_path, {address(source): json.dumps(rows).encode()}) as (sets, _):
        assert list(sets.records(source)) == rows


@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_only_a_line_feed_ends_a_line_of_a_set(tmp_path, bom):
    rows = [{"answer": "a\u2028b\x85c"}, {"answer": "d"}]
    source = replace(math500.SOURCE, rows=2)
    lines = bom + "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    with hub(tmp_path, {address(source): lines.encode()}) as (sets, _):
        assert list(sets.records(source)) == rows


def test_a_file_of_another_size_is_not_the_pinned_one(tmp_path):
    files = {address(math500.SOURCE): (DATA / "math500.jsonl").read_bytes()}
    with hub(tmp_path, files) as (sets, _), pytest.raises(Permanent, match="1 records, not 500"):
        sets.records(math500.SOURCE)


def test_what_is_not_there_is_unavailable(tmp_path):
    with hub(tmp_path, {}) as (sets, _), pytest.raises(Unavailable):
        sets.records(math500.SOURCE)
    with pytest.raises(Unavailable, match="offline") as caught:
        HubDataSets(environ={"HF_HUB_CACHE": str(tmp_path / "empty")}).records(math500.SOURCE, offline=True)
    assert math500.SOURCE.revision in (caught.value.hint or "")


def test_every_set_is_pinned_by_a_whole_commit():
    for workload in WORKLOADS.values():
        if workload.SOURCE:
            assert len(workload.SOURCE.revision) == 40
            int(workload.SOURCE.revision, 16)
