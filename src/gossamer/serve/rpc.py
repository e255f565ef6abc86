"""The Open Inference Protocol over gRPC, with Triton's calls for repositories, configuration, statistics and streams,
``grpc.health.v1`` and reflection.

Every request arrives as the bytes of a message, which are read here: so that the token is checked before, a client that
sends slowly is waited for no longer than it may be, and what is no message is an invalid request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.release import __version__
from gossamer.serve import extensions, messages
from gossamer.serve.http import EXTENSIONS, Application, Held
from gossamer.serve.json_form import MANY, deadline, refuse_sequences
from gossamer.serve.logs import say
from gossamer.serve.protocol import (
    DATATYPES,
    Abandoned,
    Array,
    Datatype,
    Forbidden,
    InferenceRequest,
    InferenceResponse,
    InvalidRequest,
    NotReady,
    Overloaded,
    Parameter,
    RequestError,
    TimedOut,
    TooLarge,
    UnknownModel,
    array_from_raw,
    array_from_values,
    checked_datatype,
    checked_shape,
    datatype_of,
    named_once,
    raw_from_array,
)

if TYPE_CHECKING:
    import grpc

SERVICE = "inference.GRPCInferenceService"

STREAM_DEPTH = 16
"""Requests of one stream that are being answered at the same time."""

MAX_FIELDS = 1 << 16
"""Of a request, apart from the elements of tensors: an input of two bytes is a message of a hundred in memory."""

_SMALL = 64 << 10
"""The most bytes of a message that is no request for inference."""

QUIET = 10.0
"""Seconds without a call after which none is expected in the moment in which the server ends."""

WATCHED = 0.5
"""Seconds between two looks at whether the server is ready, for those who watch it."""

_OPEN = (
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    f"/{SERVICE}/ServerLive",
    f"/{SERVICE}/ServerReady",
)
"""What is answered without a token, as over HTTP: whoever watches over the process has none."""

_FIXED = {"bool_contents": 1, "fp32_contents": 4, "fp64_contents": 8}
"""The fields whose elements are on the wire as they are in memory, and their bytes."""

_WIDE = {"int_contents": "i4", "int64_contents": "i8", "uint_contents": "u4", "uint64_contents": "u8"}
"""The fields of integers, which are as long as they need be on the wire, and the dtypes that have them all."""


class Server:
    """A ``grpc.aio`` server that answers for the application's repository, bound to ``port``. It belongs to the event
    loop that runs.

    ``address``: ``HOST:PORT``, with port 0 for one that the system chooses. ``certificate`` and ``key``: PEM, for TLS.
    Raises `OSError` if the address cannot be had.
    """

    def __init__(self, application: Application, address: str, certificate: bytes = b"", key: bytes = b"") -> None:
        import grpc

        settings = application.settings
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.max_body_size),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_metadata_size", settings.max_head_size),
                ("grpc.absolute_max_metadata_size", settings.max_head_size),
                ("grpc.server_handshake_timeout_ms", int(1e3 * settings.head_timeout)),
                # Clients that are gone without a word are found, and those that often ask for a sign of life get it.
                ("grpc.keepalive_time_ms", int(1e3 * settings.keep_alive)),
                ("grpc.keepalive_timeout_ms", int(1e3 * settings.write_timeout)),
                ("grpc.keepalive_permit_without_calls", 1),
                # As over HTTP; clients connect again by themselves.
                ("grpc.max_connection_idle_ms", int(1e3 * settings.keep_alive)),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
                # A port that somebody has is an error, not shared.
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=settings.max_connections,
        )
        service = Service(application)
        for name, methods in messages.services().items():
            handlers = {method.name: service.handler(f"/{name}/{method.name}", method) for method in methods}
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
        self._service = service
        try:
            if certificate:
                credentials = grpc.ssl_server_credentials([(key, certificate)])
                self.port: int = self._server.add_secure_port(address, credentials)
            else:
                self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {address}: {error}") from None

    async def start(self) -> None:
        """Answer calls from now on."""
        await self._server.start()

    async def drain(self, grace: float, timeout: float) -> None:
        """End. Calls are answered that the server has when its application begins to drain, those that are not after
        ``timeout`` seconds are cancelled.

        A server that stops cancels, without a word, what arrives just then. So that nothing does, calls that come
        within ``grace`` seconds are held, and told to go when the server has stopped to accept any.
        """
        if asyncio.get_running_loop().time() - self._service.last_call < QUIET:
            await asyncio.sleep(grace)
        stopping = asyncio.ensure_future(self._server.stop(timeout))
        await asyncio.sleep(0.05)
        self._service.ended.set()
        await stopping


class Call:
    """One call of a method, as long as it lasts."""

    def __init__(self, service: Service, path: str, context: Any) -> None:
        self.service, self.path, self.context = service, path, context
        self.application = service.application
        self.held = Held(self.application)

    async def begin(self) -> None:
        """Raise `Unauthorized`, unless the metadata have a token or none is wanted, and `NotReady` if the server
        ends."""
        if self.path in _OPEN:
            return
        given = dict(self.context.invocation_metadata() or ()).get("authorization", "")
        self.application.check_token(given.encode() if isinstance(given, str) else given)
        if self.application.draining:
            await self.service.ended.wait()
            raise NotReady("the server ends")

    async def read(self) -> bytes | None:
        """The next message, ``None`` behind the last one of a stream."""
        import grpc

        data = await self.context.read()
        self.service.last_call = asyncio.get_running_loop().time()
        return None if data is grpc.aio.EOF else data

    async def body(self) -> bytes:
        """The one message of a call that has one. Raises `TimedOut`, `Overloaded`.

        grpc does not tell how much of it is here: all of it has to be after the body's timeout.
        """
        limit, late = self.application.settings.body_timeout, False
        task: Any = asyncio.current_task()

        def give_up() -> None:
            nonlocal late
            late = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(limit, give_up)
        try:
            data = await self.read()
        except asyncio.CancelledError:
            if late:
                raise TimedOut(f"the request did not come within {limit:g} seconds") from None
            raise
        finally:
            timer.cancel()
        if data is None:
            raise InvalidRequest("the call has no message")
        self.held.take(len(data))
        return data

    @property
    def timeout(self) -> float | None:
        """Seconds until nobody wants the answer."""
        limits = (self.application.settings.timeout, self.context.time_remaining())
        return min([limit for limit in limits if limit is not None], default=None)

    async def refuse(self, error: Exception) -> None:
        """End the call with a status, and what else clients should know of the error."""
        import grpc

        if isinstance(error, grpc.aio.AbortError):
            raise error
        error = told(error, method=self.path)
        code = grpc.StatusCode[error.grpc_code]
        await self.context.abort(code, str(error), retry_metadata(code.value[0], error))


class Service:
    """The methods of all services by their names. Each takes a message and the call, and gives a message; those that
    give a stream take the class of requests and the call, from which they read."""

    def __init__(self, application: Application) -> None:
        self.application, self.repository = application, application.repository
        self.ended = asyncio.Event()
        """Set when no more calls are accepted."""
        self.last_call = -math.inf
        """When the latest message came, in the event loop's time."""

    def handler(self, path: str, method: messages.Method) -> grpc.RpcMethodHandler[Any, Any]:
        """What grpc calls for a method. It reads requests itself, so that for grpc they are streams of bytes."""
        import grpc

        answer = getattr(self, method.name)

        async def single(_: Any, context: Any) -> Any:
            call = Call(self, path, context)
            try:
                await call.begin()
                return await answer(parsed(method.request, await call.body()), call)
            except Exception as error:
                await call.refuse(error)
            finally:
                call.held.release()

        async def stream(_: Any, context: Any) -> AsyncIterator[Any]:
            call = Call(self, path, context)
            try:
                await call.begin()
                async for response in answer(method.request, call):
                    yield response
            except Exception as error:
                await call.refuse(error)
            finally:
                call.held.release()

        write = method.response.SerializeToString
        if method.gives_stream:
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=write)
        return grpc.stream_unary_rpc_method_handler(single, response_serializer=write)

    # -- inference.GRPCInferenceService

    async def ServerLive(self, _: Any, call: Call) -> Any:
        return messages.message("ServerLiveResponse")(live=True)

    async def ServerReady(self, _: Any, call: Call) -> Any:
        return messages.message("ServerReadyResponse")(ready=self.application.is_ready)

    async def ModelReady(self, request: Any, call: Call) -> Any:
        try:
            self.repository.get(request.name, request.version)
        except (UnknownModel, NotReady):
            return messages.message("ModelReadyResponse")(ready=False)
        return messages.message("ModelReadyResponse")(ready=True)

    async def ServerMetadata(self, _: Any, call: Call) -> Any:
        supported = extensions.supported(EXTENSIONS, self.application.settings)
        return messages.message("ServerMetadataResponse")(name="gossamer", version=__version__, extensions=supported)

    async def ModelMetadata(self, request: Any, call: Call) -> Any:
        found = self.repository.metadata(request.name, request.version)
        made = messages.message("ModelMetadataResponse")(
            name=found.name, versions=found.versions, platform=found.platform, properties=dict(found.properties)
        )
        for tensors, side in ((found.inputs, made.inputs), (found.outputs, made.outputs)):
            for tensor in tensors:
                side.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        return made

    async def ModelInfer(self, request: Any, call: Call) -> Any:
        return await self._infer(request, call)

    async def ModelStreamInfer(self, request_type: Any, call: Call) -> AsyncIterator[Any]:
        """Answers come in the order of the requests, of which `STREAM_DEPTH` are under way at a time. What is wrong
        with a request is said in its answer, and the stream goes on; it ends with the server."""
        under_way: asyncio.Queue[asyncio.Task[Any] | None] = asyncio.Queue(STREAM_DEPTH)

        async def read() -> None:
            try:
                while (data := await call.read()) is not None:
                    await under_way.put(asyncio.ensure_future(self._streamed(request_type, data, call)))
            finally:
                await under_way.put(None)

        reader, ending = asyncio.ensure_future(read()), asyncio.ensure_future(self.ended.wait())
        ending.add_done_callback(lambda _: reader.cancel())
        try:
            while (answering := await under_way.get()) is not None:
                yield await answering
            if ending.done():
                raise NotReady("the server ends")
            await reader
        finally:
            ending.cancel()
            reader.cancel()
            while not under_way.empty():
                left = under_way.get_nowait()
                if left is not None:
                    left.cancel()

    async def ModelConfig(self, request: Any, call: Call) -> Any:
        config = extensions.config(self.repository.get(request.name, request.version))
        return _filled("ModelConfigResponse", {"config": config})

    async def ModelStatistics(self, request: Any, call: Call) -> Any:
        found = extensions.statistics(self.application.metrics, self.repository, request.name, request.version)
        return _filled("ModelStatisticsResponse", found)

    async def RepositoryIndex(self, request: Any, call: Call) -> Any:
        made = messages.message("RepositoryIndexResponse")()
        for entry in self.repository.index():
            if entry.state == "READY" or not request.ready:
                made.models.add(name=entry.name, version=entry.version, state=entry.state, reason=entry.reason)
        return made

    async def RepositoryModelLoad(self, request: Any, call: Call) -> Any:
        name = self._controlled(request)
        await asyncio.to_thread(self.repository.load, name)
        return messages.message("RepositoryModelLoadResponse")(model_name=name, isLoaded=True)

    async def RepositoryModelUnload(self, request: Any, call: Call) -> Any:
        name = self._controlled(request)
        await asyncio.to_thread(self.repository.unload, name)
        return messages.message("RepositoryModelUnloadResponse")(model_name=name, isUnloaded=True)

    # -- grpc.health.v1.Health

    async def Check(self, request: Any, call: Call) -> Any:
        if request.service and request.service not in messages.services():
            raise UnknownModel(f"there is no service {request.service!r}")
        status = "SERVING" if self.application.is_ready else "NOT_SERVING"
        return messages.message("HealthCheckResponse", "grpc.health.v1")(status=status)

    async def Watch(self, request_type: Any, call: Call) -> AsyncIterator[Any]:
        """The state now, and each other one that follows, until the server ends."""
        request = parsed(request_type, await call.body())
        is_known = not request.service or request.service in messages.services()
        response_type = messages.message("HealthCheckResponse", "grpc.health.v1")
        told = ""
        while True:
            status = "SERVING" if self.application.is_ready else "NOT_SERVING"
            if not is_known:
                status = "SERVICE_UNKNOWN"
            if status != told:
                told = status
                yield response_type(status=status)
            if self.ended.is_set():
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.ended.wait(), WATCHED)

    # -- grpc.reflection

    async def ServerReflectionInfo(self, request_type: Any, call: Call) -> AsyncIterator[Any]:
        response_type = messages.message("ServerReflectionResponse", request_type.DESCRIPTOR.file.package)
        while (data := await call.read()) is not None:
            request = parsed(request_type, data)
            response = response_type(valid_host=request.host, original_request=request)
            asked = request.WhichOneof("message_request")
            if asked == "list_services":
                for name in messages.services():
                    response.list_services_response.service.add(name=name)
            elif asked in ("file_by_filename", "file_containing_symbol"):
                wanted = getattr(request, asked)
                file = _file(wanted) if asked == "file_by_filename" else _file_of_symbol(wanted)
                if file is None:
                    response.error_response.error_code = 5  # NOT_FOUND
                    response.error_response.error_message = f"there is no {wanted!r}"
                else:
                    response.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)
            else:
                response.error_response.error_code = 12  # UNIMPLEMENTED
                response.error_response.error_message = "these messages have no extensions"
            yield response

    # -- how

    async def _infer(self, message: Any, call: Call) -> Any:
        """The answer to a request for inference, which is counted and logged. Raises `RequestError`."""
        started = time.perf_counter()
        application = self.application
        application.metrics.arrived()
        name, version = message.model_name, message.model_version
        status = "OK"
        error: RequestError | None = None
        try:
            timeout = call.timeout
            if not message.raw_input_contents and any(map(_is_long, message.inputs)):
                request, is_raw = await application.read_aside(partial(read_request, message, timeout), timeout)
            else:
                request, is_raw = read_request(message, timeout)
            response = await asyncio.wrap_future(self.repository.infer(request))
            name, version = response.model_name, response.model_version
            if not is_raw and any(array.size > MANY for array in response.outputs.values()):
                return await application.aside(partial(write_response, response, is_raw))
            return write_response(response, is_raw)
        except asyncio.CancelledError:
            status, error = Abandoned.grpc_code, Abandoned("the client went away, or its deadline has passed")
            raise
        except Exception as caught:
            error = told(caught, id=message.id or None, model=name)
            status = error.grpc_code
            raise error from (None if error is caught else caught)
        finally:
            if error is not None:
                name, version = application.known(name, version)
            seconds = time.perf_counter() - started
            application.metrics.answered("grpc", name, version, status, seconds)
            is_ours = error is not None and error.http_status >= 500
            if application.settings.log_requests or is_ours:
                say(
                    "request",
                    logging.WARNING if is_ours else logging.INFO,
                    model=name,
                    version=version,
                    protocol="grpc",
                    status=status,
                    id=message.id[:200] or None,
                    ms=round(1e3 * seconds, 3),
                    error=str(error) if error else None,
                )

    async def _streamed(self, request_type: Any, data: bytes, call: Call) -> Any:
        made = messages.message("ModelStreamInferResponse")()
        held = Held(self.application)
        try:
            if self.application.draining:
                raise NotReady("the server ends")
            held.take(len(data))
            request = parsed(request_type, data)
            made.infer_response.id, made.infer_response.model_name = request.id, request.model_name
            made.infer_response.CopyFrom(await self._infer(request, call))
            if request.parameters["triton_enable_empty_final_response"].bool_param:
                made.infer_response.parameters["triton_final_response"].bool_param = True
        except RequestError as error:
            made.error_message = str(error)
        finally:
            held.release()
        return made

    def _controlled(self, request: Any) -> str:
        """The model that is to be loaded or unloaded. Raises `Forbidden`, `InvalidRequest`."""
        if not self.application.settings.repository_control:
            raise Forbidden("clients may not load and unload models here: see --repository-control")
        if set(request.parameters) - {"unload_dependents"}:
            raise InvalidRequest("models come from the repository as they are: config and files cannot be sent")
        name: str = request.model_name or request.repository_name  # KServe's clients have the model's name there
        return name


