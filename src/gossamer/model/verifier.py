"""Does a stored model make sense? What TFLite refuses when it builds an interpreter is raised here, in its order and
with its words; what it finds only later comes back as `Fault` records.

Nothing is allocated in proportion to a size that the file merely claims, and of constants only the offsets of string
tensors and the indices of sparse ones are looked at.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import NO_ARENA, byte_size
from gossamer.errors import ModelError
from gossamer.model.model import NO_OFFSET, Model, code_name, required_bytes, resolved_code
from gossamer.phases import phase
from gossamer.schema.enums import BuiltinOperator, DimensionType, TensorType
from gossamer.schema.options import (
    BuiltinOptions,
    BuiltinOptions2,
    CallOnceOptions,
    IfOptions,
    StablehloCaseOptions,
    StableHLOCompositeOptions,
    StablehloReduceOptions,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
    StablehloSortOptions,
    StablehloWhileOptions,
    UniqueOptions,
    WhileOptions,
)
from gossamer.schema.tables import (
    SCHEMA_VERSION,
    BlockwiseQuantization,
    MultiAxisQuantization,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gossamer.schema.fields import Table
    from gossamer.schema.tables import (
        DimensionMetadata,
        Operator,
        QuantizationParameters,
        SparsityParameters,
        SubGraph,
        Tensor,
    )


_OUTSIDE = -1


class Fault(NamedTuple):
    """Something wrong that TFLite does not notice when it builds an interpreter.

    ``subgraph`` is the index of the subgraph that must not be allocated because of it; ``None`` for what no run
    depends on: a signature or metadata entry that leads nowhere, options that the operator will not look at.
    ``place`` reads like ``subgraphs[0].operators[3].inputs[1]``.
    """

    subgraph: int | None
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@phase("model")
def verify_model(model: Model, *, lenient: bool = False) -> tuple[Fault, ...]:
    """Checks what a model says, its structure being sound. Returns the faults that do not keep TFLite from building it.

    Raises `ModelError`, with TFLite's text first and then the place, for what does. Which operators and versions
    exist is no question for the file: `OpResolver` answers it. Unlike TFLite, a vector is not refused for a quantized
    dimension other than its only one. ``lenient`` reports every contradiction in
    quantization parameters as a fault of no subgraph: TFLite Micro runs such files, `tf.lite` does not.
    """
    if model.version != SCHEMA_VERSION:
        _refuse(
            f"Model provided is schema version {_signed(model.version)} not equal to supported version "
            f"{SCHEMA_VERSION}.",
            "version",
            "no other version was ever published; the file is damaged or not a .tflite model",
        )
    for i, code in enumerate(model.operator_codes):
        if resolved_code(code) == BuiltinOperator.CUSTOM and not code.has("custom_code"):
            _refuse(
                "Operator with CUSTOM builtin_code has no custom_code.", f"operator_codes[{i}]", "its name is missing"
            )
    if not model.subgraphs:
        _refuse("No subgraph in the model.", "subgraphs", "there is nothing to run")
    if not model.has("buffers"):
        _refuse("No buffers in the model.", "buffers", "even a model without constants has buffer 0")
    faults: list[Fault] = []
    sizes = _stored_sizes(model)
    codes = [resolved_code(code) for code in model.operator_codes]
    _verify_sharing(model)
    for i, subgraph in enumerate(model.subgraphs):
        if not subgraph.has("tensors"):
            _refuse(f"Did not get tensors in subgraph {i}.", f"subgraphs[{i}]", "the vector of tensors is missing")
        _verify_tensors(model, subgraph, i, sizes, lenient, faults)
        _verify_operators(model, subgraph, i, codes, faults)
    _verify_names(model, faults)
    return tuple(faults)


def _refuse(text: str, place: str, detail: str) -> NoReturn:
    raise ModelError(f"{text} ({place}: {detail})")


def _signed(value: int) -> int:
    """Unsigned fields as TFLite prints them."""
    return value - (1 << 32) if value >> 31 else value


def _verify_sharing(model: Model) -> None:
    """Refuses a small file that says the same long vector again and again: work is in proportion to what is said."""
    if model.source is None or not model.unchanged:
        return
    size = len(model.source)
    left = size + (1 << 16)
    for subgraph in model.subgraphs:
        left -= len(subgraph.tensors) + len(subgraph.operators)
        if left < 0:
            break
        for operator in subgraph.operators:
            left -= len(operator.inputs) + len(operator.outputs) + len(operator.intermediates)
        for tensor in subgraph.tensors:
            left -= len(tensor.shape) + len(tensor.shape_signature)
            if tensor.quantization is not None:
                left -= tensor.quantization.scale.size
            if tensor.sparsity is not None:
                left -= _length(tensor.sparsity)
            if tensor.type in NO_ARENA and tensor.buffer < len(model.buffers):
                left -= model.buffers[tensor.buffer].data.size >> 2
    for signature in model.signature_defs:
        left -= len(signature.inputs) + len(signature.outputs)
    if left < 0:
        _refuse(
            "The tables of the model share their vectors too often.",
            "subgraphs",
            f"tables, indices, sizes and scales are more than {size + (1 << 16)}, in a file of {size} bytes",
        )


def _length(sparsity: SparsityParameters) -> int:
    vectors: list[Table | None] = []
    for level in sparsity.dim_metadata:
        vectors += (level.array_segments, level.array_indices)
    return len(vectors) + sum([len(_values(vector)) for vector in vectors if _has_values(vector)])


def _stored_sizes(model: Model) -> list[int | None]:
    """Bytes of each buffer's data; ``None`` for buffers without, ``_OUTSIDE`` for data behind the end of the file."""
    stored = len(model.source) if model.source is not None else 0
    sizes: list[int | None] = []
    for buffer in model.buffers:
        if buffer.has("data"):
            sizes.append(buffer.data.size)
        elif buffer.offset > NO_OFFSET:
            sizes.append(buffer.size if buffer.offset + buffer.size <= stored else _OUTSIDE)
        else:
            sizes.append(None)
    return sizes


