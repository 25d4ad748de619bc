"""The life of the server: load, open the port, warm up, serve, and stop on a signal."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from aiohttp import web

from dflashctl.reference.engine import Engine
from dflashctl.reference.errors import StartError
from dflashctl.reference.http_app import Server
from dflashctl.reference.load import load
from dflashctl.reference.request import Request, SamplingParams

if TYPE_CHECKING:
    from dflashctl.reference.arguments import Settings
    from dflashctl.reference.log import Log

_INTERRUPTED = 130
_DRAIN_POLL_S = 0.05
_DRAIN_LOG_S = 5.0


async def serve(settings: Settings, log: Log) -> int:
    """Serve until a signal; return the exit code.

    SIGTERM drains: what runs, and what still arrives meanwhile, is finished, then the code is 0. SIGINT stops
    at once with 130. Raises StartError when the models cannot be loaded or the port is taken.
    """
    engine = Engine(load(settings, log), settings, log)
    server = Server(settings, engine, log)
    runner = web.AppRunner(
        server.application(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    term, interrupt = _signals()
    engine.start()
    try:
        await _open_port(runner, settings)
        log.say(f"INFO:     Serving on http://{settings.host}:{settings.port}")
        if not settings.skip_server_warmup:
            await _warm_up(engine)
        server.up = True
        log.say("The server is fired up and ready to roll!")
        return await _until_stopped(server, engine, term, interrupt, log)
    finally:
        engine.scheduler.abort(None)
        await runner.cleanup()
        engine.scheduler.stop()


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    term, interrupt = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, term.set)
    loop.add_signal_handler(signal.SIGINT, interrupt.set)
    return term, interrupt


async def _open_port(runner: web.AppRunner, settings: Settings) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
    except OSError as error:
        address = (settings.host, settings.port)
        reason = (error.strerror or str(error)).lower()
        if "address already in use" in reason:
            reason = "address already in use"
        raise StartError(
            f"[Errno {error.errno}] error while attempting to bind on address {address}: {reason}"
        ) from error


async def _warm_up(engine: Engine) -> None:
    """Generate once, as SGLang does, so that the first user finds everything touched."""
    prompt = engine.tokenizer.encode("The capital city of France is")
    params = SamplingParams(max_new_tokens=8, temperature=0, ignore_eos=True)
    batch = engine.begin([Request(rid="WARM_UP", prompt_ids=prompt, params=params, probe=True)])
    await batch.finished()


async def _until_stopped(
    server: Server, engine: Engine, term: asyncio.Event, interrupt: asyncio.Event, log: Log
) -> int:
    crash = engine.crashed
    await _first(term, interrupt, crash)
    server.up = False
    if term.is_set() and not (interrupt.is_set() or crash.is_set()):
        log.say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        await _drain(engine, interrupt, crash, log)
    if crash.is_set():
        return 1
    return _INTERRUPTED if interrupt.is_set() else 0


async def _drain(engine: Engine, interrupt: asyncio.Event, crash: asyncio.Event, log: Log) -> None:
    loop = asyncio.get_running_loop()
    said = loop.time() - _DRAIN_LOG_S
    while not (interrupt.is_set() or crash.is_set()):
        left = engine.scheduler.in_flight()
        if not left or loop.time() - said >= _DRAIN_LOG_S:
            said = loop.time()
            log.say(
                f"Gracefully exiting... Remaining number of requests {len(left)}. "
                f"Remaining requests remaining_rids={left}."
            )
        if not left:
            return
        await asyncio.sleep(_DRAIN_POLL_S)


async def _first(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
