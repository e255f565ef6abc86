"""The Open Inference Protocol over gRPC, against a server that runs."""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.serve import protocol
from gossamer.serve.protocol import InferenceResponse, NotReady, Overloaded, TimedOut, raw_from_array
from tests.serve.held import PATIENCE, HeldRepository, doubled
from tests.serve.models import double_net

grpc = pytest.importorskip("grpc", reason="needs the extra serve")
from gossamer.serve import messages, rpc  # noqa: E402
from gossamer.serve.messages import message  # noqa: E402

pytestmark = pytest.mark.engines

SERVICE = "inference.GRPCInferenceService"
TLS = Path(__file__).parent / "tls"


class Dialled:
    """A channel to a server: ``client("ServerLive")`` is the answer, with a message that has these fields."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.methods = {
            f"{name}/{method.name}": method for name, methods in messages.services().items() for method in methods
        }

    def method(self, name: str) -> Any:
        name = name if "/" in name else f"{SERVICE}/{name}"
        kind = "stream_stream" if self.methods[name].gives_stream else "unary_unary"
        return getattr(self.channel, kind)(f"/{name}", None, self.methods[name].response.FromString)

    def request(self, name: str, /, **fields: Any) -> bytes:
        name = name if "/" in name else f"{SERVICE}/{name}"
        return self.methods[name].request(**fields).SerializeToString()

    def __call__(self, name: str, /, metadata: Any = (), timeout: float = PATIENCE, **fields: Any) -> Any:
        return self.method(name)(self.request(name, **fields), timeout=timeout, metadata=metadata)

    def infer(self, data: bytes, timeout: float = PATIENCE, **options: Any) -> Any:
        return self.method("ModelInfer")(data, timeout=timeout, **options)

    def refused(self, data: bytes, **options: Any) -> tuple[str, str]:
        """The name of the status and the details that a request is answered with."""
        with pytest.raises(grpc.RpcError) as caught:
            self.infer(data, **options)
        return caught.value.code().name, caught.value.details()

    def stream(self, requests: Iterator[bytes] | list[bytes]) -> Any:
        return self.method("ModelStreamInfer")(iter(requests), timeout=PATIENCE)


Dial = Callable[..., Dialled]


@pytest.fixture
def dial(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Any]) -> Iterator[Dial]:
    """A client of a server of its own: ``dial(repository, timeout=1)``. At its end nobody calls any more."""
    monkeypatch.setattr("gossamer.serve.server.GRACE", 0.0)
    with contextlib.ExitStack() as stack:

        def start(repository: Any, credentials: Any = None, **settings: Any) -> Dialled:
            server = serve(repository, grpc_port=0, http_port=None, **settings)
            address = f"localhost:{server.grpc_port}" if credentials else f"127.0.0.1:{server.grpc_port}"
            channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
            return Dialled(stack.enter_context(channel))

        yield start


def request(raw: bool = True, x: Any = (1, 2.5), **fields: Any) -> Any:
    """A request to the model m, whose output y is twice x."""
    made = message("ModelInferRequest")(**{"model_name": "m", "id": "7", **fields})
    tensor = made.inputs.add(name="x", datatype="FP32", shape=[len(x)])
    if raw:
        made.raw_input_contents.append(np.float32(x).tobytes())
    else:
        tensor.contents.fp32_contents.extend(x)
    return made


REQUEST = request().SerializeToString()


# -- messages


def flat(descriptors: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, tuple[Any, ...]]]]:
    for descriptor in descriptors:
        name = f"{prefix}{descriptor.name}"
        yield name, {f.name: (f.number, f.type, f.label, f.type_name) for f in descriptor.field}
        yield from flat(descriptor.nested_type, f"{name}.")


def stored(descriptor: Any) -> dict[str, dict[str, tuple[Any, ...]]]:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto()
    descriptor.CopyToProto(file)
    return dict(flat(file.message_type))


ONLY_OURS = {
    ("ModelMetadataResponse", "properties"),  # of the Open Inference Protocol, which Triton does not have
    ("RepositoryModelLoadResponse", "model_name"),  # KServe's
    ("RepositoryModelLoadResponse", "isLoaded"),
    ("RepositoryModelUnloadResponse", "model_name"),
    ("RepositoryModelUnloadResponse", "isUnloaded"),
}


def test_messages_have_the_names_numbers_and_types_of_triton() -> None:
    from tritonclient.grpc import model_config_pb2, service_pb2

    theirs = stored(service_pb2.DESCRIPTOR) | stored(model_config_pb2.DESCRIPTOR)
    ours = stored(messages.pool().FindFileByName("gossamer/inference.proto"))
    extra = {
        (name, field)
        for name, fields in ours.items()
        for field, described in fields.items()
        if theirs.get(name, {}).get(field) != described
    }
    assert {(name, field) for name, field in extra if not name.endswith("PropertiesEntry")} == ONLY_OURS
    kinds = messages.pool().FindEnumTypeByName("inference.DataType").values_by_name
    assert {name: value.number for name, value in kinds.items()} == dict(model_config_pb2.DataType.items())
    their_methods = {
        method.name: method for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods
    }
    for method in messages.services()[SERVICE]:
        descriptor = their_methods[method.name]
        assert descriptor.input_type.full_name == method.request.DESCRIPTOR.full_name
        assert descriptor.output_type.full_name == method.response.DESCRIPTOR.full_name
        assert descriptor.server_streaming == method.gives_stream


def test_what_both_pools_write_is_equal() -> None:
    """Generated modules of the same package, in the same process."""
    from tritonclient.grpc import service_pb2

    assert service_pb2.ModelInferRequest.FromString(REQUEST).SerializeToString(deterministic=True) == REQUEST
    assert service_pb2.DESCRIPTOR.pool is not messages.pool()


def test_a_declaration_that_is_none() -> None:
    with pytest.raises(ValueError, match="'name=x:string' declares no field"):
        messages._file("p", "M  name=x:string\n")


# -- requests and answers


@pytest.mark.parametrize("name", [name for name, kind in protocol.DATATYPES.items() if kind.contents])
def test_typed_contents_come_back(name: str) -> None:
    kind = protocol.DATATYPES[name]
    values = [b"\xff\xfe", b"", "é".encode()] if name == "BYTES" else [0, 1, 1]
    made = message("ModelInferRequest")(model_name="m")
    tensor = made.inputs.add(name="x", datatype=name, shape=[3, 1])
    getattr(tensor.contents, kind.contents).extend(values)
    read, is_raw = rpc.read_request(type(made).FromString(made.SerializeToString()), None)
    assert not is_raw
    array = read.inputs["x"]
    assert (array.dtype, array.shape, array.ravel().tolist()) == (kind.dtype, (3, 1), values)
    written = rpc.write_response(InferenceResponse("m", "1", "", {"y": array}), False)
    assert not written.raw_output_contents
    assert list(getattr(written.outputs[0].contents, kind.contents)) == values
    assert [field.name for field, _ in written.outputs[0].contents.ListFields()] == [kind.contents]


@pytest.mark.parametrize("name", list(protocol.DATATYPES))
@pytest.mark.parametrize("shape", [[2], [0, 3], []])
def test_raw_contents_come_back(name: str, shape: list[int]) -> None:
    kind = protocol.DATATYPES[name]
    count = int(np.prod(shape))
    array = np.empty(count, object) if name == "BYTES" else np.ones(count).astype(kind.dtype)
    if name == "BYTES":
        array[:] = b"\0\xff"
    array = array.reshape(shape)
    made = message("ModelInferRequest")(model_name="m", raw_input_contents=[raw_from_array(array)])
    made.inputs.add(name="x", datatype=name, shape=shape)
    read, is_raw = rpc.read_request(made, None)
    assert is_raw
    assert read.inputs["x"].tolist() == array.tolist()
    written = rpc.write_response(InferenceResponse("m", "1", "", {"y": read.inputs["x"]}), True)
    assert written.raw_output_contents[0] == made.raw_input_contents[0]
    assert (list(written.outputs[0].shape), written.outputs[0].datatype) == (shape, name)


def test_limits_of_integers_and_what_floats_hold() -> None:
    for name, values in (
        ("INT8", [-128, 127]),
        ("UINT8", [0, 255]),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("UINT64", [2**64 - 1]),
        ("FP64", [float("inf"), 5e-324, -0.0]),
    ):
        made = message("ModelInferRequest")(model_name="m")
        tensor = made.inputs.add(name="x", datatype=name, shape=[len(values)])
        getattr(tensor.contents, protocol.DATATYPES[name].contents).extend(values)
        assert rpc.read_request(made, None)[0].inputs["x"].tolist() == values


def test_half_floats_make_all_outputs_raw() -> None:
    outputs = {"a": np.float32([1]), "b": np.array([2], ml_dtypes.bfloat16), "c": np.float16([3])}
    written = rpc.write_response(InferenceResponse("m", "1", "", outputs), False)
    assert [output.datatype for output in written.outputs] == ["FP32", "BF16", "FP16"]
    assert list(written.raw_output_contents) == [raw_from_array(array) for array in outputs.values()]
    assert not any(output.HasField("contents") for output in written.outputs)


def test_parameters() -> None:
    given = {"signature": "s", "n": 3, "big": 2**63, "flag": True, "real": 0.5}
    made = request()
    for name, value, field in zip(given, given.values(), ("string", "int64", "uint64", "bool", "double"), strict=True):
        setattr(made.parameters[name], f"{field}_param", value)
    assert rpc.read_request(made, None)[0].parameters == given
    answer = InferenceResponse("m", "1", "", {}, {"s": "t", "i": -1, "f": 0.5, "b": False})
    written = rpc.write_response(answer, True)
    assert {name: rpc._parameters(written.parameters)[name] for name in answer.parameters} == answer.parameters


def changed(change: Callable[[Any], None], raw: bool = True) -> bytes:
    made = request(raw)
    change(made)
    return made.SerializeToString()


def set_field(**fields: Any) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, list):
                del getattr(made.inputs[0], name)[:]
                getattr(made.inputs[0], name).extend(value)
            else:
                setattr(made.inputs[0], name, value)

    return change


def parameter(where: str, name: str) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        of = {"request": made, "input": made.inputs[0], "output": None}[where] or made.outputs.add(name="y")
        of.parameters[name].int64_param = 2

    return change


REFUSED = {
    "no contents": (changed(lambda made: made.ClearField("raw_input_contents")), "has 2 elements; its contents have 0"),
    "too many contents": (changed(lambda made: made.raw_input_contents.append(b"")), "each of 1 inputs, got 2"),
    "both contents": (changed(lambda made: made.inputs[0].contents.int_contents.append(1)), "only one may be"),
    "too few bytes": (changed(set_field(shape=[3])), "takes 12 bytes; its contents have 8"),
    "too few values": (changed(set_field(shape=[3]), False), "has 3 elements; its contents have 2"),
    "negative size": (changed(set_field(shape=[-1])), "sizes are integers from 0"),
    "huge size": (changed(set_field(shape=[2**62])), "sizes are integers from 0"),
    "huge shape": (changed(set_field(shape=[2**31 - 1] * 8)), "its contents have 8"),
    "huge typed shape": (changed(set_field(shape=[2**31 - 1] * 8), False), "its contents have 2"),
    "huge and empty": (changed(set_field(shape=[2**31 - 1] * 8 + [0]), False), "its contents have 2"),
    "too many sizes": (changed(set_field(shape=[1] * 1000)), "at most 32"),
    "no datatype": (changed(set_field(datatype="")), "datatype must be one of BOOL"),
    "unknown datatype": (changed(set_field(datatype="fp32")), "got 'fp32'"),
    "another field": (changed(set_field(datatype="FP64"), False), "elements of FP64 are in fp64_contents, got fp32"),
    "FP16 typed": (changed(set_field(datatype="FP16"), False), "FP16 is sent as raw_input_contents"),
    "input twice": (
        changed(lambda made: made.inputs.add().CopyFrom(made.inputs[0]), False),
        'input "x" is given twice',
    ),
    "output twice": (
        changed(lambda made: (made.outputs.add(name="y"), made.outputs.add(name="y"))),
        'output "y" is given twice',
    ),
    "timeout": (
        changed(lambda made: made.parameters["timeout"].CopyFrom(message("InferParameter")(string_param="1"))),
        "timeout",
    ),
    "sequence": (changed(parameter("request", "sequence_id")), "no sequence extension"),
    "shared memory": (changed(parameter("input", "shared_memory_region")), "no shared memory extension"),
    "classification": (changed(parameter("output", "classification")), "no classification extension"),
    "no message": (b"\xff" * 9, "no message inference.ModelInferRequest"),
    "half a message": (REQUEST[:-1], "no message inference.ModelInferRequest"),
    "text that is not UTF-8": (b"\x0a\x02\xff\xfe", "no message inference.ModelInferRequest"),
}


def test_what_is_wrong_with_requests(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready)
    for what, (data, text) in REFUSED.items():
        code, details = client.refused(data)
        assert code == "INVALID_ARGUMENT", what
        assert text in details, what
    assert client.infer(REQUEST).id == "7"


def test_narrow_integers_have_limits() -> None:
    for name, value in (("INT8", 128), ("INT8", -129), ("UINT8", 256), ("INT16", 1 << 15), ("UINT16", 1 << 16)):
        made = message("ModelInferRequest")(model_name="m")
        tensor = made.inputs.add(name="x", datatype=name, shape=[2])
        getattr(tensor.contents, protocol.DATATYPES[name].contents).extend([1, value])
        with pytest.raises(protocol.InvalidRequest, match=f"{value} does not fit {name}"):
            rpc.read_request(made, None)


def test_unknown_fields_are_passed_over(dial: Dial, ready: HeldRepository) -> None:
    typed = request(raw=False)
    typed.inputs[0].contents.MergeFromString(b"\x82\x7d\x03abc")  # a field 2000 of three bytes
    answer = dial(ready).infer(typed.SerializeToString() + b"\x82\x7d\x03abc")
    assert list(answer.outputs[0].contents.fp32_contents) == [2, 5]


# -- calls


def test_what_a_server_tells_of_itself(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready)
    assert client("ServerLive").live
    assert client("ServerReady").ready
    assert client("ModelReady", name="m").ready
    assert client("ModelReady", name="m", version="1").ready
    assert not client("ModelReady", name="m", version="2").ready
    assert not client("ModelReady", name="n").ready
    server = client("ServerMetadata")
    assert server.name == "gossamer"
    assert "binary_tensor_data" in server.extensions
    assert "model_repository" not in server.extensions
    told = client("ModelMetadata", name="m")
    assert (told.name, list(told.versions), told.platform) == ("m", ["1"], "test")
    assert [(t.name, t.datatype, list(t.shape)) for t in told.inputs] == [("x", "FP32", [-1])]
    assert [(t.name, t.datatype, list(t.shape)) for t in told.outputs] == [("y", "FP32", [-1])]


def test_inference(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready)
    answer = client.infer(REQUEST)
    assert (answer.model_name, answer.model_version, answer.id) == ("m", "1", "7")
    assert [(t.name, t.datatype, list(t.shape)) for t in answer.outputs] == [("y", "FP32", [2])]
    assert list(answer.raw_output_contents) == [np.float32([2, 5]).tobytes()]
    typed = client.infer(request(raw=False).SerializeToString())
    assert list(typed.outputs[0].contents.fp32_contents) == [2, 5]
    assert not typed.raw_output_contents


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (protocol.UnknownModel("none"), "NOT_FOUND"),
        (protocol.TooLarge("large"), "RESOURCE_EXHAUSTED"),
        (TimedOut("late"), "DEADLINE_EXCEEDED"),
        (protocol.InferenceFailed("failed"), "INTERNAL"),
        (NotReady("loading"), "UNAVAILABLE"),
        (Overloaded("full", 2.5), "RESOURCE_EXHAUSTED"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_errors_have_their_codes(dial: Dial, ready: HeldRepository, error: Exception, code: str) -> None:
    def refuse(_: Any) -> Any:
        raise error

    ready.at_once = refuse
    with pytest.raises(grpc.RpcError) as caught:
        dial(ready).infer(REQUEST)
    assert (caught.value.code().name, caught.value.details()) == (code, str(error))
    trailing = dict(caught.value.trailing_metadata())
    if not isinstance(error, Overloaded | NotReady):
        assert "grpc-status-details-bin" not in trailing
        return
    seconds = 2.5 if isinstance(error, Overloaded) else 1.0
    assert float(trailing["grpc-retry-pushback-ms"]) == 1e3 * seconds
    status = message("Status", "google.rpc").FromString(trailing["grpc-status-details-bin"])
    assert (status.code, status.message) == (caught.value.code().value[0], str(error))
    assert status.details[0].type_url == "type.googleapis.com/google.rpc.RetryInfo"
    delay = message("RetryInfo", "google.rpc").FromString(status.details[0].value).retry_delay
    assert delay.seconds + delay.nanos / 1e9 == seconds


def test_a_bug_of_ours_tells_clients_nothing(
    dial: Dial, ready: HeldRepository, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any) -> Any:
        raise KeyError("secret")

    ready.at_once = fail
    assert dial(ready).refused(REQUEST) == ("INTERNAL", "internal error")
    assert "secret" in caplog.text


def test_the_deadline_of_the_call_is_that_of_the_request(dial: Dial, repository: HeldRepository) -> None:
    client = dial(repository)
    future = client.method("ModelInfer").future(REQUEST, timeout=PATIENCE)
    asked, answer = repository.next()
    assert asked.deadline is not None
    assert asked.deadline < time.monotonic() + 60  # the server's, which is earlier
    answer.set_result(doubled(asked))
    assert future.result().id == "7"
    future = client.method("ModelInfer").future(REQUEST, timeout=20)
    asked, answer = repository.next()
    assert asked.deadline is not None
    assert asked.deadline < time.monotonic() + 30  # gRPC rounds up
    answer.set_result(doubled(asked))
    future.result()
    timed = request()
    timed.parameters["timeout"].int64_param = 3_000_000
    future = client.method("ModelInfer").future(timed.SerializeToString(), timeout=20)
    asked, answer = repository.next()
    assert asked.deadline is not None
    assert asked.deadline < time.monotonic() + 3
    answer.set_exception(TimedOut("late"))
    assert future.exception().code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_call_that_is_cancelled_cancels_its_request(dial: Dial, repository: HeldRepository) -> None:
    future = dial(repository).method("ModelInfer").future(REQUEST, timeout=PATIENCE)
    _, answer = repository.next()
    gone = threading.Event()
    answer.add_done_callback(lambda _: gone.set())
    future.cancel()
    assert gone.wait(PATIENCE)
    assert answer.cancelled()


def test_messages_have_a_limit(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, max_body_size=10_000)
    assert client.refused(request(x=np.zeros(3000)).SerializeToString())[0] == "RESOURCE_EXHAUSTED"
    assert client.infer(request(x=np.zeros(2000)).SerializeToString()).id == "7"


def test_what_a_compressed_message_inflates_to_has_a_limit(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, max_body_size=100_000)
    big = request(x=np.zeros(1 << 20)).SerializeToString()
    assert client.refused(big, compression=grpc.Compression.Gzip)[0] == "RESOURCE_EXHAUSTED"
    small = request(x=np.zeros(1 << 14)).SerializeToString()
    assert client.infer(small, compression=grpc.Compression.Gzip).outputs[0].shape == [1 << 14]


@pytest.mark.parametrize(
    "data",
    [
        b"\x2a\x00" * (1 << 17),  # inputs
        b"\x32\x00" * (1 << 17),  # outputs
        b"".join(b"\x22\x06\x0a\x04%04d" % number for number in range(1 << 17)),  # parameters
        b"\x2a\x80\x80\x10" + b"\x22\x00" * (1 << 17),  # parameters of an input
        b"\x2a\x84\x80\x10" + b"\x1a\x80\x80\x10" + b"\1" * (1 << 18),  # sizes of an input
    ],
)
def test_fields_have_a_limit(dial: Dial, ready: HeldRepository, data: bytes) -> None:
    client = dial(ready)
    assert client.refused(data) == ("RESOURCE_EXHAUSTED", f"the request has more than {rpc.MAX_FIELDS} fields")
    (answer,) = client.stream([data])
    assert "fields" in answer.error_message


def test_other_messages_are_small(dial: Dial, ready: HeldRepository) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        dial(ready)("ModelReady", name="m" * 100_000)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_all_bodies_together_have_a_limit(dial: Dial, repository: HeldRepository) -> None:
    client = dial(repository, max_held_size=1000)
    data = request(x=np.zeros(150)).SerializeToString()
    future = client.method("ModelInfer").future(data, timeout=PATIENCE)
    asked, answer = repository.next()
    assert client.refused(data)[0] == "RESOURCE_EXHAUSTED"
    answer.set_result(doubled(asked))
    assert future.result().id == "7"
    future = client.method("ModelInfer").future(data, timeout=PATIENCE)
    asked, answer = repository.next()
    answer.set_result(doubled(asked))
    assert future.result().id == "7"


def test_a_message_that_does_not_come(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, body_timeout=0.05)
    never = threading.Event()

    def requests() -> Iterator[bytes]:
        never.wait(PATIENCE)
        yield REQUEST

    call = client.channel.stream_unary(f"/{SERVICE}/ModelInfer", None, None)
    future = call.future(requests(), timeout=PATIENCE)
    assert future.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "0.05 seconds" in future.details()
    never.set()


def test_a_call_without_a_message(dial: Dial, ready: HeldRepository) -> None:
    call = dial(ready).channel.stream_unary(f"/{SERVICE}/ModelInfer", None, None)
    assert call.future(iter(()), timeout=PATIENCE).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_token_is_wanted_for_all_but_health(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, tokens=("secret", "other"))
    assert client("ServerLive").live
    assert client("ServerReady").ready
    assert client("grpc.health.v1.Health/Check").status == 1
    for metadata in ((), (("authorization", "Bearer wrong"),), (("authorization", "secret"),)):
        code, details = client.refused(REQUEST, metadata=metadata)
        assert (code, "token" in details) == ("UNAUTHENTICATED", True)
        with pytest.raises(grpc.RpcError) as caught:
            next(client.method("ModelStreamInfer")(iter([REQUEST]), metadata=metadata, timeout=PATIENCE))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    for token in ("secret", "other"):
        assert client.infer(REQUEST, metadata=(("authorization", f"Bearer {token}"),)).id == "7"


def test_tls(dial: Dial, ready: HeldRepository) -> None:
    certificate = TLS / "certificate.pem"
    credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
    client = dial(ready, credentials, tls_certificate=str(certificate), tls_key=str(TLS / "key.pem"))
    assert client.infer(REQUEST).id == "7"


def test_a_port_that_somebody_has(serve: Callable[..., Any], ready: HeldRepository) -> None:
    from gossamer.serve.server import ServerError

    port = serve(ready, grpc_port=0, http_port=None).grpc_port
    with pytest.raises((OSError, ServerError), match=str(port)):
        serve(ready, grpc_port=port, http_port=None)


def test_streams(dial: Dial, repository: HeldRepository) -> None:
    """Several requests of a stream are under way at a time, and are answered in their order."""
    client = dial(repository)
    requests = [request(id=str(number), x=[number]).SerializeToString() for number in range(4)]
    requests[2:2] = [request(id="bad", model_name="n").SerializeToString(), b"\xff\xff"]
    answers = client.stream(requests)
    asked = [repository.next() for _ in range(4)]
    for wanted, answer in reversed(asked):
        answer.set_result(doubled(wanted))
    got = list(answers)
    assert [answer.infer_response.id for answer in got] == ["0", "1", "bad", "", "2", "3"]
    assert [bool(answer.error_message) for answer in got] == [False, False, True, True, False, False]
    assert "no model 'n'" in got[2].error_message
    assert np.frombuffer(got[5].infer_response.raw_output_contents[0], np.float32).tolist() == [6]


def test_a_stream_that_is_cancelled_cancels_its_requests(dial: Dial, repository: HeldRepository) -> None:
    more = threading.Event()

    def requests() -> Iterator[bytes]:
        yield REQUEST
        more.wait(PATIENCE)

    answers = dial(repository).stream(requests())
    _, answer = repository.next()
    gone = threading.Event()
    answer.add_done_callback(lambda _: gone.set())
    answers.cancel()
    assert gone.wait(PATIENCE)
    more.set()


def test_the_final_response_is_marked_if_asked_for(dial: Dial, ready: HeldRepository) -> None:
    made = request()
    made.parameters["triton_enable_empty_final_response"].bool_param = True
    (answer,) = dial(ready).stream([made.SerializeToString()])
    assert answer.infer_response.parameters["triton_final_response"].bool_param


def test_the_repository_extension(dial: Dial, ready: HeldRepository) -> None:
    setting = message("ModelRepositoryParameter")
    client = dial(ready, repository_control=True)
    assert "model_repository" in client("ServerMetadata").extensions
    rows = [(m.name, m.version, m.state, m.reason) for m in client("RepositoryIndex").models]
    assert rows == [("m", "1", "READY", ""), ("bad", "2", "UNAVAILABLE", "no model")]
    assert [m.name for m in client("RepositoryIndex", ready=True).models] == ["m"]
    client("RepositoryModelLoad", model_name="m")
    client("RepositoryModelUnload", model_name="m", parameters={"unload_dependents": setting(bool_param=True)})
    loaded = client("RepositoryModelLoad", repository_name="k")  # where KServe's clients have the model's name
    assert (loaded.model_name, loaded.isLoaded) == ("k", True)
    assert ready.calls == [("load", "m"), ("unload", "m"), ("load", "k")]
    with pytest.raises(grpc.RpcError) as caught:
        client("RepositoryModelLoad", model_name="m", parameters={"config": setting(string_param="{}")})
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_clients_may_not_load_models_unless_they_are_let(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready)
    for name in ("RepositoryModelLoad", "RepositoryModelUnload"):
        with pytest.raises(grpc.RpcError) as caught:
            client(name, model_name="m")
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert ready.calls == []


def test_health(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready)
    for service in ("", SERVICE, "grpc.health.v1.Health"):
        assert client("grpc.health.v1.Health/Check", service=service).status == 1
    with pytest.raises(grpc.RpcError) as caught:
        client("grpc.health.v1.Health/Check", service="other")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    ready.ready = False
    assert client("grpc.health.v1.Health/Check").status == 2
    assert not client("ServerReady").ready
    assert client("ServerLive").live


def test_many_integers_hold_nobody_up(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken from their fields, and put into them, in a thread, piece by piece."""
    repository = HeldRepository()
    repository.at_once = lambda asked: InferenceResponse("m", "1", asked.id, {"y": asked.inputs["x"]})
    threads: list[str] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            threads.append(threading.current_thread().name)
            return function(*arguments)

        return call

    for name in ("read_request", "write_response"):
        monkeypatch.setattr(rpc, name, noted(getattr(rpc, name)))
    client = dial(repository)
    values = np.arange(-50_000, 50_000).reshape(2, -1)
    for count in (2, values.size):
        made = message("ModelInferRequest")(model_name="m", id="7")
        sent = values.ravel()[:count].tolist()
        made.inputs.add(name="x", datatype="INT32", shape=[count]).contents.int_contents.extend(sent)
        assert list(client.infer(made.SerializeToString()).outputs[0].contents.int_contents) == sent
    assert threads[0] == threads[1] == "gossamer-serve"
    assert "gossamer-serve" not in threads[2:]


