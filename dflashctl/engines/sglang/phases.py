"""Log lines of SGLang: what each tells about the start, the draft and failures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dflashctl.core.engine import LogMark
from dflashctl.core.start_phase import StartPhase


@dataclass(frozen=True, kw_only=True)
class Line:
    """A pattern searched in a line; named groups become facts, `done` and `total` become progress."""

    pattern: re.Pattern[str]
    phase: StartPhase | None = None
    failure: str | None = None


def _line(pattern: str, phase: StartPhase | None = None, failure: str | None = None) -> Line:
    return Line(pattern=re.compile(pattern), phase=phase, failure=failure)


LINES: tuple[Line, ...] = (
    _line(r"Decode batch.*accept len: (?P<accept_length>[\d.]+), accept rate: (?P<accept_rate>[\d.]+)"),
    _line(r"server_args=ServerArgs\(", StartPhase.RESOLVE),
    _line(r"Init (?:torch distributed|parallel) begin\.", StartPhase.LOAD_TARGET),
    _line(r"Load weight begin\.", StartPhase.LOAD_TARGET),
    _line(
        r"(?:Loading \S+ checkpoint shards|loading shards):\s+\d+% Completed \| (?P<done>\d+)/(?P<total>\d+)",
    ),
    _line(r"Load weight end\. .*type=(?P<draft_class>\w*(?:Draft|DFlash)\w*),", StartPhase.ALLOCATE),
    _line(r"Load weight end\. .*type=(?P<target_class>\w+),", StartPhase.LOAD_DRAFT),
    _line(
        r"Initialized DFLASH draft runner\. attention_backend=(?P<draft_attention_backend>[^,]+), "
        r"model=(?P<draft_class>[^,]+), block_size=(?P<block_size>[^,]+), "
        r"draft_window_size=(?P<draft_window_size>[^,]+)",
        StartPhase.ALLOCATE,
    ),
    _line(r"DFLASH draft runner ready\..*mask_token_id=(?P<mask_token_id>\d+)", StartPhase.ALLOCATE),
    _line(r"Mamba Cache is allocated\.|Memory pool end\.|KV Cache is allocated\.", StartPhase.ALLOCATE),
    _line(r"Capture .*[Cc][Uu][Dd][Aa] graph begin\.", StartPhase.CAPTURE),
    _line(r"Capturing [^|]*\|[^|]*\| (?P<done>\d+)/(?P<total>\d+)", StartPhase.CAPTURE),
    _line(r"Building the PTX KDA prefill extension|Running FlashInfer autotune"),
    _line(
        r"max_total_num_tokens=(?P<max_total_num_tokens>\d+),.* max_running_requests=(?P<max_running_requests>\d+), "
        r"context_len=(?P<context_length>\d+)",
        StartPhase.WARM_UP,
    ),
    _line(r"The server is fired up and ready to roll!", StartPhase.READY),
    _line(r"Scheduler hit an exception", failure="a scheduler raised an exception"),
    _line(r"Received sigquit from a child process", failure="a child process failed"),
    _line(r"SIGQUIT received\.", failure="a child process failed"),
    _line(r"Subprocess .* crashed with exit code", failure="a child process crashed"),
    _line(r"Rank \d+ scheduler died during initialization", failure="a scheduler died while it started"),
    _line(r"[Ww]atchdog timeout", failure="the watchdog found a forward pass that takes too long"),
    _line(r"Initialization failed\. warmup error", failure="the warm-up request failed"),
)
_WITHOUT_COUNT = ("done", "total")


def read_log_line(line: str, /) -> LogMark | None:
    """What the line tells, or None; it knows only the line, so LOAD_DRAFT follows the end of the target's weights."""
    for known in LINES:
        match = known.pattern.search(line)
        if match:
            return _mark(known, match)
    return None


def _mark(known: Line, match: re.Match[str]) -> LogMark:
    groups = match.groupdict()
    done, total = groups.get("done"), groups.get("total")
    return LogMark(
        phase=known.phase,
        done=int(done) if done else None,
        total=int(total) if total else None,
        facts=tuple(
            (name, value)
            for name, value in groups.items()
            if name not in _WITHOUT_COUNT and value is not None
        ),
        failure=known.failure,
    )