def _verify_tensors(
    model: Model, subgraph: SubGraph, index: int, sizes: list[int | None], lenient: bool, faults: list[Fault]
) -> None:
    for i, tensor in enumerate(subgraph.tensors):
        kind, number = tensor.type, tensor.buffer
        if not isinstance(kind, TensorType):
            _refuse(
                f"Unsupported data type {kind} in tensor", _place(index, i, tensor), "written by a newer converter?"
            )
        size = None
        if number:
            if number >= len(sizes):
                _refuse(
                    f"Tensor {i} specifies out of range buffer {_signed(number)} (only {len(sizes)} buffers).",
                    _place(index, i, tensor),
                    f"allowed are 0 to {len(sizes) - 1}",
                )
            size = sizes[number]
            if size == _OUTSIDE:
                buffer = model.buffers[number]
                _refuse(
                    f"Constant buffer {number} specified an out of range offset.",
                    f"buffers[{number}]",
                    f"{buffer.size} bytes at byte {buffer.offset}, behind the end of the file; is it cut short?",
                )
        quantization = tensor.quantization
        if quantization is not None and vars(quantization):
            text = _quantization_fault(quantization, tensor.shape, len(subgraph.tensors))
            if text and (lenient or _is_clear_anyway(quantization, tensor.shape)):
                faults.append(Fault(None, _place(index, i, tensor), text))
            elif text:
                text = f"{text} Tensor {i} has invalid quantization parameters."
                _refuse(text, _place(index, i, tensor), f"the shape is {list(tensor.shape)}")
        if size is None:
            if kind not in NO_ARENA:
                _needed(tensor, index, i)
            elif tensor.is_variable:
                _refuse("String variable tensor isn't supported.", _place(index, i, tensor), f"type {kind.name}")
        elif tensor.is_variable or tensor.external_buffer:
            _refuse(
                f"Tensor {i} is a variable tensor with buffer or external buffer. It's not supported now.",
                _place(index, i, tensor),
                f"buffers[{number}] holds {size} bytes, "
                f"is_variable is {tensor.is_variable}, external_buffer is {tensor.external_buffer}",
            )
        elif tensor.sparsity is not None:
            _verify_sparsity(tensor, tensor.sparsity, size, index, i, faults)
        elif kind not in NO_ARENA:
            needed = _needed(tensor, index, i)
            if needed > size:
                _refuse(
                    f"required_bytes <= bytes was not true. Tensor {i} is invalidly specified in schema.",
                    _place(index, i, tensor),
                    f"{kind.name} {list(tensor.shape)} needs {needed} bytes, buffers[{number}] holds {size}",
                )
        elif kind == TensorType.STRING:
            message = _string_fault(model, tensor)
            if message:
                faults.append(Fault(index, _place(index, i, tensor), message))