def test_health_is_watched(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, tokens=("secret",))
    name = "grpc.health.v1.Health/Watch"
    states = client.method(name)(iter([client.request(name)]), timeout=PATIENCE)
    assert next(states).status == 1
    ready.ready = False
    assert next(states).status == 2
    ready.ready = True
    assert next(states).status == 1
    states.cancel()
    unknown = client.method(name)(iter([client.request(name, service="other")]), timeout=PATIENCE)
    assert next(unknown).status == 3
    unknown.cancel()


def test_who_watches_is_told_of_the_end(ready: HeldRepository) -> None:
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    server = Server(Settings(http_port=None, grpc_port=0))
    name = "grpc.health.v1.Health/Watch"
    with contextlib.ExitStack() as running:
        running.enter_context(server.running(ready))
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            client = Dialled(channel)
            states = client.method(name)(iter([client.request(name)]), timeout=PATIENCE)
            assert next(states).status == 1
            running.close()
            assert [state.status for state in states] == [2]


def test_the_end_waits_for_nobody_where_nobody_calls(monkeypatch: pytest.MonkeyPatch, ready: HeldRepository) -> None:
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    monkeypatch.setattr("gossamer.serve.server.GRACE", PATIENCE)
    began = time.monotonic()
    with Server(Settings(http_port=None, grpc_port=0)).running(ready):
        pass
    assert time.monotonic() - began < PATIENCE


