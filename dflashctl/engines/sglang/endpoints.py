"""HTTP paths and exit codes of SGLang, by release."""

from __future__ import annotations

import signal

from dflashctl.core.engine import Endpoints
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.runs import within

_READY = '"/ready"'
# Up to 0.5.18 the server kills its own process group at the end of an orderly stop.
_KILLS_ITSELF_UNTIL = "0.5.18"


def endpoints(release: str, /) -> Endpoints:
    """The paths of `release`; `/ready` came with 0.5.20, and exit code 0 after SIGTERM with 0.5.19."""
    kills_itself = within(release, None, _KILLS_ITSELF_UNTIL)
    codes = (-int(signal.SIGKILL), 128 + int(signal.SIGKILL)) if kills_itself else (0,)
    return Endpoints(
        ready="/ready" if catalogue.has_mark(_READY, catalogue.nearest(release)) else None,
        orderly_exit_codes=codes,
    )


def install_hint(release: str, /) -> str:
    """The command that installs that release for the engine's interpreter."""
    return f"python3 -m pip install sglang=={release}"
