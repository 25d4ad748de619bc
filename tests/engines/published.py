"""The published commands, and a profile made of one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from dflashctl.core.load import load
from dflashctl.core.profile import Profile
from dflashctl.core.profile_text import profile_yaml
from dflashctl.edges.yaml_node import parse
from dflashctl.engines.sglang.from_command import drafted, model_fields
from dflashctl.engines.sglang.paste import read_pasted

COMMANDS = {
    c["id"]: c for c in yaml.safe_load(Path(__file__).with_name("published_commands.yaml").read_text())
}
VALID = tuple(name for name, command in COMMANDS.items() if "refused" not in command)


@cache
def draft(name, release="0.5.23"):
    return drafted(read_pasted(COMMANDS[name]["text"]), release)


def as_profile(name):
    """The profile of a published command, with a made-up commit where it pins none."""
    fields = {k: v for k, v in draft(name).fields.items() if k.split(".")[0] not in ("target", "draft")}
    for role in ("target", "draft"):
        given = draft(name).fields
        model = model_fields(given[role], given.get(f"{role}.revision"))
        model.update({"revision": "a" * 40} if "repo" in model and "revision" not in model else {})
        trust = {f"{role}.trust_remote_code": True} if given.get(f"{role}.trust_remote_code") else {}
        fields.update({f"{role}.{key}": value for key, value in model.items()} | trust)
    text = profile_yaml({"summary": "from a command", "engine.name": "sglang", **fields})
    made, problems = load(parse(text, name=name), Profile, extra={"name": name})
    assert problems == (), (text, problems)
    return made