def parsed(message_type: Any, data: bytes) -> Any:
    """The message that these bytes are. Raises `InvalidRequest`, and `TooLarge` before it takes far more memory than
    its bytes."""
    from google.protobuf.message import DecodeError

    if message_type.DESCRIPTOR.name == "ModelInferRequest":
        _check_fields(data)
    elif len(data) > _SMALL:
        raise TooLarge(f"the message has {len(data)} bytes; {_SMALL} are allowed")
    try:
        return message_type.FromString(data)
    except DecodeError:
        raise InvalidRequest(f"the request is no message {message_type.DESCRIPTOR.full_name}") from None


def _check_fields(data: bytes) -> None:
    """Count the fields of a ``ModelInferRequest`` and of the messages in it, but not of the contents of tensors. Raises
    `TooLarge`. What is malformed is left to the parser, which goes no further either."""
    left, at, end = MAX_FIELDS, 0, len(data)
    inner: list[tuple[int, int]] = []
    is_inner = False
    try:
        while at < end or inner:
            if at >= end:
                (at, end), is_inner = inner.pop(), True
                continue
            left -= 1
            tag, at = _read_varint(data, at)
            kind = tag & 7
            if kind == 0:
                _, at = _read_varint(data, at)
            elif kind == 2:
                size, at = _read_varint(data, at)
                if not is_inner and tag >> 3 in _MESSAGES:
                    inner.append((at, min(at + size, len(data))))
                elif is_inner and tag >> 3 == _SHAPE:
                    left -= min(size, len(data) - at)
                at += size
            else:
                at += {1: 8, 5: 4}.get(kind, 0)
            if left < 0:
                raise TooLarge(f"the request has more than {MAX_FIELDS} fields")
    except IndexError:
        return