def test_an_idle_connection_is_ended(dial: Dial, ready: HeldRepository) -> None:
    client = dial(ready, keep_alive=0.1)
    states: queue.Queue[Any] = queue.Queue()
    client.channel.subscribe(states.put)
    assert client("ServerLive").live
    seen = []
    while grpc.ChannelConnectivity.READY not in seen or seen[-1] is grpc.ChannelConnectivity.READY:
        seen.append(states.get(timeout=PATIENCE))
    assert seen[-1] is grpc.ChannelConnectivity.IDLE
    assert client.infer(REQUEST).id == "7"


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(dial: Dial, ready: HeldRepository, version: str) -> None:
    client = dial(ready)
    name = f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    asked = [
        {"list_services": ""},
        {"file_containing_symbol": f"{SERVICE}.ModelInfer"},
        {"file_by_filename": "gossamer/inference.proto"},
        {"file_containing_symbol": "nothing"},
        {"all_extension_numbers_of_type": "x"},
    ]
    requests = [client.request(name, **fields) for fields in asked]
    services, by_symbol, by_name, nothing, extensions = client.method(name)(iter(requests), timeout=PATIENCE)
    assert SERVICE in [service.name for service in services.list_services_response.service]
    (file,) = by_symbol.file_descriptor_response.file_descriptor_proto
    assert [file] == list(by_name.file_descriptor_response.file_descriptor_proto)
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    assert FileDescriptorProto.FromString(file).package == "inference"
    assert (nothing.error_response.error_code, extensions.error_response.error_code) == (5, 12)


