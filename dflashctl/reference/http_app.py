"""The HTTP application: routes, the key check, the access log, and errors in SGLang's shape."""

from __future__ import annotations

import hmac
import itertools
import json
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.fields import parse_body
from dflashctl.reference.http_info import Info
from dflashctl.reference.native_api import Generate
from dflashctl.reference.openai_chat import chat_completion
from dflashctl.reference.openai_completions import text_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dflashctl.reference.arguments import Settings
    from dflashctl.reference.engine import Batch, Engine
    from dflashctl.reference.fields import Fields
    from dflashctl.reference.log import Log

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LARGEST_BODY_BYTES = 64 << 20
_OPEN_PATHS = ("/health", "/metrics", "/ready")


class Generation(Protocol):
    """A generation in progress, of any of the three APIs."""

    stream: bool
    batch: Batch

    async def whole(self) -> Any:
        """Return the body of the response."""

    def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the objects of the stream."""


class Server:
    """Holds what the handlers need. ``up`` is True between the warm-up and the signal to stop."""

    def __init__(self, settings: Settings, engine: Engine, log: Log) -> None:
        self.up = False
        self._settings, self._engine, self._log = settings, engine, log
        self._info = Info(settings, engine)
        self._seeds = itertools.count(settings.random_seed)
        self._health_timeout_s = float(os.environ.get("SGLANG_HEALTH_CHECK_TIMEOUT", "20"))

    def application(self) -> web.Application:
        """Return the application with all its routes."""
        app = web.Application(
            client_max_size=_LARGEST_BODY_BYTES,
            middlewares=[self._log_access, self._write_errors, self._check_key],
        )
        reads: dict[str, Handler] = {
            "/health": self._health,
            "/health_generate": self._health,
            "/ready": self._ready,
            "/ping": self._ready,
            "/model_info": self._reads(self._info.model_info),
            "/get_model_info": self._reads(self._info.model_info),
            "/server_info": self._reads(self._info.server_info),
            "/get_server_info": self._reads(self._info.server_info),
            "/v1/models": self._reads(self._info.models),
            "/v1/loads": self._reads(self._info.loads),
            "/flush_cache": self._flush_cache,
        }
        if self._settings.enable_metrics:
            reads["/metrics"] = self._metrics
        for path, handler in reads.items():
            app.router.add_get(path, handler)
        app.router.add_post("/flush_cache", self._flush_cache)
        app.router.add_post("/abort_request", self._abort)
        app.router.add_post("/generate", self._generates(Generate))
        app.router.add_post("/v1/chat/completions", self._generates(chat_completion))
        app.router.add_post("/v1/completions", self._generates(text_completion))
        return app

    async def _health(self, _: web.Request) -> web.Response:
        healthy = self.up and await self._engine.probe(self._health_timeout_s)
        return web.Response(status=200 if healthy else 503)

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self.up else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        page = self._info.metrics()
        return web.Response(text=page, headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    async def _flush_cache(self, _: web.Request) -> web.Response:
        idle = not self._engine.scheduler.in_flight()
        text = "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n"
        return web.Response(text=text, status=200 if idle else 400)

    async def _abort(self, request: web.Request) -> web.Response:
        fields = parse_body(await request.read())
        rid = fields.string("rid")
        if rid or fields.flag("abort_all"):
            self._engine.scheduler.abort(None if fields.flag("abort_all") else rid)
        return web.Response()

    def _reads(self, body: Callable[[], dict[str, Any]]) -> Handler:
        async def handler(_: web.Request) -> web.Response:
            return _json(body())

        return handler

    def _generates(self, begin: Callable[[Fields, Engine, int], Generation]) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            fields = parse_body(await request.read())
            generation = begin(fields, self._engine, next(self._seeds))
            try:
                if generation.stream:
                    return await _stream(request, generation.chunks())
                return _json(await generation.whole())
            finally:
                generation.batch.close()

        return handler

    @web.middleware
    async def _check_key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        keys = self._settings.api_keys
        if not keys or request.path.startswith(_OPEN_PATHS) or request.method == "OPTIONS":
            return await handler(request)
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if any(hmac.compare_digest(given, key.encode()) for key in keys):
            return await handler(request)
        return _json({"error": "Unauthorized"}, status=401)

    @web.middleware
    async def _write_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadRequestError as error:
            body = {
                "object": "error",
                "message": error.message,
                "type": error.kind,
                "param": None,
                "code": 400,
            }
            return _json(body, status=400)
        except web.HTTPException as error:
            if error.status < HTTPStatus.BAD_REQUEST:
                raise
            return _json({"detail": error.reason}, status=error.status)

    @web.middleware
    async def _log_access(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        peer = request.transport and request.transport.get_extra_info("peername")
        where = f"{peer[0]}:{peer[1]}" if peer else "-"
        phrase = HTTPStatus(response.status).phrase
        self._log.say(
            f'INFO:     {where} - "{request.method} {request.path} HTTP/1.1" {response.status} {phrase}'
        )
        return response


def _json(body: Any, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=_dump)


def _dump(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


async def _stream(request: web.Request, chunks: AsyncIterator[dict[str, Any]]) -> web.StreamResponse:
    """Send each chunk as a server-sent event as soon as it is there."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    try:
        await response.prepare(request)
        async for chunk in chunks:
            await response.write(f"data: {_dump(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
    except ConnectionError:  # the client has left; the caller drops the generation
        return response
    return response
