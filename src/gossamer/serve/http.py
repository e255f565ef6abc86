"""The Open Inference Protocol over HTTP: an ASGI application.

FastAPI answers what is asked seldom, and describes everything as OpenAPI. Requests for inference, whose microseconds
count, never reach it: `Application` reads and answers them itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from gossamer.release import __version__
from gossamer.serve import extensions, json_form, openapi
from gossamer.serve.logs import say
from gossamer.serve.metrics import Metrics
from gossamer.serve.protocol import (
    Abandoned,
    Forbidden,
    InferenceRequest,
    InferenceResponse,
    InvalidRequest,
    NotReady,
    Overloaded,
    RequestError,
    TimedOut,
    TooLarge,
    Unauthorized,
    UnknownModel,
)
from gossamer.serve.settings import Settings

if TYPE_CHECKING:
    from gossamer.serve.repository import Repository

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Result = TypeVar("Result")

EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "parameters", "statistics")

INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer")

_SMALL = 64 << 10
"""The most bytes of a body that is no request for inference."""

_OPEN = ("/v2/health/live", "/v2/health/ready")
"""What is answered without a token: whoever watches over the process has none."""


class Application:
    """The ASGI application of a repository. ``draining``: the server ends, and new requests are sent away."""

    def __init__(self, repository: Repository, settings: Settings, metrics: Metrics) -> None:
        self.repository, self.settings, self.metrics = repository, settings, metrics
        self.draining = False
        self.held = 0
        """Bytes of bodies that are in memory."""
        self._tokens = [token.encode() for token in settings.tokens]
        self._api = _api(self)
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        path = scope["path"]
        try:
            if path not in _OPEN:
                self.check_token(headers.get(b"authorization", b""))
            asks = INFER.fullmatch(scope["raw_path"].decode("latin-1")) if scope["method"] == "POST" else None
            if asks is not None:
                name, version = asks.groups("")
                await self._infer(unquote(name), unquote(version), headers, receive, send)
            else:
                if scope["method"] == "HEAD":  # what GET has; the body is left out where it is sent
                    scope = {**scope, "method": "GET"}
                await self._api(scope, receive, send)
        except Unauthorized as error:
            with contextlib.suppress(Abandoned):
                await self._send_error(send, error)
        except Exception as error:  # which has its answer
            say("bug", logging.ERROR, error, path=path)

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered: models are loaded, and the server does not end."""
        return not self.draining and self.repository.ready

    def known(self, name: str, version: str) -> tuple[str, str]:
        """A model and its version, or "" for what is not there: clients do not make up names in metrics and logs."""
        try:
            return name, self.repository.get(name, version).version
        except UnknownModel:
            return "", ""
        except RequestError:
            return name, version

    def check_token(self, header: bytes) -> None:
        """Raise `Unauthorized` if there are tokens, and the header ``Authorization`` has none of them."""
        if not self._tokens:
            return
        scheme, _, token = header.partition(b" ")
        # All of them are compared, so that the time tells nothing.
        matches = [hmac.compare_digest(token.strip(), known) for known in self._tokens]
        if scheme.lower() != b"bearer" or not any(matches):
            raise Unauthorized("this server wants a token: the header Authorization: Bearer TOKEN")

    async def _infer(
        self, name: str, version: str, headers: Mapping[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        started = time.perf_counter()
        self.metrics.arrived()
        request: InferenceRequest | None = None
        status, http_status, error = "OK", 200, None
        held = Held(self)
        try:
            if self.draining:
                raise NotReady("the server ends")
            body = await self._body(headers, receive, held)
            length = _number(headers.get(json_form.HEAD_LENGTH.lower().encode()), json_form.HEAD_LENGTH)
            if (len(body) if length is None else length) > self.settings.max_json_size:
                limit = self.settings.max_json_size
                raise TooLarge(f"the JSON of a request may have {limit} bytes; tensors can be sent as binary data")
            request, form = await self._read(body, length, name, version)
            response = await _answer(self.repository.infer(request), receive)
            name, version = response.model_name, response.model_version
            write = partial(json_form.write_response, response, form, self.settings.max_held_size // 4)
            pieces, head_length = await self.aside(write) if form.takes_long(response) else write()
            await self._send(send, 200, pieces, head_length)
        except RequestError as caught:
            error, status, http_status = caught, caught.grpc_code, caught.http_status
        except Exception as caught:  # a bug, of which the client is told no more than that
            error, status, http_status = RequestError("internal error"), "INTERNAL", 500
            say("bug", logging.ERROR, caught, id=request.id if request else None, model=name)
        finally:
            held.release()
        if error is not None:
            if status != "CANCELLED":
                with contextlib.suppress(Abandoned):
                    await self._send_error(send, error)
            name, version = self.known(name, version)
        seconds = time.perf_counter() - started
        self.metrics.answered("http", name, version, status, seconds)
        if self.settings.log_requests or http_status >= 500:
            say(
                "request",
                logging.INFO if http_status < 500 else logging.WARNING,
                model=name,
                version=version,
                protocol="http",
                status=http_status,
                id=request.id[:200] if request and request.id else None,
                ms=round(1e3 * seconds, 3),
                error=str(error) if error else None,
            )

    async def _read(
        self, body: bytes, length: int | None, name: str, version: str
    ) -> tuple[InferenceRequest, json_form.Form]:
        """The request that a body holds, and how its answer is to look. Raises `InvalidRequest`, and `TimedOut`."""
        metadata, timeout = partial(self.repository.metadata, name, version), self.settings.timeout
        read = partial(json_form.read_request, body, length, name, version, metadata, timeout)
        if (len(body) if length is None else length) <= json_form.LARGE:
            return read()
        return await self.read_aside(read, timeout)

    async def read_aside(
        self, read: Callable[[], tuple[InferenceRequest, Result]], timeout: float | None
    ) -> tuple[InferenceRequest, Result]:
        """A request that takes long to read, `aside`; its deadline is that of one that does not. Raises `TimedOut`."""
        began = time.monotonic()
        try:
            request, form = await asyncio.wait_for(self.aside(read), timeout)
        except asyncio.TimeoutError:
            raise TimedOut("the deadline passed while the request was read") from None
        if request.deadline is not None:
            request.deadline -= time.monotonic() - began
        return request, form

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do in a thread what would hold other requests up, one after the other: JSON takes much memory."""
        async with self._turn:
            return await asyncio.to_thread(work)

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive, held: Held) -> bytes:
        """The body, inflated. Raises `TooLarge` before it is read, if its length is told, and `Abandoned`."""
        limit = self.settings.max_body_size
        length = _number(headers.get(b"content-length"), "Content-Length")
        if length is not None and length > limit:
            raise TooLarge(f"the body has {length} bytes; {limit} are allowed")
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Abandoned("the client went away")
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"the body has more than the {limit} bytes that are allowed")
            held.take(len(chunk))
            chunks.append(chunk)
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding == b"identity":
            return body
        held.take(limit)
        return await asyncio.to_thread(json_form.inflated, body, encoding.decode("latin-1"), limit)

    async def _send(
        self, send: Send, status: int, pieces: list[bytes], head_length: int | None = None, extra: Headers | None = None
    ) -> None:
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        headers: Headers = [
            (b"content-type", b"application/json" if head_length is None else b"application/octet-stream"),
            (b"content-length", b"%d" % len(body)),
        ]
        if head_length is not None:
            headers.append((json_form.HEAD_LENGTH.lower().encode(), b"%d" % head_length))
        if self.draining:
            headers.append((b"connection", b"close"))
        try:
            await send({"type": "http.response.start", "status": status, "headers": headers + (extra or [])})
            await send({"type": "http.response.body", "body": body})
        except RuntimeError as error:
            if "handler is closed" not in str(error):
                raise
            # uvloop's word for a connection that has gone, before uvicorn is told.
            raise Abandoned("the client went away") from error

    async def _send_error(self, send: Send, error: RequestError) -> None:
        text = json.dumps({"error": str(error)}).encode()
        extra = [(key.lower().encode(), value.encode()) for key, value in _error_headers(error).items()]
        await self._send(send, error.http_status, [text], None, extra)


class Held:
    """The bytes of one request's body, of those that all may have."""

    def __init__(self, application: Application) -> None:
        self.application, self.size = application, 0

    def take(self, size: int) -> None:
        """Raises `Overloaded` if all bodies together would be too many bytes."""
        limit = self.application.settings.max_held_size
        self.application.held += size
        self.size += size
        if self.application.held > limit:
            raise Overloaded(f"the bodies of requests that are here have more than {limit} bytes")

    def release(self) -> None:
        self.application.held -= self.size
        self.size = 0


async def _answer(future: Any, receive: Receive) -> InferenceResponse:
    """The result of a request that has been read. Raises `Abandoned` if the client goes away, and cancels it."""
    if future.done():
        answer: InferenceResponse = future.result()
        return answer
    waiting: asyncio.Future[InferenceResponse] = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(_disconnected(receive))
    gone.add_done_callback(lambda _: waiting.cancel())
    try:
        return await waiting
    except asyncio.CancelledError:
        if gone.done():
            raise Abandoned("the client went away") from None
        raise
    finally:
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _number(text: bytes | None, header: str) -> int | None:
    if text is None:
        return None
    if not (text.isdigit() and len(text) < 19):
        raise InvalidRequest(f"{header} must be a number of bytes")
    return int(text)


def _error_headers(error: RequestError) -> dict[str, str]:
    if isinstance(error, Overloaded):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, NotReady):
        return {"Retry-After": "1"}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}


def create_app(repository: Repository, settings: Settings, metrics: Metrics) -> Application:
    """The ASGI application that serves a repository."""
    return Application(repository, settings, metrics)


def _api(application: Application) -> FastAPI:
    """All but inference, and the description of everything."""
    api = FastAPI(
        title="Gossamer",
        version=__version__,
        description="Models behind the Open Inference Protocol (KServe v2).",
        docs_url=None,  # its page loads scripts of other hosts; there is one of ours
        redoc_url=None,
        redirect_slashes=False,
    )
    repository, settings = application.repository, application.settings

    @api.get("/v2", responses=openapi.answers("Server"))
    async def server() -> Response:
        """What this server is, and what it can do besides the protocol itself."""
        names = extensions.supported(EXTENSIONS, settings)
        return JSONResponse({"name": "gossamer", "version": __version__, "extensions": names})

    @api.get("/v2/health/live", responses=openapi.answers("Live"))
    async def live() -> Response:
        """Whether the process runs."""
        return JSONResponse({"live": True})

    @api.get("/v2/health/ready", responses=openapi.answers("Ready", 503))
    async def ready() -> Response:
        """Whether requests are answered."""
        return JSONResponse({"ready": application.is_ready}, 200 if application.is_ready else 503)

    @api.get("/v2/models/{model}/versions/{version}/stats", responses=openapi.answers("Object", 404, 503))
    @api.get("/v2/models/{model}/stats", responses=openapi.answers("Object", 404, 503))
    @api.get("/v2/models/stats", responses=openapi.answers("Object"))
    async def stats(model: str = "", version: str = "") -> Response:
        """How often models have run, and for how long, as Triton has it."""
        return JSONResponse(extensions.statistics(application.metrics, repository, model, version))

    @api.get("/v2/models/{model}/versions/{version}", responses=openapi.answers("Model", 404, 503))
    @api.get("/v2/models/{model}", responses=openapi.answers("Model", 404, 503))
    async def metadata(model: str, version: str = "") -> Response:
        """The inputs and outputs of a model, and its versions."""
        return JSONResponse(json_form.model_metadata(repository.metadata(model, version)))

    @api.get("/v2/models/{model}/versions/{version}/ready", responses=openapi.answers("Ready", 404, 503))
    @api.get("/v2/models/{model}/ready", responses=openapi.answers("Ready", 404, 503))
    async def model_ready(model: str, version: str = "") -> Response:
        """Whether a model answers requests."""
        is_ready = repository.is_ready(model, version)
        return JSONResponse({"name": model, "ready": is_ready}, 200 if is_ready else 503)

    @api.get("/v2/models/{model}/versions/{version}/config", responses=openapi.answers("Object", 404, 503))
    @api.get("/v2/models/{model}/config", responses=openapi.answers("Object", 404, 503))
    async def config(model: str, version: str = "") -> Response:
        """The configuration of a model, as Triton has it."""
        return JSONResponse(extensions.config(repository.get(model, version)))

    infer_answers = openapi.answers("InferenceResponse", 400, 404, 413, 500, 503, 504, binary=True)

    @api.post("/v2/models/{model}/versions/{version}/infer", responses=infer_answers, openapi_extra=openapi.INFERENCE)
    @api.post("/v2/models/{model}/infer", responses=infer_answers, openapi_extra=openapi.INFERENCE)
    async def infer(model: str, version: str = "") -> Response:
        """Run a model. JSON, and raw tensors behind it if you like."""
        raise HTTPException(404)  # described here, and answered by `Application`

    @api.post("/v2/repository/index", responses=openapi.answers("Index", 400))
    async def index(request: Request) -> Response:
        """The models, all or ({"ready": true}) those that are ready, and why the others are not."""
        only_ready = (await wanted(request)).get("ready") is True
        return JSONResponse(
            [
                {"name": entry.name, "version": entry.version, "state": entry.state, "reason": entry.reason}
                for entry in repository.index()
                if entry.state == "READY" or not only_ready
            ]
        )

    @api.post("/v2/repository/models/{model}/load", responses=openapi.answers("Ready", 400, 403, 404))
    async def load(model: str, request: Request) -> Response:
        """Load a model of the repository, or load it again."""
        await controlled(request)
        await asyncio.to_thread(repository.load, model)
        return JSONResponse({})

    @api.post("/v2/repository/models/{model}/unload", responses=openapi.answers("Ready", 400, 403, 404))
    async def unload(model: str, request: Request) -> Response:
        """Unload a model; requests that it has are answered first."""
        await controlled(request)
        await asyncio.to_thread(repository.unload, model)
        return JSONResponse({})

    @api.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        text, content_type = application.metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=content_type)

    @api.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(openapi.page(api.openapi()))

    async def wanted(request: Request) -> dict[str, Any]:
        """The body, which is a JSON object or nothing."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _SMALL:
                raise TooLarge(f"the body has more than {_SMALL} bytes")
        return json_form.object_of(json_form.parsed(body), "the request") if body else {}

    async def controlled(request: Request) -> None:
        parameters = json_form.object_of((await wanted(request)).get("parameters", {}), "parameters")
        if not settings.repository_control:
            raise Forbidden("clients may not load and unload models here: see --repository-control")
        if set(parameters) - {"unload_dependents"}:
            raise InvalidRequest("models come from the repository as they are: config and files cannot be sent")

    @api.exception_handler(RequestError)
    async def refuse(_: Request, error: RequestError) -> Response:
        return JSONResponse({"error": str(error)}, error.http_status, _error_headers(error))

    @api.exception_handler(HTTPException)
    async def not_here(request: Request, error: HTTPException) -> Response:
        what = f"{request.method} {request.url.path}"
        why = {404: f"there is nothing at {what}", 405: f"{what} is not allowed"}.get(error.status_code, error.detail)
        return JSONResponse({"error": why}, error.status_code, error.headers)

    @api.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": "internal error"}, 500)

    described = api.openapi

    def description() -> dict[str, Any]:
        made: dict[str, Any] = described()
        made["components"] = {"schemas": openapi.SCHEMAS}
        for methods in made["paths"].values():
            for route in methods.values():
                route["responses"].pop("422", None)  # FastAPI's for paths that are no text, which all are
        if settings.tokens:
            made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"token": []}]
        return made

    api.openapi = description
    return api
