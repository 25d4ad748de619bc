"""A Docker engine with the project's image on a stand-in base, made once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.stand_in import make_root

ROOT = Path(__file__).resolve().parents[2]
SEARCH_PATH = f"{Path(os.path.realpath(sys.executable)).parent}:/usr/local/bin:/bin"
IMAGE, BASE = "dflashctl-test:1", "dflashctl-base:1"


def run(*words, check=True, timeout=600, **options):
    return subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=check, timeout=timeout, **options
    )


@pytest.fixture(scope="session")
def engine():
    """A running engine: the one DOCKER_HOST names, or one of our own; required where DFLASHCTL_REQUIRE_DOCKER is set."""
    if os.environ.get("DOCKER_HOST"):
        yield os.environ["DOCKER_HOST"]
        return
    if shutil.which("dockerd") is None or shutil.which("busybox") is None or os.geteuid() != 0:
        absent("dockerd and busybox-static as root")
    script = f". {ROOT}/.ci/dockerd.sh && dockerd_start && echo $DOCKER_HOST && read line; dockerd_stop"
    holder = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    host = holder.stdout.readline().strip()
    if not host:
        holder.wait()
        absent("a dockerd that starts")
    os.environ["DOCKER_HOST"] = host
    yield host
    del os.environ["DOCKER_HOST"]
    holder.communicate("stop\n")
    assert holder.returncode == 0


def absent(what):
    if os.environ.get("DFLASHCTL_REQUIRE_DOCKER"):
        pytest.fail(f"needs {what}")
    pytest.skip(f"needs {what}")


@pytest.fixture(scope="session")
def image(engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    root, context = folder / "root", folder / "context"
    make_root(root)
    archive = folder / "root.tar"
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
    run("import", "--change", f"ENV PATH={SEARCH_PATH}", str(archive), BASE)
    archive.unlink()
    context.mkdir()
    for name in (
        "dflashctl",
        "profiles",
        "templates",
        "completions",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(
            source,
            context / name,
            **({"ignore": shutil.ignore_patterns("__pycache__", "shipped")} if source.is_dir() else {}),
        )
    built = run(
        "build", "--network", "none", "-f", str(context / "templates/docker/Dockerfile"), "-t", IMAGE,
        "--build-arg", f"BASE={BASE}", "--build-arg", "PIP_OPTIONS=--no-index --no-build-isolation", str(context),
        env={**os.environ, "DOCKER_BUILDKIT": "0"}, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return IMAGE