_MESSAGES = (4, 5, 6)
"""The fields of a ``ModelInferRequest`` that are messages: parameters, inputs, outputs."""


_SHAPE = 3
"""The field of an input that is its shape, a byte or more for each size."""


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 128:
        return value, at + 1
    value &= 127
    for place in range(1, 10):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise IndexError("a varint has ten bytes at most")


def told(error: Exception, **fields: Any) -> RequestError:
    """What a client is told of an error: of a bug no more than that it is one. ``fields``: of the event that is logged
    for it."""
    if isinstance(error, RequestError):
        return error
    say("bug", logging.ERROR, error, **fields)
    return RequestError("internal error")


def retry_metadata(code: int, error: RequestError) -> tuple[tuple[str, str | bytes], ...]:
    """When to try again, for errors that go away: for grpc's own retries, and as ``google.rpc.RetryInfo``."""
    if not isinstance(error, Overloaded | NotReady):
        return ()
    seconds = error.retry_after if isinstance(error, Overloaded) else 1.0
    status = messages.message("Status", "google.rpc")(code=code, message=str(error))
    info = messages.message("RetryInfo", "google.rpc")()
    info.retry_delay.seconds, info.retry_delay.nanos = int(seconds), int(seconds % 1 * 1e9)
    status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString())
    return (
        ("grpc-status-details-bin", status.SerializeToString()),
        ("grpc-retry-pushback-ms", str(math.ceil(1e3 * seconds))),
    )


