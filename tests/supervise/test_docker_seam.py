import sys

import pytest

from dflashctl.core.errors import Unavailable
from dflashctl.supervise.docker_runtime import docker_launcher, remove_container


@pytest.fixture(autouse=True)
def _no_docker_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    monkeypatch.delitem(sys.modules, "dflashctl.edges.docker_server", raising=False)


def test_a_missing_docker_package_is_said_with_its_install_command():
    with pytest.raises(Unavailable) as caught:
        docker_launcher("x")
    assert "dflashctl[docker]" in caught.value.hint
    with pytest.raises(Unavailable):
        remove_container("x")
