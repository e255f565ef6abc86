"""The messages and services that are spoken over gRPC, as protobuf classes made from the declarations below.

Names, numbers and types are those of the published protocols: the Open Inference Protocol with Triton's extensions for
model repositories, configuration, statistics and streams; ``grpc.health.v1``; ``grpc.reflection``, both versions; and
of ``google.rpc`` what says when to try again. The classes live in a descriptor pool of their own, so that generated
modules of the same protocols (``tritonclient``, ``kserve``, ``grpc_health``) can be in the same process.

A declaration has a line for each message: its name, then ``field=number:type``. ``*type`` is repeated, ``<key,type>`` a
map, and fields with the same ``oneof.`` before their names exclude each other. Types with capitals are messages and
enums; with a dot, those inside a message. A line that begins with ``enum`` has names for numbers; one with ``rpc`` is a
service, whose methods have requests and answers (``*``: streams of them) named after them unless they are given.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from gossamer.records import record

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

INFERENCE = """
ServerLiveRequest
ServerLiveResponse  live=1:bool
ServerReadyRequest
ServerReadyResponse  ready=1:bool
ModelReadyRequest  name=1:string version=2:string
ModelReadyResponse  ready=1:bool
ServerMetadataRequest
ServerMetadataResponse  name=1:string version=2:string extensions=3:*string
ModelMetadataRequest  name=1:string version=2:string
ModelMetadataResponse  name=1:string versions=2:*string platform=3:string inputs=4:*ModelMetadataResponse.TensorMetadata
  outputs=5:*ModelMetadataResponse.TensorMetadata properties=6:<string,string>
ModelMetadataResponse.TensorMetadata  name=1:string datatype=2:string shape=3:*int64

InferParameter  parameter_choice.bool_param=1:bool parameter_choice.int64_param=2:int64
  parameter_choice.string_param=3:string parameter_choice.double_param=4:double parameter_choice.uint64_param=5:uint64
InferTensorContents  bool_contents=1:*bool int_contents=2:*int32 int64_contents=3:*int64 uint_contents=4:*uint32
  uint64_contents=5:*uint64 fp32_contents=6:*float fp64_contents=7:*double bytes_contents=8:*bytes
ModelInferRequest  model_name=1:string model_version=2:string id=3:string parameters=4:<string,InferParameter>
  inputs=5:*ModelInferRequest.InferInputTensor outputs=6:*ModelInferRequest.InferRequestedOutputTensor
  raw_input_contents=7:*bytes
ModelInferRequest.InferInputTensor  name=1:string datatype=2:string shape=3:*int64
  parameters=4:<string,InferParameter> contents=5:InferTensorContents
ModelInferRequest.InferRequestedOutputTensor  name=1:string parameters=2:<string,InferParameter>
ModelInferResponse  model_name=1:string model_version=2:string id=3:string parameters=4:<string,InferParameter>
  outputs=5:*ModelInferResponse.InferOutputTensor raw_output_contents=6:*bytes
ModelInferResponse.InferOutputTensor  name=1:string datatype=2:string shape=3:*int64
  parameters=4:<string,InferParameter> contents=5:InferTensorContents
ModelStreamInferResponse  error_message=1:string infer_response=2:ModelInferResponse

RepositoryIndexRequest  repository_name=1:string ready=2:bool
RepositoryIndexResponse  models=1:*RepositoryIndexResponse.ModelIndex
RepositoryIndexResponse.ModelIndex  name=1:string version=2:string state=3:string reason=4:string
ModelRepositoryParameter  parameter_choice.bool_param=1:bool parameter_choice.int64_param=2:int64
  parameter_choice.string_param=3:string parameter_choice.bytes_param=4:bytes
RepositoryModelLoadRequest  repository_name=1:string model_name=2:string parameters=3:<string,ModelRepositoryParameter>
RepositoryModelLoadResponse  model_name=1:string isLoaded=2:bool
RepositoryModelUnloadRequest  repository_name=1:string model_name=2:string
  parameters=3:<string,ModelRepositoryParameter>
RepositoryModelUnloadResponse  model_name=1:string isUnloaded=2:bool

enum DataType  TYPE_INVALID=0 TYPE_BOOL=1 TYPE_UINT8=2 TYPE_UINT16=3 TYPE_UINT32=4 TYPE_UINT64=5 TYPE_INT8=6
  TYPE_INT16=7 TYPE_INT32=8 TYPE_INT64=9 TYPE_FP16=10 TYPE_FP32=11 TYPE_FP64=12 TYPE_STRING=13 TYPE_BF16=14