def _needed(tensor: Tensor, index: int, i: int) -> int:
    shape = tensor.shape
    if not shape or min(shape) > 0:
        elements = prod(shape)
        if elements < 1 << 32:
            return byte_size(tensor.type, elements)
    try:
        return required_bytes(tensor) or 0
    except ModelError as error:
        _refuse(
            f"BytesRequired number of elements overflowed. Tensor {i} is invalidly specified in schema.",
            _place(index, i, tensor),
            str(error),
        )


def _place(index: int, i: int, tensor: Tensor) -> str:
    return f'subgraphs[{index}].tensors[{i}] "{tensor.name}"'


def _quantization_fault(quantization: QuantizationParameters, shape: tuple[int, ...], tensors: int) -> str | None:
    """What TFLite says of scales, zero points and dimensions that contradict each other or the shape."""
    rank = len(shape)
    details = quantization.details
    if isinstance(details, MultiAxisQuantization):
        return _multi_axis_fault(details, rank, tensors)
    scales = quantization.scale.size
    if isinstance(details, BlockwiseQuantization) or not scales:
        return None
    if not quantization.has("zero_point"):
        return "Quantization parameters has non-null scale but null zero_point."
    zero_points = quantization.zero_point.size
    if scales != zero_points:
        return (
            f"QuantizationParam has {zero_points} zero_point values and {scales} scale values. Must have same number."
        )
    dimension = quantization.quantized_dimension
    if dimension < 0 or (rank and dimension >= rank):
        return f"quantized_dimension must be in range [0, {rank}). Was {dimension}."
    if scales != 1 and rank and scales != shape[dimension]:
        return (
            f"num_scales must be 1 for per-layer quantization, or {shape[dimension]} for per-axis quantization, "
            f"but got {scales}."
        )
    return None


def _is_clear_anyway(quantization: QuantizationParameters, shape: tuple[int, ...]) -> bool:
    """Whether a quantized dimension out of range leaves no doubt: a vector with a scale for each element, or one for
    all, has only one dimension. The biases of many microcontroller models say 3."""
    scales = quantization.scale.size
    if quantization.details is not None or len(shape) != 1 or quantization.quantized_dimension < 0:
        return False
    return scales == quantization.zero_point.size and scales in (1, shape[0])


def _multi_axis_fault(details: MultiAxisQuantization, rank: int, tensors: int) -> str | None:
    if not details.has("quantized_dimensions"):
        return "Invalid MultiAxisQuantization parameters."
    for name, number, lowest in (("scales", details.scales, 0), ("zero_points", details.zero_points, -1)):
        if not lowest <= number < tensors:
            optional = ", or -1 if optional" if lowest else ""
            return f"MultiAxisQuantization {name} tensor index must be in range [0, {tensors}){optional}. Was {number}."
    if details.block_size < 0:
        return f"MultiAxisQuantization block_size must be non-negative. Was {details.block_size}."
    if not details.quantized_dimensions:
        return "MultiAxisQuantization must have at least one quantized dimension."
    for n, dimension in enumerate(details.quantized_dimensions):
        if dimension < 0 or (rank and dimension >= rank):
            return (
                f"MultiAxisQuantization quantized_dimensions must be in range [0, {rank}). "
                f"Value {dimension} at index {n} is invalid."
            )
    return None


def _string_fault(model: Model, tensor: Tensor) -> str | None:
    """What is wrong with the buffer of a constant string tensor: count, count + 1 offsets, characters."""
    data = model.tensor_data(tensor)
    if data is None or not data.size:
        return None if 0 in tensor.shape else "the string buffer is empty"
    count = int.from_bytes(data[:4].tobytes(), "little", signed=True) if data.size >= 4 else -1
    header = 4 * (count + 2)
    if count < 0 or header > data.size:
        return f"the string buffer of {data.size} bytes cannot hold {count} strings"
    offsets = np.frombuffer(data[4:header].tobytes(), "<i4").astype(np.int64)
    if offsets[0] != header or offsets[-1] > data.size or (np.diff(offsets) < 0).any():
        return (
            f"the offsets of the string buffer must rise from {header} to at most {data.size}, "
            f"got {offsets[:8].tolist()}{' ...' if offsets.size > 8 else ''}"
        )
    return None


