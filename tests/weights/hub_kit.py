"""A small DFlash pair on a fake Hub, its profile, and an Env that meets only these."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.edges.hub import HuggingFaceHub
from dflashctl.env import Env

if TYPE_CHECKING:
    from dflashctl.core.progress import Progress

FAKE_HUB = Path(__file__).resolve().parent.parent / "fakes" / "fake_hub.py"
TARGET, DRAFT = "acme/big", "acme/big-DFlash"
TARGET_COMMIT, DRAFT_COMMIT = "a" * 40, "b" * 40
TARGET_CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 8,
    "vocab_size": 512,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "max_position_embeddings": 4096,
}
DRAFT_CONFIG = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 512,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "max_position_embeddings": 4096,
    "block_size": 16,
    "num_target_layers": 8,
    "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 4]},
}


def safetensors(path: Path, tensors: dict[str, tuple[int, ...]], seed: int = 0) -> None:
    """A sane bf16 file with random content."""
    header: dict[str, object] = {}
    offset = 0
    for name, shape in tensors.items():
        count = 2
        for side in shape:
            count *= side
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + count]}
        offset += count
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        rest = offset
        while rest:
            stream.write(os.urandom(min(rest, 1 << 20)))
            rest -= min(rest, 1 << 20)


def make_target(root: Path, *, shards: int = 3, side: int = 64) -> Path:
    root.mkdir(parents=True)
    (root / "config.json").write_text(json.dumps(TARGET_CONFIG))
    weight_map = {}
    for number in range(shards):
        name = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        safetensors(root / name, {f"layers.{number}.weight": (64, side)})
        weight_map[f"layers.{number}.weight"] = name
    (root / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (root / "tokenizer.json").write_text('{"model": {}}')
    (root / "chat_template.jinja").write_text("{{ messages }}")
    (root / "README.md").write_text("# big\n")
    (root / "modeling_big.py").write_text("print('hello')\n")
    (root / "pytorch_model.bin").write_bytes(b"\x80\x04pickle" * 100)
    return root


def make_draft(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "config.json").write_text(json.dumps(DRAFT_CONFIG))
    safetensors(root / "model.safetensors", {"fc.weight": (64, 128), "layers.0.weight": (64, 64)})
    return root


@dataclass
class Kit:
    """`env()` makes an Env on the fake Hub; `events` are what it notified."""

    folder: Path
    python: str
    environ: dict[str, str] = field(default_factory=dict)
    events: list[Progress] = field(default_factory=list)
    control: dict = field(default_factory=dict)
    stall_s: float | None = None
    profile: dict = field(default_factory=dict)
    spawned: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def cache(self) -> Path:
        return self.folder / "hf" / "hub"

    def snapshot(self, repo: str = TARGET, commit: str = TARGET_COMMIT) -> Path:
        return self.cache / f"models--{repo.replace('/', '--')}" / "snapshots" / commit

    def blob(self, path: str, repo: str = TARGET, commit: str = TARGET_COMMIT) -> Path:
        return (self.snapshot(repo, commit) / path).resolve()

    def root(self, repo: str = TARGET) -> Path:
        return Path(self.control["repos"][repo]["root"])

    def save(self) -> None:
        path = self.folder / "control.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(self.control))
        temporary.replace(path)

    def fault(self, kind: str, match: str, **more: object) -> None:
        faults = self.control.setdefault("faults", [])
        faults.append(
            {"kind": kind, "match": match, "times": 1, "id": f"{len(faults)}-{os.urandom(4).hex()}", **more}
        )
        self.save()

    def heal(self) -> None:
        self.control["faults"] = []
        self.save()

    def requests(self, method: str | None = None, part: str = "") -> list[dict]:
        log = self.folder / "control.json.log"
        rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        ended = [r for r in rows if "path" in r]
        return [r for r in ended if method in (None, r["method"]) and part in r["path"]]

    def idle(self) -> bool:
        """Whether every request that began has ended: one that a killed client left ends a little later."""
        rows = [json.loads(line) for line in (self.folder / "control.json.log").read_text().splitlines()]
        return sum("begin" in r for r in rows) == sum("path" in r for r in rows)

    def forget_requests(self) -> None:
        (self.folder / "control.json.log").write_text("")

    def write_profile(self, name: str = "pair", **changes: object) -> Path:
        import yaml

        self.profile.update(changes)
        path = self.folder / "profiles" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(self.profile))
        return path

    @property
    def lock(self) -> Path:
        return self.folder / "profiles" / "pair.lock.json"

    def env(self, **environ: str) -> Env:
        merged = {**self.environ, **environ}
        hub = HuggingFaceHub(environ=merged, python=self.python, stall_s=self.stall_s)
        return Env(environ=merged, cwd=self.folder, notify=self.events.append, hub=hub)


def start(folder: Path, python: str) -> tuple[Kit, subprocess.Popen[str]]:
    """A kit with its fake Hub running; end the process yourself."""
    kit = Kit(folder=folder, python=python)
    kit.control = {
        "repos": {
            TARGET: {"root": str(make_target(folder / "repos" / "big")), "commits": {"main": TARGET_COMMIT}},
            DRAFT: {"root": str(make_draft(folder / "repos" / "draft")), "commits": {"main": DRAFT_COMMIT}},
        },
        "faults": [],
    }
    kit.save()
    kit.profile = {
        "summary": "a pair for tests",
        "engine": {"name": "sglang"},
        "target": {"repo": TARGET, "revision": TARGET_COMMIT},
        "draft": {"repo": DRAFT, "revision": DRAFT_COMMIT},
    }
    kit.write_profile()
    process, endpoint = serve(folder / "control.json")
    kit.environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "HF_HOME": str(folder / "hf"),
        "HF_ENDPOINT": endpoint,
        "DFLASHCTL_STATE_DIR": str(folder / "state"),
        "DFLASHCTL_CONFIG_DIR": str(folder / "config"),
    }
    return kit, process


def serve(control: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, str(FAKE_HUB), str(control)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


_FETCH_ONCE = """
import json, sys
from dflashctl.commands.fetch import fetch
from dflashctl.core.errors import DflashError
from dflashctl.core.fetch_options import FetchOptions
from dflashctl.core.report import envelope, failure
from dflashctl.edges.hub import HuggingFaceHub
from dflashctl.env import Env
import os
from pathlib import Path
env = Env(environ=dict(os.environ), cwd=Path.cwd(), hub=HuggingFaceHub(environ=dict(os.environ), python=sys.argv[1]))
try:
    report = fetch(env, FetchOptions(profile="pair", **json.loads(sys.argv[2])))
except DflashError as error:
    report = failure("fetch", error)
print(json.dumps(envelope(report)))
"""


def spawn(kit: Kit, **options: object) -> subprocess.Popen[str]:
    """A fetch in a process of its own, as a user would start it; its standard output is the JSON envelope."""
    process = subprocess.Popen(
        [sys.executable, "-c", _FETCH_ONCE, kit.python, json.dumps(options)],
        env=kit.environ,
        cwd=kit.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kit.spawned.append(process)
    return process


def ended(process: subprocess.Popen[str]) -> dict:
    """The envelope of a spawned fetch that ran to its end."""
    out, err = process.communicate(timeout=100)
    assert out, err
    return json.loads(out)