enum ModelInstanceGroup.Kind  KIND_AUTO=0 KIND_GPU=1 KIND_CPU=2 KIND_MODEL=3
ModelConfigRequest  name=1:string version=2:string
ModelConfigResponse  config=1:ModelConfig
ModelConfig  name=1:string platform=2:string max_batch_size=4:int32 input=5:*ModelInput output=6:*ModelOutput
  instance_group=7:*ModelInstanceGroup dynamic_batching=11:ModelDynamicBatching parameters=14:<string,ModelParameter>
  backend=17:string
ModelInput  name=1:string data_type=2:DataType dims=4:*int64
ModelOutput  name=1:string data_type=2:DataType dims=3:*int64
ModelInstanceGroup  name=1:string count=2:int32 kind=4:ModelInstanceGroup.Kind
ModelDynamicBatching  preferred_batch_size=1:*int32 max_queue_delay_microseconds=2:uint64
ModelParameter  string_value=1:string

ModelStatisticsRequest  name=1:string version=2:string
ModelStatisticsResponse  model_stats=1:*ModelStatistics
ModelStatistics  name=1:string version=2:string last_inference=3:uint64 inference_count=4:uint64
  execution_count=5:uint64 inference_stats=6:InferStatistics batch_stats=7:*InferBatchStatistics
InferStatistics  success=1:StatisticDuration fail=2:StatisticDuration queue=3:StatisticDuration
  compute_input=4:StatisticDuration compute_infer=5:StatisticDuration compute_output=6:StatisticDuration
  cache_hit=7:StatisticDuration cache_miss=8:StatisticDuration
InferBatchStatistics  batch_size=1:uint64 compute_input=2:StatisticDuration compute_infer=3:StatisticDuration
  compute_output=4:StatisticDuration
StatisticDuration  count=1:uint64 ns=2:uint64

rpc GRPCInferenceService  ServerLive ServerReady ModelReady ServerMetadata ModelMetadata ModelInfer
  ModelStreamInfer(*ModelInferRequest,*ModelStreamInferResponse) ModelConfig ModelStatistics RepositoryIndex
  RepositoryModelLoad RepositoryModelUnload
"""
"""KServe and Triton number the fields of ``RepositoryModelLoad`` and ``RepositoryModelUnload`` differently: KServe's
requests have the model's name where Triton's have that of the repository, and only its answers have fields."""

HEALTH = """
HealthCheckRequest  service=1:string
HealthCheckResponse  status=1:HealthCheckResponse.ServingStatus
enum HealthCheckResponse.ServingStatus  UNKNOWN=0 SERVING=1 NOT_SERVING=2 SERVICE_UNKNOWN=3
rpc Health  Check(HealthCheckRequest,HealthCheckResponse) Watch(HealthCheckRequest,*HealthCheckResponse)
"""

REFLECTION = """
ServerReflectionRequest  host=1:string message_request.file_by_filename=3:string
  message_request.file_containing_symbol=4:string message_request.file_containing_extension=5:ExtensionRequest
  message_request.all_extension_numbers_of_type=6:string message_request.list_services=7:string
ExtensionRequest  containing_type=1:string extension_number=2:int32
ServerReflectionResponse  valid_host=1:string original_request=2:ServerReflectionRequest
  message_response.file_descriptor_response=4:FileDescriptorResponse
  message_response.all_extension_numbers_response=5:ExtensionNumberResponse
  message_response.list_services_response=6:ListServiceResponse message_response.error_response=7:ErrorResponse
