"""HuggingFaceHub: the Hub through a killable child, watched by what it writes rather than by what it says."""

from __future__ import annotations

import base64
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dflashctl.core.errors import Unavailable
from dflashctl.core.model_files import Listing, ModelFile
from dflashctl.core.stall import STALL_AFTER_S, Growth, excused, grown, stalled_s
from dflashctl.core.weights import Access
from dflashctl.core.weights_lock import is_safe_path
from dflashctl.edges import hub_cache
from dflashctl.edges.hub_auth import endpoint, find_token, is_on, may_send
from dflashctl.edges.hub_errors import hub_error
from dflashctl.edges.hub_process import HubProcess
from dflashctl.ports.hub import Order, TokenRules, Transfer, TransferEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_WORKERS = 8
_STALLS_IN_A_ROW = 1
_RESTARTS = 8
_ATTEMPTS = 5
_LOOK_EVERY_S = 1.0


@dataclass(kw_only=True)
class _Course:
    """A transfer on its way: what is done, what failed, and how the bytes on disk grow."""

    growth: Growth
    done: set[tuple[str, str]] = field(default_factory=set)
    failed: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    excused_until_s: float = 0.0
    looked_s: float = 0.0
    stalls_in_a_row: int = 0
    restarts: int = 0
    by_xet: bool = False