def _verify_sparsity(
    tensor: Tensor, sparsity: SparsityParameters, size: int, index: int, i: int, faults: list[Fault]
) -> None:
    """Refuses sparsity records that TFLite cannot parse; indices that it would follow blindly become a fault."""
    text = f"Tensor {i} has invalid sparsity parameters."
    if not sparsity.has("traversal_order") or not sparsity.has("dim_metadata"):
        _refuse(
            f"Invalid sparsity parameter. {text}",
            _place(index, i, tensor),
            "traversal_order or dim_metadata is missing",
        )
    for n, level in enumerate(sparsity.dim_metadata):
        if not isinstance(level.format, DimensionType):
            _refuse(
                f"The {n}th dimension has unknown type: {level.format}. {text}",
                _place(index, i, tensor),
                "it must be DENSE or SPARSE_CSR",
            )
        if level.format == DimensionType.SPARSE_CSR and not (
            _has_values(level.array_segments) and _has_values(level.array_indices)
        ):
            _refuse(
                f"The {n}th sparse dimension has invalid parameters. {text}",
                _place(index, i, tensor),
                "array_segments or array_indices is missing",
            )
    message = _sparse_fault(tensor, sparsity, size)
    if message:
        faults.append(Fault(index, f"{_place(index, i, tensor)}.sparsity", message))


def _has_values(vector: Table | None) -> bool:
    return vector is not None and vector.has("values")


def _sparse_fault(tensor: Tensor, sparsity: SparsityParameters, size: int) -> str | None:
    """Follows a sparsity record level by level, and compares the elements it leads to with the bytes stored."""
    order, levels, blocks = sparsity.traversal_order, sparsity.dim_metadata, sparsity.block_map
    rank = len(tensor.shape)
    block_rank = len(order) - rank
    if block_rank < 0 or len(levels) != len(order):
        return f"traversal_order has {len(order)} entries, dim_metadata {len(levels)}, the shape {rank}"
    if block_rank and len(blocks) != block_rank:
        return f"block_map has {len(blocks)} entries for {block_rank} block dimensions"
    if sorted(order[:rank]) != list(range(rank)) or sorted(order[rank:]) != list(range(rank, len(order))):
        return (
            f"traversal_order {list(order)} must be a permutation of the dimensions, then one of the block dimensions"
        )
    sizes = [*tensor.shape, *[0] * block_rank]
    for n in range(block_rank):
        length, target = levels[rank + n].dense_size, blocks[n]
        if length <= 0 or not 0 <= target < rank:
            return f"block dimension {n} has size {length} and divides dimension {target}"
        sizes[order[rank + n]] = length
        sizes[target] //= length
    count = 1
    for n, level in enumerate(levels):
        if level.format == DimensionType.DENSE:
            if level.dense_size != sizes[order[n]]:
                return f"dim_metadata[{n}] has {level.dense_size} entries, its dimension {sizes[order[n]]}"
            count *= level.dense_size
            continue
        message = _level_fault(level, count, sizes[order[n]])
        if message:
            return f"dim_metadata[{n}]: {message}"
        count = len(_values(level.array_indices))
    needed = byte_size(tensor.type, count) if tensor.type not in NO_ARENA else 0
    return f"{count} elements need {needed} bytes, the buffer holds {size}" if needed > size else None


def _values(vector: Table | None) -> NDArray[np.int64]:
    values = vector.values  # type: ignore[union-attr]
    return np.asarray(values, np.int64)


def _level_fault(level: DimensionMetadata, rows: int, size: int) -> str | None:
    segments, indices = _values(level.array_segments), _values(level.array_indices)
    if segments.size - 1 != rows:
        return f"array_segments has {segments.size} entries for {rows} rows"
    if segments[0] < 0 or (np.diff(segments) < 0).any() or segments[-1] != indices.size:
        return f"array_segments must rise to {indices.size}, the number of indices"
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        return f"array_indices must be in [0, {size}), got {indices.min()} to {indices.max()}"
    return None


