"""The same over TLS: a terminating relay before the mock server."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from dflashctl.bench import BenchRequest, LoadSpec, RequestError, run_load

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")


@pytest.fixture
def certificate(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, cert


@pytest.fixture
def secure_port(server, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    listener = socket.create_server(("127.0.0.1", 0))
    open_sockets = [listener]

    def relay(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass

    def accept():
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            try:
                outside = context.wrap_socket(raw, server_side=True)
            except OSError:
                raw.close()
                continue
            inside = socket.create_connection(("127.0.0.1", server.port))
            open_sockets.extend((outside, inside))
            for pair in ((outside, inside), (inside, outside)):
                threading.Thread(target=relay, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    for sock in open_sockets:
        sock.close()


def test_a_trusted_server_is_measured(secure_port, certificate):
    spec = LoadSpec(url=f"https://localhost:{secure_port}", concurrency=2, ca_file=certificate[1])
    body = {"messages": [], "mock": {"chunks": 30, "gap_ms": 1, "group": 5}}
    result = run_load(spec, [BenchRequest(id=str(i), body=body) for i in range(6)])
    assert [r.error_detail for r in result.records] == [None] * 6
    assert {r.chunks for r in result.records} == {30}


def test_an_untrusted_server_is_not(secure_port):
    spec = LoadSpec(url=f"https://localhost:{secure_port}", concurrency=1)
    result = run_load(spec, [BenchRequest(id="a", body={"messages": []})])
    assert result.records[0].error is RequestError.CONNECT
    assert "certificate" in result.records[0].error_detail.lower()
