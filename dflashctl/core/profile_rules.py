"""Rules of a profile that its types cannot say: pins, ranges, names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dflashctl.core.load import Problem
from dflashctl.core.profile import COMMIT_LENGTH, Algorithm, Profile
from dflashctl.core.release_range import is_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.node import Node
    from dflashctl.core.profile import ModelRef

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_COMMIT = re.compile(rf"[0-9a-f]{{{COMMIT_LENGTH}}}")
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DRIVER = re.compile(r"\d+(\.\d+)*")
_CAPABILITY = re.compile(r"\d+\.\d+")
_SECRET = re.compile(r"(TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL)", re.IGNORECASE)
MAX_PORT = 65535
# What an engine keeps in 32 bits: tokens, requests and GPUs are far fewer.
MAX_COUNT = 2**31 - 1


def profile_problems(profile: Profile, root: Node) -> tuple[Problem, ...]:
    """Every rule that `profile` breaks, at the place in `root` where it stands."""
    return tuple(Problem(where=_where(root, path), path=path, text=text) for path, text in _broken(profile))


def _broken(profile: Profile) -> Iterator[tuple[str, str]]:
    if not NAME.fullmatch(profile.name):
        yield "", f"{profile.name!r} cannot name a profile: use a-z, 0-9, '.', '_' and '-', at most 63"
    yield from _model("target", profile.target)
    if profile.draft is not None:
        yield from _model("draft", profile.draft)
    elif profile.speculative.algorithm is not Algorithm.NONE:
        yield "draft", "is missing: DFLASH needs a draft model (or set speculative.algorithm: NONE)"
    yield from broken_numbers(profile)
    yield from _comparisons(profile)
    for key in profile.environment:
        if not _ENV.fullmatch(key):
            yield f"environment.{key}", "is no name for an environment variable"
        elif _SECRET.search(key):
            yield f"environment.{key}", "looks like a secret: leave it in your own environment, not in a file"


def _model(path: str, ref: ModelRef) -> Iterator[tuple[str, str]]:
    if (ref.repo is None) == (ref.path is None):
        yield path, "needs either repo (with revision) or path"
    if ref.repo is not None and not _REPO.fullmatch(ref.repo):
        yield f"{path}.repo", f"{ref.repo!r} is not of the form owner/name"
    if ref.repo is not None and not _COMMIT.fullmatch(ref.revision or ""):
        yield f"{path}.revision", f"must be a commit of 40 hexadecimal digits, is {ref.revision!r}"
    if ref.path is not None and ref.revision is not None:
        yield f"{path}.revision", "goes with repo; a local path has no revision"


def _comparisons(profile: Profile) -> Iterator[tuple[str, str]]:
    """Texts that something is compared with: one of another form would compare with nothing, in silence."""
    versions, needs = profile.engine.versions, profile.requirements
    if versions is not None and not is_range(versions):
        yield "engine.versions", f"{versions!r} is no range of releases such as '>=0.5.21,<0.6'"
    if needs.driver is not None and not _DRIVER.fullmatch(needs.driver):
        yield "requirements.driver", f"{needs.driver!r} is no driver version such as '580' or '580.95.05'"
    for capability in needs.compute_capability:
        if not _CAPABILITY.fullmatch(capability):
            yield "requirements.compute_capability", f"{capability!r} is no compute capability such as '10.3'"


def broken_numbers(profile: Profile) -> Iterator[tuple[str, str]]:
    """Paths with a number outside its range, and what is wrong with it; raw arguments can bring one in, too."""
    spec, mem, par = profile.speculative, profile.memory, profile.parallel
    positive = {
        "speculative.block_size": spec.block_size,
        "speculative.draft_window_size": spec.draft_window_size,
        "memory.context_length": mem.context_length,
        "memory.max_running_requests": mem.max_running_requests,
        "memory.max_total_tokens": mem.max_total_tokens,
        "memory.page_size": mem.page_size,
        "backends.replayssm_cache_len": profile.backends.replayssm_cache_len,
        "backends.prefill_graph_max_tokens": profile.backends.prefill_graph_max_tokens,
        "parallel.tensor": par.tensor,
        "parallel.pipeline": par.pipeline,
        "parallel.data": par.data,
        "parallel.expert": par.expert,
        "timing.progress_timeout_s": profile.timing.progress_timeout_s,
        "timing.ready_timeout_s": profile.timing.ready_timeout_s,
        "timing.hang_after_s": profile.timing.hang_after_s,
    }
    for path, value in positive.items():
        if value is not None and value <= 0:
            yield path, f"must be above 0, is {value}"
        elif value is not None and not value <= MAX_COUNT:
            yield path, f"must be at most {MAX_COUNT}"
    if mem.static_fraction is not None and not 0 < mem.static_fraction < 1:
        yield "memory.static_fraction", f"is a share between 0 and 1, not {mem.static_fraction}"
    if not 1 <= profile.server.port <= MAX_PORT:
        yield "server.port", f"must be 1 to {MAX_PORT}, is {profile.server.port}"
    window, block = spec.draft_window_size, spec.block_size
    if window is not None and block is not None and window < block:
        yield "speculative.draft_window_size", f"{window} is smaller than the block size {block}"


def _where(root: Node, path: str) -> str:
    node = root
    for part in path.split("."):
        child = node.get(part) if part else None
        if child is None:
            break
        node = child
    return node.where
