"""Arbitrary tables from their declarations, and small models to break."""

from __future__ import annotations

import random
from typing import Any, TypeVar

import numpy as np

import gossamer.schema.metadata
import gossamer.schema.options  # noqa: F401 - declares its tables
from gossamer.model.model import Model
from gossamer.schema import (
    AddOptions,
    Buffer,
    BuiltinOperator,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SubGraph,
    Tensor,
    TensorMap,
)
from gossamer.schema.fields import Field, Scalar, Table

T = TypeVar("T", bound=Table)

LETTERS = "aZ_/;0 \u00e9\u4e16\U0001f600"


def all_tables(root: type[Table] = Table) -> list[type[Table]]:
    """Every table class that the schema declares, in the order of declaration."""
    declared = [cls for child in root.__subclasses__() for cls in (child, *all_tables(child)) if cls is not Model]
    return [cls for cls in declared if cls.__module__.startswith("gossamer.schema.")]


def arbitrary(cls: type[T], rng: random.Random, presence: float = 0.7) -> T:
    """An instance whose fields are present with a probability and hold random values of their kind."""
    return cls(**{field.name: _value(field, rng) for field in cls.FIELDS if rng.random() < presence})


def _value(field: Field, rng: random.Random) -> Any:
    kind = field.kind
    if kind == "scalar":
        return _number(field.of, rng)
    if kind == "enum":
        number = rng.choice([*field.enum, _number(field.of, rng)])
        return field.enum._value2member_map_.get(number, number)
    if kind == "string":
        return _text(rng)
    if kind == "strings":
        return tuple(_text(rng) for _ in range(rng.randrange(4)))
    if kind == "table":
        return arbitrary(field.of, rng)
    if kind == "tables":
        return tuple(arbitrary(field.of, rng) for _ in range(rng.randrange(3)))
    if kind == "union":
        return arbitrary(rng.choice(field.of.members), rng)
    values = [_number(field.of, rng) for _ in range(rng.choice((0, 1, 3, 20)))]
    return tuple(values) if kind == "numbers" else np.array(values, field.of.dtype)


def _text(rng: random.Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.choice((0, 1, 5, 40))))


def _number(scalar: Scalar, rng: random.Random) -> Any:
    if scalar.code == "?":
        return rng.random() < 0.5
    if scalar.code == "f":
        return float(np.float32(rng.choice((0.0, -0.0, 1.5, float("inf"), rng.uniform(-1e9, 1e9)))))
    bits = 8 * scalar.size
    low = 0 if scalar.code.isupper() else -(1 << (bits - 1))
    return rng.choice((0, 1, low, low + (1 << bits) - 1, low + rng.getrandbits(bits)))


def add_model(**changes: Any) -> Model:
    """y = x + constant, float32 [2, 3], with a quantization record, a signature and a description."""
    tensors = (
        Tensor(shape=(2, 3), name="x", shape_signature=(-1, 3)),
        Tensor(shape=(3,), buffer=1, name="constant", quantization=QuantizationParameters()),
        Tensor(shape=(2, 3), name="y"),
    )
    operator = Operator(inputs=(0, 1), outputs=(2,), builtin_options=AddOptions())
    values: dict[str, Any] = {
        "version": 3,
        "operator_codes": (OperatorCode(builtin_code=BuiltinOperator.ADD, version=1),),
        "subgraphs": (SubGraph(tensors=tensors, inputs=(0,), outputs=(2,), operators=(operator,), name="main"),),
        "description": "adds",
        "buffers": (Buffer(), Buffer(data=np.arange(3, dtype=np.float32).view(np.uint8))),
        "signature_defs": (
            SignatureDef(
                inputs=(TensorMap(name="x", tensor_index=0),),
                outputs=(TensorMap(name="y", tensor_index=2),),
                signature_key="serving_default",
            ),
        ),
    }
    return Model(**{**values, **changes})


def tensor_model(tensor: Tensor, data: bytes | None = None, **changes: Any) -> Model:
    """One tensor and nothing else; with ``data``, in buffer 1."""
    buffers = (Buffer(),) if data is None else (Buffer(), Buffer(data=np.frombuffer(data, np.uint8)))
    return add_model(
        subgraphs=(SubGraph(tensors=(tensor,), inputs=(), outputs=(), operators=()),),
        buffers=buffers,
        signature_defs=(),
        **changes,
    )