_REQUIRED: dict[int, str] = {
    BuiltinOperator.LSTM: "No valid LSTM builtin options exist",
    BuiltinOperator.STABLEHLO_REDUCE_WINDOW: "Could not get 'stablehlo.reduce_window' operation parameters.",
    BuiltinOperator.STABLEHLO_PAD: "Could not get 'stablehlo.pad' operation parameters.",
    BuiltinOperator.STABLEHLO_COMPOSITE: "Could not get 'stablehlo.composite' operation parameters.",
    BuiltinOperator.STABLEHLO_CASE: "Could not get 'stablehlo.case' operation parameters.",
}
"""Operators that TFLite does not build without their options, and what it says; the others fall back on defaults."""

_CALLED: dict[type[Table], tuple[str, ...]] = {
    IfOptions: ("then_subgraph_index", "else_subgraph_index"),
    WhileOptions: ("cond_subgraph_index", "body_subgraph_index"),
    CallOnceOptions: ("init_subgraph_index",),
    StablehloReduceOptions: ("body_subgraph_index",),
    StablehloReduceWindowOptions: ("body_subgraph_index",),
    StablehloSortOptions: ("comparator_subgraph_index",),
    StablehloWhileOptions: ("cond_subgraph_index", "body_subgraph_index"),
    StablehloScatterOptions: ("update_computation_subgraph_index",),
    StablehloCaseOptions: ("branch_subgraph_indices",),
    StableHLOCompositeOptions: ("decomposition_subgraph_index",),
}
"""The options that name subgraphs."""


@cache
def options_class(code: int) -> type[Table] | None:
    """The options table that bears a builtin operator's name; ``None`` if there is none."""
    return _options_by_name().get(BuiltinOperator(code).name.replace("_", "") + "OPTIONS")


@cache
def _type_fields(options: type[Table]) -> tuple[str, ...]:
    """The options that TFLite converts to one of its own types; that of UNIQUE it only compares."""
    fields = options.FIELDS if options is not UniqueOptions else ()
    return tuple(field.name for field in fields if field.enum is TensorType)


@cache
def _options_by_name() -> dict[str, type[Table]]:
    return {member.__name__.upper(): member for member in (*BuiltinOptions.members, *BuiltinOptions2.members)}


def _verify_operators(model: Model, subgraph: SubGraph, index: int, codes: Sequence[int], faults: list[Fault]) -> None:
    count = len(subgraph.tensors)
    for label, indices in (("inputs", subgraph.inputs), ("outputs", subgraph.outputs)):
        _verify_indices(indices, count, label, index, f"subgraphs[{index}].{label}", faults)
    for i, operator in enumerate(subgraph.operators):
        number = operator.opcode_index
        if number >= len(codes):
            _refuse(
                f"Missing registration for opcode_index {_signed(number)}",
                f"subgraphs[{index}].operators[{i}]",
                f"the model has {len(codes)} operator codes",
            )
        for label, indices in (
            ("inputs", operator.inputs),
            ("outputs", operator.outputs),
            ("intermediates", operator.intermediates),
        ):
            if indices and (min(indices) < -1 or max(indices) >= count):
                _verify_indices(
                    indices, count, f"node {label}", index, f"subgraphs[{index}].operators[{i}].{label}", faults
                )
        code = codes[number]
        if code == BuiltinOperator.CUSTOM:
            _verify_custom_options(model, operator, index, i)
            continue
        options = operator.builtin_options or operator.builtin_options_2
        if code in _REQUIRED and type(options) is not options_class(code):
            _refuse(_REQUIRED[code], f"subgraphs[{index}].operators[{i}]", f"the options are {_class_name(options)}")
        if options is not None:
            _verify_options(model, operator, options, code, index, i, faults)
        if not set(operator.inputs).isdisjoint(operator.outputs) and _has_parameters(code, options):
            both = next(tensor for tensor in operator.inputs if tensor in operator.outputs)
            faults.append(
                Fault(
                    index,
                    f"subgraphs[{index}].operators[{i}] {code_name(model.operator_codes[number])}",
                    f"Tensor {both} is both input {operator.inputs.index(both)} "
                    f"and output {operator.outputs.index(both)}",
                )
            )