def test_methods_that_there_are_not(dial: Dial, ready: HeldRepository) -> None:
    for name in ("SystemSharedMemoryStatus", "TraceSetting", "Nothing"):
        with pytest.raises(grpc.RpcError) as caught:
            dial(ready).channel.unary_unary(f"/{SERVICE}/{name}", None, None)(b"", timeout=PATIENCE)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_requests_are_counted_and_logged(
    dial: Dial, ready: HeldRepository, serve: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gossamer.serve")
    client = dial(ready)
    client.infer(REQUEST)
    client.refused(request(model_name="made up").SerializeToString())
    lines = [record.fields for record in caplog.records if getattr(record, "event", "") == "request"]  # type: ignore[attr-defined]
    assert [(line["model"], line["status"], line["id"], line["protocol"]) for line in lines] == [
        ("m", "OK", "7", "grpc"),
        ("", "NOT_FOUND", "7", "grpc"),
    ]
    stats = client("ModelStatistics", name="m").model_stats
    assert [(each.name, each.version, each.inference_stats.success.count) for each in stats] == [("m", "1", 1)]


def test_a_server_that_ends_answers_what_it_has(serve: Callable[..., Any], repository: HeldRepository) -> None:
    server = serve(repository, grpc_port=0, http_port=None)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        client = Dialled(channel)
        future: Any = client.method("ModelInfer").future(REQUEST, timeout=PATIENCE)
        asked, answer = repository.next()
        server._stop._loop.call_soon_threadsafe(server.stop)
        while (code := client.method("ServerMetadata").future(b"", timeout=PATIENCE).code()) is grpc.StatusCode.OK:
            pass
        assert code is grpc.StatusCode.UNAVAILABLE
        answer.set_result(doubled(asked))
        assert future.result().id == "7"


def test_a_stream_ends_with_the_server(serve: Callable[..., Any], repository: HeldRepository) -> None:
    """What it has is answered, and it is not waited for the next request."""
    server, more = serve(repository, grpc_port=0, http_port=None), threading.Event()

    def requests() -> Iterator[bytes]:
        yield REQUEST
        more.wait(PATIENCE)

    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        answers = Dialled(channel).stream(requests())
        asked, answer = repository.next()
        server._stop._loop.call_soon_threadsafe(server.stop)
        answer.set_result(doubled(asked))
        assert next(answers).infer_response.id == "7"
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        more.set()


def test_calls_have_a_limit(dial: Dial, repository: HeldRepository) -> None:
    client = dial(repository, max_connections=1)
    future = client.method("ModelInfer").future(REQUEST, timeout=PATIENCE)
    asked, answer = repository.next()
    assert client.refused(REQUEST)[0] == "RESOURCE_EXHAUSTED"
    answer.set_result(doubled(asked))
    assert future.result().id == "7"


# -- what is told of models


def test_the_configuration_of_a_model_with_batches() -> None:
    from gossamer.serve import extensions
    from gossamer.serve.model import ModelOptions, ServedModel
    from gossamer.serve.rows import decide

    options = ModelOptions(workers=3, max_batch_size=8, batch_delay=0.002)
    model = ServedModel(bytes(double_net()), "m", options=options)
    decide(model, model.default)
    config = extensions.config(model)
    assert config["max_batch_size"] == 8
    assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
    assert config["dynamic_batching"] == {"max_queue_delay_microseconds": 2000}
    assert config["instance_group"][0]["count"] == 3
    assert rpc._filled("ModelConfigResponse", {"config": config}).config.input[0].data_type == 11
    alone = extensions.config(ServedModel(bytes(double_net()), "m"))
    assert (alone["max_batch_size"], alone["input"][0]["dims"]) == (0, [-1, 4])
    assert "dynamic_batching" not in alone


# -- noise


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Requests in which some bytes are others, missing, doubled, or taken from another request."""
    chance = random.Random(seed)
    typed = request(raw=False)
    typed.parameters["a"].string_param = "b"
    typed.outputs.add(name="y")
    strings = message("ModelInferRequest")(model_name="m", raw_input_contents=[b"\2\0\0\0hi\1\0\0\0!"])
    strings.inputs.add(name="x", datatype="BYTES", shape=[2])
    seeds = [REQUEST, typed.SerializeToString(), strings.SerializeToString()]
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) + 1)
            kind = chance.randrange(5)
            if kind == 0 and at < len(data):
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at:at] = chance.randbytes(chance.randint(1, 8))
            elif kind == 2:
                del data[at : at + chance.randint(1, 8)]
            elif kind == 3:
                other = chance.choice(seeds)
                begin = chance.randrange(len(other))
                data[at:at] = other[begin : begin + chance.randint(1, 40)]
            elif at < len(data):
                data[at] = chance.choice((0, 1, 127, 128, 255))
        yield bytes(data)


def test_noise_ends_in_answers_or_errors(dial: Dial, tmp_path: Path) -> None:
    from gossamer.serve.model import ModelOptions
    from gossamer.serve.repository import Repository

    (tmp_path / "m.tflite").write_bytes(bytes(double_net(shape=("n",))))
    repository = Repository([tmp_path], ModelOptions(workers=1), watch=False)
    repository.start()
    client = dial(repository, log_requests=False)
    call = client.method("ModelInfer")
    codes: Counter[str] = Counter()
    data = list(mutants(2000, 7))
    for begin in range(0, len(data), 100):
        sent = [call.future(each, timeout=PATIENCE) for each in data[begin : begin + 100]]
        codes.update([future.code().name for future in sent])
    assert set(codes) == {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}, codes
    assert codes["OK"] > 20
    assert client.infer(REQUEST).id == "7"