class HuggingFaceHub:
    """`python` is the interpreter that has huggingface_hub; `stall_s` comes from DFLASHCTL_STALL_TIMEOUT_S."""

    def __init__(
        self, *, environ: Mapping[str, str], python: str = sys.executable, stall_s: float | None = None
    ) -> None:
        self._environ = environ
        self._python = python
        self._stall_s = stall_s or float(environ.get("DFLASHCTL_STALL_TIMEOUT_S") or STALL_AFTER_S)
        self._process: HubProcess | None = None
        self._token: tuple[str, str] | None = None
        self._token_rules: TokenRules | None = None

    def access(self, rules: TokenRules) -> Access:
        token = self._find_token(rules)
        return Access(
            endpoint=endpoint(self._environ),
            token=token[1] if token else None,
            sends_token=token is not None and may_send(self._environ, rules),
            offline=is_on(self._environ.get("HF_HUB_OFFLINE"))
            or is_on(self._environ.get("TRANSFORMERS_OFFLINE")),
            xet=not is_on(self._environ.get("HF_HUB_DISABLE_XET")),
        )

    def cache(self) -> Path:
        return hub_cache.cache_folder(self._environ)

    def xet_cache(self) -> Path:
        return hub_cache.xet_folder(self._environ)

    def snapshot(self, repo: str, commit: str) -> Path:
        return hub_cache.snapshot_folder(self.cache(), repo, commit)

    def cached_listing(self, repo: str, commit: str) -> Listing | None:
        return hub_cache.cached_listing(self.cache(), repo, commit)

    def sweep(self, repo: str) -> int:
        return hub_cache.sweep(self.cache(), repo)

    def listing(
        self, repo: str, revision: str | None, rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> Listing:
        answer = self._ask(rules, notify, "list", repo=repo, revision=revision)
        if answer["event"] == "error":
            raise hub_error(answer, repo, revision, self.access(rules))
        files = tuple(ModelFile(**entry) for entry in answer["files"])
        unsafe = next((f.path for f in files if not is_safe_path(f.path)), None)
        if unsafe is not None:
            raise Unavailable(
                f"{repo!r} lists a file outside itself: {unsafe!r}", hint="do not use this source"
            )
        moved = answer["repo"] if answer["repo"] != repo else None
        return Listing(repo=repo, commit=answer["commit"], files=files, moved_to=moved)

    def read(
        self, repo: str, commit: str, path: str, rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> bytes:
        answer = self._ask(rules, notify, "read", repo=repo, commit=commit, path=path)
        if answer["event"] == "error":
            raise hub_error(answer, repo, commit, self.access(rules))
        return base64.b64decode(answer["content"])

    def fetch(
        self, orders: tuple[Order, ...], rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> Transfer:
        """Runs until all files are there or given up.

        A transfer that stops writing is killed and begun again without Xet; a second stall without a single file
        finished in between ends it. Raises what stops every file at once: no room, no right to read or write.
        """
        course = _Course(growth=Growth(since_s=time.monotonic(), mark_bytes=self._written(orders)))
        xet = True
        while not self._run(orders, rules, notify, course, xet=xet):
            if course.stalls_in_a_row >= _STALLS_IN_A_ROW or course.restarts >= _RESTARTS:
                raise self._stalled(orders, course)
            course.stalls_in_a_row += 1
            course.restarts += 1
            xet = False
            course.growth = Growth(since_s=time.monotonic(), mark_bytes=self._written(orders))
            notify(TransferEvent(note=f"nothing written for {self._stall_s:.0f} s: once more, without Xet"))
        for (repo, _), event in course.failed.items():
            if event["kind"] in {"no_room", "read_only", "gated", "forbidden", "unauthorized"}:
                raise hub_error(event, repo, None, self.access(rules))
        failed = tuple(
            (f"{repo}/{path}", str(event["message"])) for (repo, path), event in course.failed.items()
        )
        return Transfer(failed=failed, restarts=course.restarts, transport="xet" if course.by_xet else "http")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _ask(
        self, rules: TokenRules, notify: Callable[[TransferEvent], None], op: str, **values: object
    ) -> dict[str, Any]:
        """The final event of a small operation; waiting times are passed on."""
        last: dict[str, Any] = {}
        for event in self._child(rules).stream(op, **values):
            if event is not None and event["event"] == "waiting":
                notify(TransferEvent(waiting_s=event["seconds"], note=_why_waiting(event)))
            last = event or last
        return last

    def _run(
        self,
        orders: tuple[Order, ...],
        rules: TokenRules,
        notify: Callable[[TransferEvent], None],
        course: _Course,
        *,
        xet: bool,
    ) -> bool:
        """True when the child has dealt with every file, False when it stalled and was killed."""
        if not xet:
            self.close()
        child = self._child(rules, xet=xet)
        try:
            for event in child.stream(
                "fetch",
                orders=_wire(orders, course.done),
                workers=self._number("DFLASHCTL_FETCH_WORKERS", _WORKERS),
            ):
                if event is not None:
                    self._note(event, course, notify)
                if self._has_stalled(orders, course, notify):
                    self.close()
                    return False
        except BaseException:
            self.close()
            raise
        return True

    def _note(self, event: dict[str, Any], course: _Course, notify: Callable[[TransferEvent], None]) -> None:
        kind = event["event"]
        if kind == "file":
            key = (event["repo"], event["path"])
            course.done.add(key)
            course.failed.pop(key, None)
            course.stalls_in_a_row = 0
            notify(TransferEvent(finished=key))
        elif kind == "result":
            course.by_xet = bool(event["xet"])
        elif kind == "failed":
            course.failed[event["repo"], event["path"]] = event
        elif kind == "waiting":
            course.excused_until_s = max(course.excused_until_s, time.monotonic() + event["seconds"] + 1.0)
            notify(TransferEvent(waiting_s=event["seconds"], note=_why_waiting(event)))

    def _has_stalled(
        self, orders: tuple[Order, ...], course: _Course, notify: Callable[[TransferEvent], None]
    ) -> bool:
        now = time.monotonic()
        if now - course.looked_s < min(_LOOK_EVERY_S, self._stall_s / 4):
            return False
        course.looked_s = now
        written = self._written(orders)
        notify(TransferEvent(written_bytes=written))
        if now < course.excused_until_s:
            course.growth = excused(course.growth, now)
        course.growth = grown(course.growth, now, written, window_s=self._stall_s)
        return stalled_s(course.growth, now) > self._stall_s

    def _stalled(self, orders: tuple[Order, ...], course: _Course) -> Unavailable:
        left = [f"{o.repo}/{f.path}" for o in orders for f in o.files if (o.repo, f.path) not in course.done]
        return Unavailable(
            f"the transfer stalled again: nothing written for {self._stall_s:.0f} s, with and without Xet",
            hint="run the command again: it goes on where this ended",
            detail="not there yet: "
            + ", ".join(left[:8])
            + (f" and {len(left) - 8} more" if len(left) > 8 else ""),  # noqa: PLR2004
        )

    def _written(self, orders: tuple[Order, ...]) -> int:
        return sum(hub_cache.stored_bytes(self.cache(), repo) for repo in {o.repo for o in orders})

    def _number(self, name: str, default: int) -> int:
        value = self._environ.get(name, "")
        return max(1, min(64, int(value))) if value.isdigit() else default

    def _child(self, rules: TokenRules, *, xet: bool = True) -> HubProcess:
        if self._process is None:
            token = self._find_token(rules)
            self._process = HubProcess(
                python=self._python,
                environ=self._environ,
                cache=self.cache(),
                token=token[0] if token and may_send(self._environ, rules) else None,
                xet=xet,
                attempts=self._number("DFLASHCTL_FETCH_ATTEMPTS", _ATTEMPTS),
            )
        return self._process

    def _find_token(self, rules: TokenRules) -> tuple[str, str] | None:
        """Read once: a descriptor can be read only once."""
        if self._token_rules != rules:
            self._token, self._token_rules = find_token(self._environ, rules), rules
        return self._token


def _wire(orders: tuple[Order, ...], done: set[tuple[str, str]]) -> list[dict[str, object]]:
    return [
        {
            "repo": order.repo,
            "commit": order.commit,
            "files": [
                {"path": f.path, "size_bytes": f.size_bytes, "blob": f.blob}
                for f in order.files
                if (order.repo, f.path) not in done
            ],
        }
        for order in orders
    ]


def _why_waiting(event: Mapping[str, Any]) -> str:
    what = f"it answered {event['status']}" if event.get("status") else str(event.get("message", "no answer"))
    return f"waiting {event['seconds']:.0f} s for the Hub: {what}"