def read_request(message: Any, timeout: float | None) -> tuple[InferenceRequest, bool]:
    """The request that a ``ModelInferRequest`` holds, and whether its tensors are raw. Raises `InvalidRequest`.

    ``timeout``: seconds until the deadline; the request's parameter ``timeout`` can only be earlier.
    """
    parameters = _parameters(message.parameters)
    refuse_sequences(parameters)
    raw = message.raw_input_contents
    is_raw = len(raw) > 0 or not message.inputs
    if is_raw and len(raw) != len(message.inputs):
        raise InvalidRequest(
            f"raw_input_contents must have the contents of each of {len(message.inputs)} inputs, got {len(raw)}"
        )
    inputs: dict[str, Array] = {}
    for position, tensor in enumerate(message.inputs):
        name = tensor.name
        if name in inputs:
            named_once((name, name), "input")
        _refuse_extensions(f'input "{name}"', tensor.parameters)
        if not is_raw:
            inputs[name] = _from_contents(name, tensor)
        elif tensor.contents.ListFields():
            raise InvalidRequest(f'input "{name}" has contents, and the request raw_input_contents: only one may be')
        else:
            inputs[name] = array_from_raw(name, tensor.datatype, tensor.shape, raw[position])
    outputs = []
    for output in message.outputs:
        _refuse_extensions(f'output "{output.name}"', output.parameters)
        outputs.append(output.name)
    named_once(outputs, "output")
    request = InferenceRequest(
        message.model_name,
        inputs,
        message.model_version,
        message.id,
        outputs or None,
        parameters,
        deadline(parameters, timeout),
    )
    return request, is_raw


