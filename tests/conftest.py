"""Fixtures for every test: own folders, and real edges that answer with the name of the fake to use."""

from __future__ import annotations

import socket

import pytest

LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory, monkeypatch):
    """No test may touch the user's state, configuration or caches."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "DFLASHCTL_STATE_DIR",
        "DFLASHCTL_CONFIG_DIR",
        "DFLASHCTL_ENGINE_PYTHON",
        "HF_TOKEN",
        "HF_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch):
    """A connection that leaves this machine fails with a sentence instead of a time-out."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            msg = f"a test wanted to connect to {address[0]}: use a fake server on loopback (tests/fakes)"
            raise AssertionError(msg)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files instead of comparing"
    )
