"""The child process that talks to the Hub: the only code that imports huggingface_hub for weights.

It reads one JSON object a line from standard input and answers with events, one a line, on what was its standard
output. It ends at once when its input closes, so no transfer outlives the command that asked for it. It is started
by hub_process.py and imports nothing but the standard library, dflashctl.core and huggingface_hub, so that any
interpreter with a supported huggingface_hub can run it.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import huggingface_hub

from dflashctl.edges import hub_failures, hub_transfer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from dflashctl.edges.hub_transfer import Account

Request = dict[str, object]


class Speaker:
    """Writes events, one a line, from any thread."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def say(self, event: str, **values: object) -> None:
        line = json.dumps({"event": event, **values})
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()


def main() -> None:
    """Serve requests until the input closes."""
    private = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not mix with the events
    speaker = Speaker(os.fdopen(private, "w", encoding="utf-8"))
    requests: queue.Queue[Request] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    account = _account(requests.get(), speaker)
    while True:
        _serve(requests.get(), account, speaker)


def _read(requests: queue.Queue[Request]) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def _account(request: Request, speaker: Speaker) -> Account:
    token = request["token"]
    hub_transfer.prepare(speaker.say)
    speaker.say(
        "ready",
        library=huggingface_hub.__version__,
        endpoint=huggingface_hub.constants.ENDPOINT,
        xet=hub_transfer.uses_xet(),
    )
    return hub_transfer.Account(
        token=str(token) if token else False,
        cache=str(request["cache"]),
        attempts=int(str(request["attempts"])),
    )


def _serve(request: Request, account: Account, speaker: Speaker) -> None:
    operations: dict[str, Callable[[Request, Account, Speaker], dict[str, object]]] = {
        "list": _list,
        "read": _read_file,
        "fetch": _fetch,
    }
    try:
        answer = operations[str(request["op"])](request, account, speaker)
    except hub_failures.failures() as error:
        speaker.say("error", **hub_failures.describe(error))
    else:
        speaker.say("result", **answer)


def _list(request: Request, account: Account, speaker: Speaker) -> dict[str, object]:
    repo, revision = str(request["repo"]), request["revision"]
    return hub_failures.patiently(
        lambda: hub_transfer.listing(account, repo, str(revision) if revision else None),
        speaker.say,
        account.attempts,
    )


def _read_file(request: Request, account: Account, speaker: Speaker) -> dict[str, object]:
    repo, commit, path = str(request["repo"]), str(request["commit"]), str(request["path"])
    content = hub_failures.patiently(
        lambda: hub_transfer.read(account, repo, commit, path), speaker.say, account.attempts
    )
    return {"content": base64.b64encode(content).decode("ascii")}


def _fetch(request: Request, account: Account, speaker: Speaker) -> dict[str, object]:
    files = hub_transfer.wanted_files(request["orders"])
    workers = request["workers"]
    stop = threading.Event()
    with ThreadPoolExecutor(workers if isinstance(workers, int) else 8) as pool:
        list(pool.map(lambda file: hub_transfer.bring(account, file, speaker.say, stop), files))
    return {"files": len(files), "xet": hub_transfer.came_by_xet()}
