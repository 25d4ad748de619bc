"""SGLang: from a profile to the command of any release, and from its log to phases."""

from dflashctl.engines.sglang.catalogue import newest as _newest
from dflashctl.engines.sglang.catalogue import releases as _releases
from dflashctl.engines.sglang.command import command
from dflashctl.engines.sglang.effective import effective
from dflashctl.engines.sglang.endpoints import endpoints, install_hint
from dflashctl.engines.sglang.gpu_use import gpu_use
from dflashctl.engines.sglang.phases import read_log_line
from dflashctl.engines.sglang.published import published
from dflashctl.engines.sglang.started import differences

NAME = "sglang"
NEWEST_RELEASE = _newest()
RELEASES = _releases()

__all__ = [
    "NAME",
    "NEWEST_RELEASE",
    "RELEASES",
    "command",
    "differences",
    "effective",
    "endpoints",
    "gpu_use",
    "install_hint",
    "published",
    "read_log_line",
]