def _verify_indices(
    indices: tuple[int, ...], count: int, label: str, subgraph: int, place: str, faults: list[Fault]
) -> None:
    for n, number in enumerate(indices):
        if not -1 <= number < count:
            message = f"Invalid tensor index {number} in {label}. The subgraph has {count} tensors"
            faults.append(Fault(subgraph, f"{place}[{n}]", message))


def _verify_custom_options(model: Model, operator: Operator, index: int, i: int) -> None:
    offset, size = operator.large_custom_options_offset, operator.large_custom_options_size
    stored = len(model.source) if model.source is not None else 0
    if offset > NO_OFFSET and not operator.has("custom_options") and offset + size > stored:
        _refuse(
            f"Custom Option Offset for opcode_index {operator.opcode_index} is out of bound",
            f"subgraphs[{index}].operators[{i}]",
            f"{size} bytes at byte {offset} of a file of {stored}",
        )


def _verify_options(
    model: Model, operator: Operator, options: Table, code: int, index: int, i: int, faults: list[Fault]
) -> None:
    place = f"subgraphs[{index}].operators[{i}]"
    if isinstance(options, StableHLOCompositeOptions):
        for name in ("name", "composite_attributes"):
            if not options.has(name):
                _refuse(f"'stablehlo.composite' missing required option '{name}'.", place, "the field is absent")
    for name in _type_fields(type(options)):  # type: ignore[arg-type] # mypy asks the table, not its class, for a hash
        if not isinstance(getattr(options, name), TensorType):
            _refuse(
                f"Unsupported data type {getattr(options, name)} in tensor",
                f"{place}.{name}",
                "written by a newer converter?",
            )
    if type(options) in _CALLED:
        for name in _CALLED[type(options)]:
            value = getattr(options, name)
            for number in value if isinstance(value, tuple) else (value,):
                if not 0 <= number < len(model.subgraphs):
                    message = f"subgraph {number} does not exist: the model has {len(model.subgraphs)}"
                    faults.append(Fault(index, f"{place}.{name}", message))
    expected = options_class(code) if isinstance(code, BuiltinOperator) else None
    if expected is not None and type(options) is not expected:
        name = code_name(model.operator_codes[operator.opcode_index])
        message = f"{name} has {_class_name(options)} and will use the defaults of {expected.__name__}"
        faults.append(Fault(None, place, message))


def _class_name(options: Table | None) -> str:
    return "missing" if options is None else type(options).__name__


def _has_parameters(code: int, options: Table | None) -> bool:
    """Whether TFLite makes a parameter record for the operator: only then does it compare inputs with outputs."""
    options_type = type(options) if options is not None else None
    if options_type is None and isinstance(code, BuiltinOperator):
        options_type = options_class(code)
    return options_type is not None and bool(options_type.FIELDS)


def _verify_names(model: Model, faults: list[Fault]) -> None:
    """Signatures and metadata: what they point at is needed by nobody until somebody asks for it."""
    for i, signature in enumerate(model.signature_defs):
        if not signature.has("signature_key"):
            _refuse("Missing exported method name for SignatureDef", f"signature_defs[{i}]", "signature_key is absent")
        number = signature.subgraph_index
        if number >= len(model.subgraphs):
            message = f"subgraph {number} does not exist: the model has {len(model.subgraphs)}"
            faults.append(Fault(None, f"signature_defs[{i}].subgraph_index", message))
            continue
        count = len(model.subgraphs[number].tensors)
        for label, entries in (("inputs", signature.inputs), ("outputs", signature.outputs)):
            for n, entry in enumerate(entries):
                if entry.tensor_index >= count:
                    message = f'"{entry.name}" is tensor {entry.tensor_index}, the subgraph has {count} tensors'
                    faults.append(Fault(None, f"signature_defs[{i}].{label}[{n}]", message))
    for i, metadata in enumerate(model.metadata):
        if metadata.buffer >= len(model.buffers):
            message = f'"{metadata.name}" is in buffer {metadata.buffer}, the model has {len(model.buffers)} buffers'
            faults.append(Fault(None, f"metadata[{i}].buffer", message))