FileDescriptorResponse  file_descriptor_proto=1:*bytes
ExtensionNumberResponse  base_type_name=1:string extension_number=2:*int32
ListServiceResponse  service=1:*ServiceResponse
ServiceResponse  name=1:string
ErrorResponse  error_code=1:int32 error_message=2:string
rpc ServerReflection  ServerReflectionInfo(*ServerReflectionRequest,*ServerReflectionResponse)
"""

STATUS = """
Status  code=1:int32 message=2:string details=3:*Any
Any  type_url=1:string value=2:bytes
RetryInfo  retry_delay=1:Duration
Duration  seconds=1:int64 nanos=2:int32
"""
"""``google.rpc.Status``, which clients find in the metadata ``grpc-status-details-bin``, and what may be in it. ``Any``
and ``Duration``, of ``google.protobuf``, stand here as well: on the wire, packages have no names."""

PACKAGES = {
    "inference": INFERENCE,
    "grpc.health.v1": HEALTH,
    "grpc.reflection.v1": REFLECTION,
    "grpc.reflection.v1alpha": REFLECTION,
    "google.rpc": STATUS,
}


@record(frozen=True)
class Method:
    """A method of a service: the classes of its messages, and whether it takes or gives streams of them."""

    name: str
    request: type[Message]
    response: type[Message]
    takes_stream: bool
    gives_stream: bool


@cache
def pool() -> DescriptorPool:
    """The descriptors of everything that is declared here: a file for each package."""
    from google.protobuf.descriptor_pool import DescriptorPool

    made = DescriptorPool()
    for package, text in PACKAGES.items():
        made.AddSerializedFile(_file(package, text))
    return made


@cache
def message(name: str, package: str = "inference") -> type[Message]:
    """The class of a message."""
    from google.protobuf.message_factory import GetMessageClass

    found: type[Message] = GetMessageClass(pool().FindMessageTypeByName(f"{package}.{name}"))
    return found


def services() -> dict[str, tuple[Method, ...]]:
    """All services by their full names."""
    found = {}
    for package in PACKAGES:
        for service in pool().FindFileByName(_file_name(package)).services_by_name.values():
            found[service.full_name] = tuple([_method(package, method) for method in service.methods])
    return found


def _method(package: str, descriptor: Any) -> Method:
    request, response = (message(of.name, package) for of in (descriptor.input_type, descriptor.output_type))
    return Method(descriptor.name, request, response, descriptor.client_streaming, descriptor.server_streaming)


def _file_name(package: str) -> str:
    return f"gossamer/{package.replace('.', '/')}.proto"


def _file(package: str, text: str) -> bytes:
    """A declaration as protobuf has it: a serialized ``FileDescriptorProto``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name=_file_name(package), package=package, syntax="proto3")
    lines = re.sub(r"\n  +", " ", text).split("\n")
    entries = [words for line in lines if (words := line.split())]
    enums = {words[1] for words in entries if words[0] == "enum"}
    made: dict[str, Any] = {}

    def scope(name: str) -> tuple[Any, str]:
        """Where a message or enum belongs, and what it is called there."""
        outer, _, own = name.rpartition(".")
        return made[outer] if outer else file, own

    # Those inside others come after them.
    for words in sorted(entries, key=lambda words: words[words[0] == "enum"].count(".")):
        if words[0] == "enum":
            outer, own = scope(words[1])
            enum = (outer.enum_type if "." in words[1] else file.enum_type).add(name=own)
            for item in words[2:]:
                label, _, number = item.partition("=")
                enum.value.add(name=label, number=int(number))
        elif words[0] != "rpc":
            outer, own = scope(words[0])
            made[words[0]] = (outer.nested_type if "." in words[0] else file.message_type).add(name=own)
    for words in entries:
        if words[0] == "rpc":
            _add_service(file, package, words[1], words[2:])
        elif words[0] != "enum":
            for item in words[1:]:
                _add_field(made[words[0]], f"{package}.{words[0]}", package, enums, item)
    serialized: bytes = file.SerializeToString()
    return serialized


def _add_field(descriptor: Any, full_name: str, package: str, enums: set[str], item: str) -> None:
    """``item``: one field as it is declared."""
    matched = re.fullmatch(r"(?:(\w+)\.)?(\w+)=(\d+):(\*?)(?:<(\w+),([\w.]+)>|([\w.]+))", item)
    if matched is None:
        raise ValueError(f"{full_name}: {item!r} declares no field")
    oneof, name, number, repeated, key, value, single = matched.groups()
    field = descriptor.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if repeated or key else field.LABEL_OPTIONAL
    if key:
        entry_name = f"{_camel(name)[0].upper()}{_camel(name)[1:]}Entry"
        entry = descriptor.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        _add_field(entry, f"{full_name}.{entry_name}", package, enums, f"key=1:{key}")
        _add_field(entry, f"{full_name}.{entry_name}", package, enums, f"value=2:{value}")
        field.type, field.type_name = field.TYPE_MESSAGE, f".{full_name}.{entry_name}"
    elif single[0].islower():
        field.type = getattr(field, f"TYPE_{single.upper()}")
    else:
        field.type, field.type_name = field.TYPE_ENUM if single in enums else field.TYPE_MESSAGE, f".{package}.{single}"
    if oneof:
        names = [found.name for found in descriptor.oneof_decl]
        if oneof not in names:
            descriptor.oneof_decl.add(name=oneof)
            names.append(oneof)
        field.oneof_index = names.index(oneof)


def _add_service(file: Any, package: str, name: str, methods: list[str]) -> None:
    service = file.service.add(name=name)
    for item in methods:
        method, _, types = item.rstrip(")").partition("(")
        request, response = types.split(",") if types else (f"{method}Request", f"{method}Response")
        service.method.add(
            name=method,
            input_type=f".{package}.{request.lstrip('*')}",
            output_type=f".{package}.{response.lstrip('*')}",
            client_streaming=request.startswith("*"),
            server_streaming=response.startswith("*"),
        )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join([word[:1].upper() + word[1:] for word in others])
