"""Serialized tf.train.Example and tf.train.SequenceExample messages as tensors.

A feature that must be there and is not, one of another type, and messages that cannot be read are errors. Features
are read for a whole batch: for each one the values of every example, ``None`` where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.convert.wire import Message, bytes_, float_, int64, mapping, message, messages, read, string
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import ConvertError
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, require_rank
from gossamer.flex.kernels.arrays import zero_of
from gossamer.flex.objects import strings
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Array as FieldArray


class BytesList(Message):
    value: tuple[bytes, ...] = bytes_.repeated(1)


class FloatList(Message):
    value: FieldArray = float_.array(1)


class Int64List(Message):
    value: FieldArray = int64.array(1)


class Feature(Message):
    bytes_list: BytesList | None = message(1, "BytesList", oneof="kind")
    float_list: FloatList | None = message(2, "FloatList", oneof="kind")
    int64_list: Int64List | None = message(3, "Int64List", oneof="kind")


class Features(Message):
    feature: Mapping[str, Feature] = mapping(1, string, "Feature")


class Example(Message):
    features: Features | None = message(1, "Features")


class FeatureList(Message):
    feature: tuple[Feature, ...] = messages(1, "Feature")


class FeatureLists(Message):
    feature_list: Mapping[str, FeatureList] = mapping(1, string, "FeatureList")


class SequenceExample(Message):
    context: Features | None = message(1, "Features")
    feature_lists: FeatureLists | None = message(2, "FeatureLists")


_KINDS = {
    TensorType.STRING: "bytes_list",
    TensorType.FLOAT32: "float_list",
    TensorType.INT64: "int64_list",
}

Values = list["Array | None"]


def _values(call: Call, feature: Feature, type: TensorType, key: str) -> Array | None:
    """The values of a feature, ``None`` if it is empty."""
    kind = feature.which("kind")
    if kind is None:
        return None
    wanted = _KINDS[type]
    call.require(kind == wanted, f"feature {key!r} is a {kind}, not the {wanted} of {type_name(type)}")
    found = getattr(feature, kind).value
    return strings(found, (len(found),)) if type == TensorType.STRING else found


def _read(call: Call, cls: Any, serialized: bytes) -> Any:
    try:
        return read(cls, serialized)
    except ConvertError as error:
        call.fail(str(error))


class _Dense(NamedTuple):
    """A feature of one shape (``None``: rows of any number) in every example, or the default."""

    key: str
    type: TensorType
    shape: tuple[int | None, ...]
    default: Array


class _Batch:
    """The messages of a batch, as the features of each by name."""

    def __init__(self, call: Call, features: Sequence[Features | None], is_single: bool) -> None:
        self._call = call
        self._maps = [one.feature if one is not None else {} for one in features]
        self._is_single = is_single

    def read(self, key: str, type: TensorType) -> Values:
        """The values of a feature in each example."""
        found: Values = []
        for one in self._maps:
            try:
                feature = one.get(key)
            except ConvertError as error:
                self._call.fail(str(error))
            found.append(None if feature is None else _values(self._call, feature, type, key))
        return found

    def sparse(self, key: str, type: TensorType) -> tuple[Array, Array, Array]:
        """Indices, values and shape of the values of all examples."""
        rows = [row if row is not None else np.zeros(0) for row in self.read(key, type)]
        lengths = np.array([len(row) for row in rows], np.int64)
        within = np.concatenate([np.arange(length) for length in lengths]) if len(rows) else np.zeros(0, np.int64)
        widest = int(lengths.max(initial=0))
        if self._is_single:
            return within.reshape(-1, 1), joined(rows, type), np.array([widest])
        indices = np.stack([np.repeat(np.arange(len(rows)), lengths), within], 1)
        return indices, joined(rows, type), np.array([len(rows), widest])

    def ragged(self, key: str, type: TensorType) -> tuple[Array, Array]:
        """Values and row splits of all examples; one alone has no splits."""
        rows = [row if row is not None else np.zeros(0) for row in self.read(key, type)]
        splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return joined(rows, type), np.zeros(0, np.int64) if self._is_single else splits

    def dense(self, feature: _Dense) -> Array:
        """[examples, *shape] of a feature; of rows of any number as many as the longest has, with defaults behind."""
        call, rows = self._call, self.read(feature.key, feature.type)
        key, shape = feature.key, feature.shape
        if shape and shape[0] is None:
            return self._padded(feature, rows)
        sizes = [size if size is not None else -1 for size in shape]
        call.require(min(sizes, default=0) >= 0, f"the shape {sizes} of feature {key!r} is not known")
        whole = checked_shape(call, [len(rows), *sizes])
        result = np.full(whole, zero_of(numpy_dtype(feature.type)), numpy_dtype(feature.type))
        count = int(np.prod(whole[1:]))
        for n, row in enumerate(rows):
            if row is None:
                call.require(feature.default.size, f"feature {key!r} is missing in example {n}, and has no default")
                call.require(
                    feature.default.shape == whole[1:],
                    f"the default of feature {key!r} must have shape {sizes}, got {list(feature.default.shape)}",
                )
                result[n, ...] = feature.default
            else:
                call.require(len(row) == count, f"feature {key!r} has {len(row)} values in example {n}, not {count}")
                result[n, ...] = row.reshape(whole[1:])
        return result[0] if self._is_single else result

    def _padded(self, feature: _Dense, rows: Values) -> Array:
        call = self._call
        inner = [size if size is not None else -1 for size in feature.shape[1:]]
        call.require(min(inner, default=1) > 0, f"the shape {inner} behind the rows of {feature.key!r} is not known")
        step = int(np.prod(checked_shape(call, inner)))
        dtype = numpy_dtype(feature.type)
        lengths = [0 if row is None else len(row) for row in rows]
        for n, length in enumerate(lengths):
            call.require(
                length % step == 0, f"feature {feature.key!r} has {length} values in example {n}, not by {step}"
            )
        longest = max(lengths, default=0) // step
        whole = checked_shape(call, [len(rows), longest, *inner])
        call.require(feature.default.size <= 1, f"the default of feature {feature.key!r} must be one value")
        filler = feature.default.reshape(-1)[0] if feature.default.size and not self._is_single else zero_of(dtype)
        result = np.full(whole, filler, dtype)
        for n, row in enumerate(rows):
            if row is not None:
                result[n, : len(row) // step] = row.reshape(-1, *inner)
        return result[0] if self._is_single else result


def joined(rows: Sequence[Array], type: TensorType) -> Array:
    """The rows one behind the other."""
    dtype = numpy_dtype(type)
    found = np.empty(sum(map(len, rows)), dtype)
    at = 0
    for row in rows:
        found[at : at + len(row)] = row
        at += len(row)
    return found


def _texts(keys: Any) -> list[str]:
    """Names of features, in tensors or attributes."""
    if isinstance(keys, np.ndarray):
        return [key.decode(errors="surrogateescape") for key in keys.reshape(-1).tolist()]
    return [text for key in keys for text in (_texts(key) if isinstance(key, np.ndarray) else [key])]


def _require_count(call: Call, name: str, keys: Sequence[str], types: Sequence[Any]) -> None:
    call.require(len(keys) == len(types), f"there are {len(keys)} {name} keys for {len(types)} types")


def _dense_features(
    call: Call, prefix: str, keys: Sequence[str], types: str, defaults: Sequence[Array]
) -> list[_Dense]:
    found = call.attributes.types(types)
    shapes = call.attributes.shapes(f"{prefix}dense_shapes")
    _require_count(call, "dense", keys, found)
    call.require(
        len(shapes) == len(keys) == len(defaults), f"there are {len(shapes)} dense_shapes for {len(keys)} keys"
    )
    call.require(all(shape is not None for shape in shapes), "dense_shapes must have a rank")
    return [
        _Dense(key, type, shape or (), default)
        for key, type, shape, default in zip(keys, found, shapes, defaults, strict=True)
    ]


def _examples(call: Call, serialized: Array) -> _Batch:
    require_rank(call, "serialized", serialized, 0, 1)
    found = []
    for content in serialized.reshape(-1).tolist():
        call.poll()
        found.append(_read(call, Example, content).features)
    return _Batch(call, found, serialized.ndim == 0)


def _sparse_results(call: Call, batch: _Batch, keys: Sequence[str], types: str) -> tuple[list[Any], ...]:
    found = call.attributes.types(types)
    _require_count(call, "sparse", keys, found)
    results = [batch.sparse(key, type) for key, type in zip(keys, found, strict=True)]
    return tuple([[one[n] for one in results] for n in range(3)])


@kernel("ParseExample")
def parse_example(
    call: Call, serialized: Array, names: Array, sparse_keys: Any, dense_keys: Any, dense_defaults: list[Array]
) -> Any:
    """Sparse features as indices, values and shapes, then dense ones."""
    batch = _examples(call, serialized)
    dense = _dense_features(call, "", _texts(dense_keys), "Tdense", dense_defaults)
    return *_sparse_results(call, batch, _texts(sparse_keys), "sparse_types"), [batch.dense(one) for one in dense]


@kernel("ParseExampleV2")
def parse_example_v2(
    call: Call,
    serialized: Array,
    names: Array,
    sparse_keys: Array,
    dense_keys: Array,
    ragged_keys: Array,
    dense_defaults: list[Array],
) -> Any:
    """The same, and ragged features as values and row splits."""
    batch = _examples(call, serialized)
    dense = _dense_features(call, "", _texts(dense_keys), "Tdense", dense_defaults)
    types = call.attributes.types("ragged_value_types")
    _require_count(call, "ragged", _texts(ragged_keys), types)
    ragged = [batch.ragged(key, type) for key, type in zip(_texts(ragged_keys), types, strict=True)]
    sparse = _sparse_results(call, batch, _texts(sparse_keys), "sparse_types")
    return *sparse, [batch.dense(one) for one in dense], [one[0] for one in ragged], [one[1] for one in ragged]


@kernel("ParseSingleExample")
def parse_single_example(call: Call, serialized: Array, dense_defaults: list[Array]) -> Any:
    """`parse_example` of one example, with names among the attributes."""
    require_rank(call, "serialized", serialized, 0)
    batch = _examples(call, serialized)
    dense = _dense_features(call, "", call.attributes.texts("dense_keys"), "Tdense", dense_defaults)
    sparse = _sparse_results(call, batch, call.attributes.texts("sparse_keys"), "sparse_types")
    return *sparse, [batch.dense(one) for one in dense]


class _Sequences:
    """The messages of a batch of sequences: for each the lists of features by name."""

    def __init__(self, call: Call, serialized: Array, is_single: bool) -> None:
        self._call = call
        examples = [_read(call, SequenceExample, content) for content in serialized.reshape(-1).tolist()]
        self.context = _Batch(call, [one.context for one in examples], is_single)
        self._lists = [one.feature_lists.feature_list if one.feature_lists is not None else {} for one in examples]
        self._is_single = is_single

    def read(self, key: str, type: TensorType) -> list[Values | None]:
        """The values of each step of each example, ``None`` where the list is missing."""
        found: list[Values | None] = []
        for one in self._lists:
            self._call.poll()
            try:
                steps = one.get(key)
            except ConvertError as error:
                self._call.fail(str(error))
            known = None if steps is None else [_values(self._call, feature, type, key) for feature in steps.feature]
            found.append(known)
        return found

    def sparse(self, key: str, type: TensorType) -> tuple[Array, Array, Array]:
        """Indices [example, step, position], values and shape of all examples."""
        indices, rows = [], []
        longest = widest = 0
        for n, steps in enumerate(self.read(key, type)):
            longest = max(longest, len(steps or ()))
            for step, row in enumerate(steps or ()):
                if row is not None:
                    widest = max(widest, len(row))
                    indices += [(n, step, position) for position in range(len(row))]
                    rows.append(row)
        where = np.array(indices, np.int64).reshape(-1, 3)
        shape = np.array([len(self._lists), longest, widest])
        if self._is_single:
            where, shape = where[:, 1:], shape[1:]
        return where, joined(rows, type), shape

    def ragged(self, key: str, type: TensorType) -> tuple[Array, Array, Array]:
        """Values, the splits of examples into steps, and of steps into values."""
        steps_of = [steps or [] for steps in self.read(key, type)]
        rows = [row if row is not None else np.zeros(0) for steps in steps_of for row in steps]
        outer = np.concatenate([[0], np.cumsum([len(steps) for steps in steps_of])]).astype(np.int64)
        inner = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return joined(rows, type), np.zeros(0, np.int64) if self._is_single else outer, inner

    def dense(self, key: str, type: TensorType, shape: tuple[int | None, ...], may_miss: bool) -> tuple[Array, Array]:
        """[examples, steps, *shape] with zeros behind, and the number of steps of each example."""
        call = self._call
        sizes = [size if size is not None else -1 for size in shape]
        call.require(min(sizes, default=0) >= 0, f"the shape {sizes} of feature list {key!r} is not known")
        count = int(np.prod(checked_shape(call, sizes)))
        found = self.read(key, type)
        for n, steps in enumerate(found):
            call.require(steps is not None or may_miss, f"feature list {key!r} is missing in example {n}")
        lengths = np.array([len(steps or ()) for steps in found], np.int64)
        longest = int(lengths.max(initial=0))
        dtype = numpy_dtype(type)
        result = np.full(checked_shape(call, [len(found), longest, *sizes]), zero_of(dtype), dtype)
        for n, steps in enumerate(found):
            for step, row in enumerate(steps or ()):
                got = 0 if row is None else len(row)
                call.require(got == count, f"feature list {key!r} has {got} values in step {step}, not {count}")
                if row is not None:
                    result[n, step] = row.reshape(sizes)
        return (result[0], lengths[:1]) if self._is_single else (result, lengths)


def _sequence_features(
    call: Call, batch: _Sequences, keys: Mapping[str, Sequence[str]], may_miss: Sequence[bool], defaults: list[Array]
) -> tuple[Any, Any, Any, Any]:
    """Sparse and dense features of the context, and sparse and dense lists."""
    attributes = call.attributes
    context = _sparse_results(call, batch.context, keys["context_sparse"], "context_sparse_types")
    dense = _dense_features(call, "context_", keys["context_dense"], "Tcontext_dense", defaults)
    types = attributes.types("feature_list_sparse_types")
    _require_count(call, "sparse", keys["feature_list_sparse"], types)
    lists = [batch.sparse(key, type) for key, type in zip(keys["feature_list_sparse"], types, strict=True)]
    types, shapes = attributes.types("feature_list_dense_types"), attributes.shapes("feature_list_dense_shapes")
    _require_count(call, "dense", keys["feature_list_dense"], types)
    call.require(len(shapes) == len(may_miss) == len(types), "there must be a shape for each dense feature list")
    known = zip(keys["feature_list_dense"], types, shapes, may_miss, strict=True)
    dense_lists = [batch.dense(key, type, shape or (), missing) for key, type, shape, missing in known]
    parts = tuple([[one[n] for one in lists] for n in range(3)])
    return context, [batch.context.dense(one) for one in dense], parts, dense_lists


@kernel("ParseSequenceExample")
def parse_sequence_example(call: Call, serialized: Array, debug_name: Array, defaults: list[Array]) -> Any:
    """Features of the context as `parse_example` has them, then those of sequences, dense ones with their lengths."""
    require_rank(call, "serialized", serialized, 1)
    attributes = call.attributes
    names = ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    keys = {name: attributes.texts(f"{name}_keys") for name in names}
    empty = set(attributes.texts("feature_list_dense_missing_assumed_empty"))
    may_miss = [key in empty for key in keys["feature_list_dense"]]
    batch = _Sequences(call, serialized, False)
    context, dense, lists, dense_lists = _sequence_features(call, batch, keys, may_miss, defaults)
    return *context, dense, *lists, [one[0] for one in dense_lists], [one[1] for one in dense_lists]


@kernel("ParseSingleSequenceExample")
def parse_single_sequence_example(
    call: Call,
    serialized: Array,
    missing_assumed_empty: Array,
    context_sparse: list[Array],
    context_dense: list[Array],
    list_sparse: list[Array],
    list_dense: list[Array],
    defaults: list[Array],
    debug_name: Array,
) -> Any:
    """The same of one example, with names as operands, without lengths."""
    require_rank(call, "serialized", serialized, 0)
    keys = {
        "context_sparse": _texts(context_sparse),
        "context_dense": _texts(context_dense),
        "feature_list_sparse": _texts(list_sparse),
        "feature_list_dense": _texts(list_dense),
    }
    empty = set(_texts(missing_assumed_empty))
    may_miss = [key in empty for key in keys["feature_list_dense"]]
    batch = _Sequences(call, serialized, True)
    context, dense, lists, dense_lists = _sequence_features(call, batch, keys, may_miss, defaults)
    return *context, dense, *lists, [one[0] for one in dense_lists]


@kernel("ParseSequenceExampleV2")
def parse_sequence_example_v2(
    call: Call,
    serialized: Array,
    debug_name: Array,
    context_sparse: Array,
    context_dense: Array,
    context_ragged: Array,
    list_sparse: Array,
    list_dense: Array,
    list_ragged: Array,
    missing_assumed_empty: Array,
    defaults: list[Array],
) -> Any:
    """`parse_sequence_example` with names as operands, and ragged features; of a batch or of one example."""
    require_rank(call, "serialized", serialized, 0, 1)
    keys = {
        "context_sparse": _texts(context_sparse),
        "context_dense": _texts(context_dense),
        "feature_list_sparse": _texts(list_sparse),
        "feature_list_dense": _texts(list_dense),
    }
    may_miss = missing_assumed_empty.reshape(-1).tolist()
    batch = _Sequences(call, serialized, serialized.ndim == 0)
    context, dense, lists, dense_lists = _sequence_features(call, batch, keys, may_miss, defaults)
    types = call.attributes.types("context_ragged_value_types")
    _require_count(call, "ragged", _texts(context_ragged), types)
    ragged = [batch.context.ragged(key, type) for key, type in zip(_texts(context_ragged), types, strict=True)]
    types = call.attributes.types("feature_list_ragged_value_types")
    _require_count(call, "ragged", _texts(list_ragged), types)
    ragged_lists = [batch.ragged(key, type) for key, type in zip(_texts(list_ragged), types, strict=True)]
    return (
        *context,
        dense,
        *[[one[n] for one in ragged] for n in range(2)],
        *lists,
        *[[one[n] for one in dense_lists] for n in range(2)],
        *[[one[n] for one in ragged_lists] for n in range(3)],
    )