def write_response(response: InferenceResponse, is_raw: bool) -> Any:
    """A ``ModelInferResponse``. Tensors are raw if asked for, and if one has a datatype that is always raw."""
    made = messages.message("ModelInferResponse")(
        model_name=response.model_name, model_version=response.model_version, id=response.id
    )
    for name, value in response.parameters.items():
        _set_parameter(made.parameters[name], value)
    kinds = [DATATYPES[datatype_of(array.dtype) or ""] for array in response.outputs.values()]
    is_raw = is_raw or any(kind.contents is None for kind in kinds)
    for kind, (name, array) in zip(kinds, response.outputs.items(), strict=True):
        tensor = made.outputs.add(name=name, datatype=kind.name, shape=array.shape)
        if is_raw:
            made.raw_output_contents.append(raw_from_array(array))
        else:
            _fill_contents(tensor.contents, kind, array)
    return made


def _is_long(tensor: Any) -> bool:
    """Whether the elements of an input are so many that taking them from their fields is no work for an event loop."""
    return any(len(getattr(tensor.contents, field)) > MANY for field in _WIDE)


def _from_contents(name: str, tensor: Any) -> Array:
    """A tensor whose elements are in the field for its datatype."""
    kind, shape = checked_datatype(name, tensor.datatype), checked_shape(name, tensor.shape)
    if kind.contents is None:
        raise InvalidRequest(f'tensor "{name}": {kind.name} is sent as raw_input_contents')
    others = [field.name for field, _ in tensor.contents.ListFields() if field.name != kind.contents]
    if others:
        raise InvalidRequest(f'tensor "{name}": elements of {kind.name} are in {kind.contents}, got {others[0]}')
    values = getattr(tensor.contents, kind.contents)
    count = math.prod(shape)
    if len(values) != count:
        raise InvalidRequest(
            f'tensor "{name}": shape {list(shape)} has {count} elements; its contents have {len(values)}'
        )
    width = _FIXED.get(kind.contents)
    if width is not None and count:
        tensor.contents.DiscardUnknownFields()
        return array_from_raw(name, kind.name, shape, memoryview(tensor.contents.SerializeToString())[-width * count :])
    if kind.size == 0 or not count:
        return array_from_values(name, kind.name, shape, list(values))
    wide = np.empty(count, _WIDE[kind.contents])
    for at in range(0, count, MANY):  # in pieces: one call would let no other thread run
        wide[at : at + MANY] = values[at : at + MANY]
    array: Array = wide.astype(kind.dtype)
    if array.dtype != wide.dtype and (array != wide).any():
        raise InvalidRequest(f'tensor "{name}": {wide[array != wide][0]} does not fit {kind.name}')
    return array.reshape(shape)


