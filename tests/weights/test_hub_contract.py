"""What dflashctl assumes of huggingface_hub, asked of the library itself at both supported ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dflashctl.edges.hub_auth import find_token
from dflashctl.edges.hub_cache import cache_folder, cached_listing, xet_folder
from dflashctl.edges.hub_process import HubProcess
from dflashctl.ports.hub import TokenRules
from tests.weights.hub_kit import TARGET, TARGET_COMMIT


def ask(kit, code, environ, *arguments):
    done = subprocess.run(
        [kit.python, "-c", code, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        cwd=kit.folder,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"HF_HOME": "/somewhere/hf"},
        {"HF_HUB_CACHE": "/somewhere/cache"},
        {"HUGGINGFACE_HUB_CACHE": "/old/cache"},
        {"HF_HUB_CACHE": "/new", "HUGGINGFACE_HUB_CACHE": "/old"},
        {"XDG_CACHE_HOME": "/xdg"},
        {"HF_HOME": "~/hf"},
        {"BIG": "/big", "HF_HUB_CACHE": "${BIG}/cache"},
        {"BIG": "/big", "HF_HOME": "$BIG/hf"},
    ],
    ids=str,
)
def test_the_cache_lies_where_the_library_has_it(kit, extra):
    environ = {"HOME": str(kit.folder), "PATH": kit.environ["PATH"], **extra}
    code = "from huggingface_hub import constants as c; print(c.HF_HUB_CACHE)"
    assert ask(kit, code, environ) == str(cache_folder(environ))


@pytest.mark.parametrize("extra", [{}, {"HF_HOME": "/somewhere"}, {"HF_XET_CACHE": "/chunks"}], ids=str)
def test_xet_keeps_its_chunks_where_the_library_says(kit, extra):
    environ = {"HOME": str(kit.folder), "PATH": kit.environ["PATH"], **extra}
    code = "from huggingface_hub import constants as c; print(c.HF_XET_CACHE)"
    assert ask(kit, code, environ) == str(xet_folder(environ))


@pytest.mark.parametrize("source", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file", "path", "disabled", "none"])
def test_the_token_is_the_one_that_the_library_would_take(kit, source):
    environ = {"HOME": str(kit.folder), "PATH": kit.environ["PATH"], "HF_HOME": str(kit.folder / "hf")}
    if source in {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}:
        environ[source] = "hf_fromEnvironment\n"
    if source in {"file", "disabled"}:
        (kit.folder / "hf").mkdir()
        (kit.folder / "hf" / "token").write_text(" hf_fromFile\n")
    if source == "path":
        (kit.folder / "elsewhere").write_text("hf_fromPath")
        environ["HF_TOKEN_PATH"] = "~/elsewhere"
    if source == "disabled":
        environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"
    code = "from huggingface_hub.utils import build_hf_headers as b; print(b().get('authorization'))"
    found = find_token(environ, TokenRules())
    assert ask(kit, code, environ) == (f"Bearer {found[0]}" if found else "None")


@pytest.mark.parametrize(("xet", "environ"), [(True, {}), (False, {}), (True, {"HF_HUB_DISABLE_XET": "1"})])
def test_the_library_in_the_child_sees_the_switch_for_xet(kit, xet, environ):
    """It reads the variable once, at import, so only the child's own environment can set it."""
    child = HubProcess(
        python=kit.python, environ={**kit.environ, **environ}, cache=kit.cache, token=None, xet=xet
    )
    try:
        assert child.hello["xet"] is (xet and not environ)
        assert child.hello["endpoint"] == kit.environ["HF_ENDPOINT"]
    finally:
        child.kill()


def test_the_http_client_takes_larger_reads(kit):
    """An internal of the client: where it is gone, transfers are only slower, and this says so."""
    code = (
        "import sys; sys.path.append(sys.argv[1]); from dflashctl.edges import hub_transfer as t; "
        "t.prepare(lambda *a, **k: None); from huggingface_hub.utils import get_session; "
        "print(next(m for n, m in sys.modules.items() if n in ('httpcore', 'httpcore2')).HTTP11Connection.READ_NUM_BYTES)"
    )
    root = str(Path(__file__).resolve().parent.parent.parent)
    assert int(ask(kit, code, kit.environ, root)) == 256 * 1024


def test_the_librarys_own_record_of_the_tree_is_understood(kit):
    code = (
        "import sys; from huggingface_hub import snapshot_download as s; s(sys.argv[1], revision=sys.argv[2])"
    )
    ask(kit, code, kit.environ, TARGET, TARGET_COMMIT)
    record = kit.cache / f"models--{TARGET.replace('/', '--')}" / "trees" / f"{TARGET_COMMIT}.json"
    assert record.exists()
    listing = cached_listing(kit.cache, TARGET, TARGET_COMMIT)
    assert {f.path: f.size_bytes for f in listing.files} == {
        p.name: p.stat().st_size for p in Path(kit.root()).iterdir()
    }
    by_links = None
    record.write_text(json.dumps({"files": 7}))
    by_links = cached_listing(kit.cache, TARGET, TARGET_COMMIT)
    assert {(f.path, f.blob) for f in by_links.files} == {(f.path, f.blob) for f in listing.files}


def test_the_library_alone_accepts_wrong_bytes_of_the_right_length(kit):
    """Why every byte is proven here: if this ever fails, the library began to check contents."""
    kit.fault("wrong_bytes", "model-00001", method="GET")
    code = "import sys; from huggingface_hub import snapshot_download as s; print(s(sys.argv[1], revision=sys.argv[2]))"
    folder = Path(ask(kit, code, kit.environ, TARGET, TARGET_COMMIT))
    name = "model-00001-of-00003.safetensors"
    assert (folder / name).read_bytes() != (kit.root() / name).read_bytes()
    assert (folder / name).stat().st_size == (kit.root() / name).stat().st_size
