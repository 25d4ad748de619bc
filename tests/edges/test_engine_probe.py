"""InstalledEngines on a real interpreter: known release, changed build, none at all; and inside an image."""

from __future__ import annotations

import hashlib
import os
import sys

import pytest

from dflashctl.core.errors import EngineError, Unavailable
from dflashctl.edges.engine_probe import InstalledEngines
from dflashctl.engines.sglang import builds, catalogue
from dflashctl.engines.sglang.identify import parser_hash

SERVER_ARGS = """
import argparse, os, sys

print("imported, loudly")
open(os.environ["COUNT"], "a").write("x")

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--brand-new", type=int, default=3, choices=[3, 4], help="New. Very.")
        parser.add_argument("--a-switch", action="store_true")
"""
MODEL = """
class KimiK3ForConditionalGeneration(Base):
    def set_dflash_layers_to_capture(self, layer_ids): ...

EntryClass = [KimiK3ForConditionalGeneration]
"""


def install(site, version, *, source=SERVER_ARGS, record="r", model=MODEL, direct_url=None):
    srt = site / "sglang" / "srt"
    (srt / "models").mkdir(parents=True, exist_ok=True)
    for folder in (srt.parent, srt, srt / "models"):
        (folder / "__init__.py").write_text("")
    (srt / "server_args.py").write_text(source)
    (srt / "models" / "kimi_k3.py").write_text(model)
    if version is not None:
        info = site / f"sglang-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n")
        (info / "RECORD").write_text(record)
        if direct_url:
            (info / "direct_url.json").write_text(f'{{"url": "{direct_url}"}}')
    return site


@pytest.fixture
def engines(tmp_path):
    return InstalledEngines(environ=environ(tmp_path), knowledge=builds)


def environ(tmp_path):
    (tmp_path / "site").mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "site"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "COUNT": str(tmp_path / "count"),
        "HOME": str(tmp_path),
    }


def imports(tmp_path):
    count = tmp_path / "count"
    return len(count.read_text()) if count.exists() else 0


def test_an_interpreter_without_sglang(engines):
    assert engines.find(python=sys.executable) is None


@pytest.mark.parametrize("python", ["/no/such/python", "/etc/passwd", "/bin/false"])
def test_an_interpreter_that_cannot_be_run(engines, python):
    with pytest.raises(EngineError) as error:
        engines.find(python=python)
    assert python in error.value.message


def test_an_interpreter_that_talks_nonsense(engines, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho nonsense\n")
    fake.chmod(0o755)
    with pytest.raises(EngineError, match="did not say"):
        engines.find(python=str(fake))


def test_a_released_wheel_is_known_by_its_sources_and_is_never_imported(engines, tmp_path, monkeypatch):
    site = install(tmp_path / "site", "0.5.22")
    monkeypatch.setattr(catalogue, "parser_hash", lambda _version: parser_hash(str(site / "sglang")))
    build = engines.find(python=sys.executable)
    assert (build.release, build.known, build.installed, build.options) == ("0.5.22", True, True, None)
    assert imports(tmp_path) == 0


def test_a_changed_build_is_asked_once_for_its_options_and_its_models(engines, tmp_path):
    install(tmp_path / "site", "0.5.22")
    for _ in range(2):
        build = engines.find(python=sys.executable)
        assert not build.known
        assert [option.strings[0] for option in build.options] == [
            "--model-path",
            "--brand-new",
            "--a-switch",
        ]
        assert build.options[1].choices == ("3", "4")
        assert build.options[2].is_switch
        assert build.model_hooks == (("KimiK3ForConditionalGeneration", ("dflash",)),)
    assert imports(tmp_path) == 1


@pytest.mark.parametrize("change", [{"record": "other"}, {"source": SERVER_ARGS + "\n#"}])
def test_a_build_that_changed_again_is_asked_again(engines, tmp_path, change):
    install(tmp_path / "site", "0.5.22")
    engines.find(python=sys.executable)
    install(tmp_path / "site", "0.5.22", **change)
    engines.find(python=sys.executable)
    assert imports(tmp_path) == 2


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("0.5.17.dev12+gabc", "0.5.17"),
        ("0.5.23.post1", "0.5.23"),
        ("0.5.99", "0.5.99"),
        ("1", catalogue.newest()),
    ],
)
def test_a_version_of_its_own_keeps_its_name(engines, tmp_path, version, release):
    install(tmp_path / "site", version)
    build = engines.find(python=sys.executable)
    assert (build.release, build.known) == (release, False)
    assert build.local_version == (None if version == release else version)


def test_sources_without_metadata_are_a_changed_build(engines, tmp_path):
    install(tmp_path / "site", None)
    build = engines.find(python=sys.executable)
    assert (build.known, build.local_version) == (False, "unknown")
    assert build.options


def test_a_build_that_cannot_be_asked_is_still_found(engines, tmp_path):
    install(tmp_path / "site", "0.5.22", source="raise SystemExit(3)")
    build = engines.find(python=sys.executable)
    assert (build.release, build.known, build.options) == ("0.5.22", False, None)


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    install(tmp_path / "site", "0.5.22")
    (tmp_path / "cache").write_text("a file where the folder should be")
    engines = InstalledEngines(environ=environ(tmp_path), knowledge=builds)
    assert engines.find(python=sys.executable).options
    assert engines.find(python=sys.executable).options
    assert imports(tmp_path) == 2


def docker(tmp_path, *, digest="sha256:" + "a" * 64):
    """A `docker` that runs what it is given with this interpreter, and counts."""
    tool = tmp_path / "bin" / "docker"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(
        "#!/bin/sh\n"
        f'echo "$1" >> {tmp_path}/docker\n'
        f'if [ "$1" = image ]; then [ "$5" = img ] && echo {digest} && exit 0; echo "no such image" >&2; exit 1; fi\n'
        f"exec {sys.executable} -\n"
    )
    tool.chmod(0o755)
    return {**environ(tmp_path), "PATH": f"{tool.parent}:{os.environ['PATH']}"}


def runs(tmp_path):
    return (tmp_path / "docker").read_text().split().count("run")


def test_the_engine_in_an_image_is_asked_once_for_each_digest(tmp_path):
    install(tmp_path / "site", "0.5.22")
    engines = InstalledEngines(environ=docker(tmp_path), knowledge=builds)
    for _ in range(2):
        build = engines.find_in_image(image="img")
        assert (build.release, build.known) == ("0.5.22", False)
        assert build.options
    assert runs(tmp_path) == 2  # who are you, what are your options
    docker(tmp_path, digest="sha256:" + hashlib.sha256(b"new").hexdigest())
    engines.find_in_image(image="img")
    assert runs(tmp_path) == 4


def test_an_image_without_sglang_and_one_that_is_not_there(tmp_path):
    engines = InstalledEngines(environ=docker(tmp_path), knowledge=builds)
    assert engines.find_in_image(image="img") is None
    with pytest.raises(Unavailable, match="no such image"):
        engines.find_in_image(image="other")


def test_no_docker_at_all(tmp_path):
    with pytest.raises(Unavailable, match="docker cannot be run"):
        InstalledEngines(environ={**environ(tmp_path), "PATH": "/nowhere"}, knowledge=builds).find_in_image(
            image="img"
        )
