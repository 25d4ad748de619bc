"""A Hugging Face Hub on loopback, with a switch for each fault that fetching must survive.

Stand-alone: `python fake_hub.py CONTROL_FILE [--port N]` prints its address and serves the repositories and faults
that the JSON control file describes; the file is read anew for each request, so a test changes faults as it goes.

Control file:
    {"repos": {"org/name": {"root": FOLDER, "commits": {"main": COMMIT}, "gated": false, "private": false,
                            "renamed_to": null, "hide": [PATH…]}},
     "token": "…" (requests with another Bearer token get 401; null takes any),
     "faults": [{"kind": KIND, "match": PART_OF_PATH, "times": N or null, "method": "GET"|"HEAD"|null, …}],
     "rate_bytes_per_s": null, "cdn": null or "http://127.0.0.1:PORT"}

Fault kinds: truncate (`after` bytes, then close), wrong_bytes (right length), login_page (`keep_length`), stall
(`after` bytes, then silence), status (`status`, `headers`, `body`), reset (`after`), not_found, no_range, swap
(serve `content` base64 instead), wrong_etag, trickle (a byte every `every_s`).
CONTROL_FILE.log gets a line {"begin": true} as each request begins, and at its end one JSON line: method, path,
range, authorization, bytes sent, when.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LFS_FROM_BYTES = 256
_BLOCK = 1 << 20
_LOGIN = b"<!DOCTYPE html><html><body>please log in</body></html>"
_counts: dict[int, int] = {}
_lock = threading.Lock()


@lru_cache(maxsize=100_000)
def _hashes(path: str, size: int, mtime_ns: int) -> tuple[str, str]:
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            sha256.update(block)
            git.update(block)
    return sha256.hexdigest(), git.hexdigest()


def entry(root: Path, path: str) -> dict[str, object]:
    """A file as the tree call lists it: big ones as LFS with SHA-256, small ones with git's SHA-1."""
    status = (root / path).stat()
    sha256, git = _hashes(str(root / path), status.st_size, status.st_mtime_ns)
    row: dict[str, object] = {"type": "file", "path": path, "size": status.st_size, "oid": git}
    if status.st_size >= LFS_FROM_BYTES and path.endswith((".safetensors", ".bin", ".pt", ".gguf")):
        row["lfs"] = {"oid": sha256, "size": status.st_size, "pointerSize": 130}
    return row


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHub
    wbufsize = 1 << 16

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._serve(head=True)

    def do_GET(self) -> None:
        self._serve(head=False)

    def _serve(self, *, head: bool) -> None:
        self.sent = 0
        self._log({"begin": True})
        self.control = json.loads(Path(self.server.control).read_text())
        path = unquote(urlsplit(self.path).path)
        try:
            self._route(path, head=head)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self._record(path)

    def _route(self, path: str, *, head: bool) -> None:
        fault = self._fault(path, "HEAD" if head else "GET")
        if fault and fault["kind"] == "status":
            return self._answer(
                fault["status"], fault.get("body", "").encode(), head=head, headers=fault.get("headers", {})
            )
        if fault and fault["kind"] == "reset" and not fault.get("after"):
            return self._reset()
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._api(parts[2:], fault, head=head)
        if parts[:1] == ["cdn"]:
            return self._file("/".join(parts[1:3]), "/".join(parts[4:]), parts[3], fault, head=head)
        if len(parts) > 4 and parts[2] == "resolve":
            return self._resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]), fault, head=head)
        return self._answer(404, b"", head=head)

    def _api(self, parts: list[str], fault: dict | None, *, head: bool) -> None:
        if fault and fault["kind"] == "login_page":
            return self._answer(200, _LOGIN, head=head, kind="text/html")
        repo, rest = "/".join(parts[:2]), parts[2:]
        known = self._allowed(repo, head=head, resolve=False)
        if known is None:
            return None
        if known.get("renamed_to"):
            return self._answer(
                307,
                b"",
                head=head,
                headers={"Location": f"/api/models/{known['renamed_to']}/{'/'.join(rest)}".rstrip("/")},
            )
        revision = rest[1] if len(rest) > 1 else "main"
        commit = self._commit(known, revision)
        if commit is None:
            return self._answer(404, b"", head=head, headers={"X-Error-Code": "RevisionNotFound"})
        if rest[:1] == ["tree"]:
            rows = [entry(Path(known["root"]), p) for p in self._paths(known)]
            rows += [
                {"type": "directory", "path": d, "oid": "0" * 40, "size": 0} for d in known.get("folders", [])
            ]
            rows += known.get("extra_rows", [])
            return self._json(rows, head=head)
        siblings = [{"rfilename": p} for p in self._paths(known)]
        return self._json(
            {"id": repo, "sha": commit, "siblings": siblings, "gated": known.get("gated", False)}, head=head
        )

    def _resolve(self, repo: str, revision: str, path: str, fault: dict | None, *, head: bool) -> None:
        known = self._allowed(repo, head=head, resolve=True)
        if known is None:
            return None
        if known.get("renamed_to"):
            return self._answer(
                307, b"", head=head, headers={"Location": f"/{known['renamed_to']}/resolve/{revision}/{path}"}
            )
        if self._commit(known, revision) is None:
            return self._answer(404, b"", head=head, headers={"X-Error-Code": "RevisionNotFound"})
        if self.control.get("cdn") and (Path(known["root"]) / path).stat().st_size >= LFS_FROM_BYTES:
            headers = self._metadata(known, path, self._commit(known, revision), fault)
            headers["Location"] = f"{self.control['cdn']}/cdn/{repo}/{self._commit(known, revision)}/{path}"
            headers["X-Linked-Size"] = str((Path(known["root"]) / path).stat().st_size)
            return self._answer(302, b"", head=head, headers=headers)
        return self._file(repo, path, revision, fault, head=head)

    def _file(self, repo: str, path: str, revision: str, fault: dict | None, *, head: bool) -> None:
        known = self.control["repos"][repo]
        source = Path(known["root"]) / path
        if (fault and fault["kind"] == "not_found") or not source.is_file() or path in known.get("hide", []):
            return self._answer(404, b"", head=head, headers={"X-Error-Code": "EntryNotFound"})
        headers = self._metadata(known, path, self._commit(known, revision), fault)
        size = source.stat().st_size
        start = self._range_start(fault)
        if start:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        body = self._replacement(source, fault)
        if body is not None:
            if fault and fault["kind"] == "login_page" and not fault.get("keep_length"):
                headers.pop("X-Linked-Size", None)
            return self._answer(200, body, head=head, headers=headers)
        self.send_response(206 if start else 200)
        for name, value in {**headers, "Content-Length": str(size - start), "Accept-Ranges": "bytes"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        if not head:
            self._send_file(source, start, size, fault)
        return None

    def _send_file(self, source: Path, start: int, size: int, fault: dict | None) -> None:
        kind = fault["kind"] if fault else ""
        end = min(size, start + int(fault["after"])) if fault and "after" in fault else size
        rate = self.control.get("rate_bytes_per_s")
        with source.open("rb") as stream:
            if not rate and kind == "":
                self.sent += self.connection.sendfile(stream, start) or 0
                return
            stream.seek(start)
            self._send_slowly(stream, end - start, rate, fault)
        if kind in {"truncate", "reset", "stall"}:
            if kind == "stall":
                self._silence(float(fault.get("for_s", 3600)) if fault else 0)
            self._reset() if kind == "reset" else self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _send_slowly(self, stream, count: int, rate: float | None, fault: dict | None) -> None:
        trickle = fault is not None and fault["kind"] == "trickle"
        block = 1 if trickle else min(_BLOCK, max(4096, int(rate / 20))) if rate else _BLOCK
        began = time.monotonic()
        done = 0
        while done < count and (data := stream.read(min(block, count - done))):
            self.connection.sendall(data)
            done += len(data)
            self.sent += len(data)
            if trickle:
                time.sleep(float(fault.get("every_s", 0.5)))
            elif rate:
                time.sleep(max(0.0, done / rate - (time.monotonic() - began)))

    def _silence(self, seconds: float) -> None:
        """Until the time is over or the client has gone."""
        self.connection.settimeout(seconds)
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass

    def _replacement(self, source: Path, fault: dict | None) -> bytes | None:
        if fault is None:
            return None
        size = source.stat().st_size
        if fault["kind"] == "wrong_bytes":
            data = bytearray(source.read_bytes())
            data[size // 2] ^= 0xFF
            return bytes(data)
        if fault["kind"] == "login_page":
            return _LOGIN.ljust(size)[:size] if fault.get("keep_length") else _LOGIN
        if fault["kind"] == "swap":
            return base64.b64decode(fault["content"])
        return None

    def _metadata(self, known: dict, path: str, commit: str | None, fault: dict | None) -> dict[str, str]:
        row = entry(Path(known["root"]), path)
        etag = row["lfs"]["oid"] if "lfs" in row else row["oid"]
        if fault and fault["kind"] == "wrong_etag":
            etag = hashlib.sha256(str(etag).encode()).hexdigest()
        headers = {"X-Repo-Commit": str(commit), "ETag": f'"{etag}"'}
        if "lfs" in row:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(row["size"])}
        return headers

    def _allowed(self, repo: str, *, head: bool, resolve: bool) -> dict | None:
        known = self.control["repos"].get(repo)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        wanted = self.control.get("token")
        if token and wanted and token != wanted:
            self._answer(
                401,
                b"",
                head=head,
                headers={"X-Error-Message": "Invalid credentials in Authorization header"},
            )
            return None
        if known is None or (known.get("private") and not token):
            self._answer(401 if not token else 404, b"", head=head, headers={"X-Error-Code": "RepoNotFound"})
            return None
        if resolve and known.get("gated") and (not token or known["gated"] == "refused"):
            self._answer(403 if token else 401, b"", head=head, headers={"X-Error-Code": "GatedRepo"})
            return None
        return known

    def _commit(self, known: dict, revision: str) -> str | None:
        commits = known["commits"]
        return commits.get(revision) or (revision if revision in commits.values() else None)

    def _paths(self, known: dict) -> list[str]:
        root = Path(known["root"])
        return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())

    def _range_start(self, fault: dict | None) -> int:
        value = self.headers.get("Range", "")
        if not value.startswith("bytes=") or (fault and fault["kind"] == "no_range"):
            return 0
        return int(value.removeprefix("bytes=").split("-")[0])

    def _fault(self, path: str, method: str) -> dict | None:
        for number, fault in enumerate(self.control.get("faults", [])):
            if fault["match"] not in path or fault.get("method", method) != method:
                continue
            with _lock:
                key = fault.get("id", number)
                used = _counts.get(key, 0)
                if fault.get("times") is not None and used >= fault["times"]:
                    continue
                _counts[key] = used + 1
            return fault
        return None

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _json(self, value: object, *, head: bool) -> None:
        self._answer(200, json.dumps(value).encode(), head=head, kind="application/json")

    def _answer(
        self, status: int, body: bytes, *, head: bool, headers: dict | None = None, kind: str = "text/plain"
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            **(headers or {}),
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self.wfile.write(body)
            self.sent += len(body)
        self.wfile.flush()
        self.status = status

    def _record(self, path: str) -> None:
        row = {
            "method": self.command,
            "path": path,
            "range": self.headers.get("Range"),
            "authorization": self.headers.get("Authorization"),
            "sent": self.sent,
            "at_s": time.monotonic(),
            "port": self.server.server_address[1],
        }
        self._log(row)

    def _log(self, row: dict) -> None:
        with _lock, open(f"{self.server.control}.log", "a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")


class FakeHub(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, control: str, port: int = 0) -> None:
        self.control = control
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what these tests are about."""


def main() -> None:
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    hub = FakeHub(os.path.abspath(sys.argv[1]), port)
    print(f"http://127.0.0.1:{hub.server_address[1]}", flush=True)
    hub.serve_forever()


if __name__ == "__main__":
    main()