def _fill_contents(contents: Any, kind: Datatype, array: Array) -> None:
    """`_from_contents` backwards."""
    field = kind.contents or ""
    if field in _FIXED:
        number = contents.DESCRIPTOR.fields_by_name[field].number
        contents.MergeFromString(bytes([number << 3 | 2]) + _varint(array.nbytes) + raw_from_array(array))
    else:
        flat, written = array.reshape(-1), getattr(contents, field)
        for at in range(0, flat.size, MANY):
            written.extend(flat[at : at + MANY].tolist())


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def _parameters(given: Mapping[str, Any]) -> dict[str, Parameter]:
    return {name: getattr(value, value.WhichOneof("parameter_choice") or "bool_param") for name, value in given.items()}


def _set_parameter(parameter: Any, value: Parameter) -> None:
    field = {bool: "bool_param", int: "int64_param", float: "double_param"}.get(type(value), "string_param")
    setattr(parameter, field, value)


def _refuse_extensions(what: str, parameters: Mapping[str, Any]) -> None:
    """Raise `InvalidRequest` for parameters of an input or output that would change what is computed."""
    for name in ("shared_memory_region", "classification"):
        if name in parameters:
            raise InvalidRequest(
                f"{what}: this server has no {name.partition('_region')[0].replace('_', ' ')} extension"
            )


def _file(name: str) -> Any:
    """The descriptor of a file, ``None`` if there is none."""
    try:
        return messages.pool().FindFileByName(name)
    except KeyError:
        return None


def _file_of_symbol(symbol: str) -> Any:
    """The descriptor of the file with a message, an enum, a service, or a method of one."""
    methods = {f"{name}.{method.name}": name for name, found in messages.services().items() for method in found}
    try:
        return messages.pool().FindFileContainingSymbol(methods.get(symbol, symbol))
    except KeyError:
        return None


def _filled(name: str, values: Mapping[str, Any]) -> Any:
    from google.protobuf.json_format import ParseDict

    return ParseDict(values, messages.message(name)())
