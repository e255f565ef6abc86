"""`Builder`: a model in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike
from gossamer.convert.export import to_model
from gossamer.convert.graph import WORLDS, Graph, Signature, Size, Value, unknown
from gossamer.convert.infer import Call, infer
from gossamer.edit.edited import finished
from gossamer.edit.options import builtin, stored_options, tensor_type
from gossamer.errors import ConvertError, EditError
from gossamer.model.model import Model, resolved_code
from gossamer.ops.op_def import OpDef
from gossamer.quantization import UNQUANTIZED, Quantization, per_channel, per_tensor
from gossamer.schema import flexbuffers
from gossamer.schema.enums import BuiltinOperator, TensorType
from gossamer.schema.fields import Table

Sizes = Iterable["int | str | None"]
"""A shape. ``None`` and -1 leave a size open, and so does a text; equal texts are equal sizes."""

DESCRIPTION = "Gossamer built."

COUNTS = ("num_splits", "num")
"""Options that say how many outputs an operator has."""


class Builder:
    """A model in the making: inputs, operators on values, outputs, then `finish`::

        b = gossamer.Builder()
        x = b.input("x", (1, 8))
        y = b.add("FULLY_CONNECTED", x, weights, bias, activation="RELU")
        b.output("y", y)
        model = b.finish()

    Types and shapes of what operators give are those that their own ``prepare`` says. Operands are values, or NumPy
    arrays and numbers, which become constants (Python's floats float32, its integers int32). What no output needs is
    left out. ``signature``: the key of the signature that names inputs and outputs, ``None`` for none.

    Everything raises `EditError`: for operators, options and types that there are not, and what an operator refuses.

    >>> b = gossamer.Builder()
    >>> b.output("y", b.add("NEG", b.input("x", (1, 2))))
    >>> b.finish()
    <Model: 1 subgraph, 1 operator, 2 tensors>
    """

    def __init__(self, name: str = "main", *, signature: str | None = "serving_default") -> None:
        self._graph = Graph(name, folds=False)
        self._signature = signature
        self._sizes: dict[object, Size] = {}
        self._inputs: dict[str, Value] = {}
        self._outputs: dict[str, Value] = {}
        self._versions: dict[str, int] = {}

    def input(
        self,
        name: str,
        shape: Sizes,
        type: Any = "float32",
        *,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
    ) -> Value:
        """An input. ``type`` is a name, ``"int8"``, or NumPy's; ``scale`` and ``zero_point`` of a quantized one."""
        if name in self._inputs:
            raise EditError(f"there is an input {name!r} already")
        value = self._graph.input(name, tensor_type(type), self._shape(shape))
        value.quantization = _quantization(scale, zero_point)
        self._inputs[name] = value
        return value

    def variable(self, name: str, shape: Sequence[int], type: Any = "float32") -> Value:
        """A tensor that an operator keeps from one run to the next, such as the state of an LSTM. It begins as 0."""
        value = Graph("").input(name, tensor_type(type), shape)
        value.is_variable = True
        return value

    def constant(
        self,
        value: ArrayLike,
        type: Any = None,
        name: str = "",
        *,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
        dimension: int = 0,
    ) -> Value:
        """A constant, for one that has a name, a type of its own or a quantization: ``scale`` may be one for each index
        of a ``dimension``. Arrays are not copied and must not change."""
        try:
            made = self._graph.constant(value, None if type is None else tensor_type(type), name)
        except (KeyError, ValueError, TypeError) as error:
            raise EditError(f"this is no constant: {error}") from None
        made.quantization = _quantization(scale, zero_point, dimension)
        return made

    def add(
        self,
        op: str | OpDef,
        *operands: Any,
        name: str = "",
        type: Any = None,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
        outputs: int | None = None,
        shape: Sizes | None = None,
        **options: Any,
    ) -> Any:
        """An operator on values: what it gives, a `Value`, or a tuple if there are several.

        ``op`` is a builtin's name, or a custom operator as `gossamer.custom_op` makes it. ``None`` leaves an optional
        operand out. ``options`` are those of the schema, enums by name: ``padding="SAME"``; ``activation`` is short for
        ``fused_activation_function``. One that names a subgraph takes the `Builder` of it.

        ``type`` says what comes out where an operator leaves that open, ``scale`` and ``zero_point`` the quantization
        of it (that of operators which have only one possible is known), ``outputs`` how many, ``shape`` what depends on
        values.
        """
        if isinstance(op, OpDef):
            found = op
            if op.custom:
                return self._custom_op(op, operands, options, name)
        else:
            found = builtin(op)
        graphs = {key: value for key, value in options.items() if isinstance(value, Builder)}
        if graphs:
            return self._call(found, operands, graphs, {k: v for k, v in options.items() if k not in graphs}, name)
        stored = stored_options(found, options)
        plain = {field.name: getattr(stored, field.name) for field in stored.FIELDS if stored.has(field.name)}
        if found.options is Table:
            plain = {}
        inputs = [None if operand is None else self._value(operand) for operand in operands]
        count = outputs if outputs is not None else _count(found, stored)
        wanted = None if type is None else tensor_type(type)
        quantization = _quantization(scale, zero_point) or _own_quantization(found, inputs, wanted)
        try:
            values = self._graph.add_many(
                found.name,
                inputs,
                count,
                types=[None] * (count - 1) + [wanted],
                name=name or found.name.lower(),
                quantization=quantization,
                shapes=None if shape is None else [self._shape(shape)] * count,
                **plain,
            )
        except ConvertError as error:
            raise EditError(str(error)) from error
        return values[0] if count == 1 else tuple(values)

    def custom(
        self,
        op: str,
        *operands: Any,
        outputs: Sequence[tuple[Any, Sizes]] | None = None,
        options: Any = b"",
        version: int = 1,
        name: str = "",
    ) -> Any:
        """A custom operator that only the runtime of the model will know. ``outputs``: type and shape of each, else one
        like the first operand; ``options``: bytes, or what is stored as a flexbuffer, a map as a rule."""
        inputs = [None if operand is None else self._value(operand) for operand in operands]
        content = bytes(options) if isinstance(options, (bytes, bytearray)) else flexbuffers.dumps(options)
        if outputs is None:
            if not inputs or inputs[0] is None:
                raise EditError(f"{op}: say what comes out, outputs=[(type, shape)]")
            made = self._graph.add_custom(op, inputs, [(inputs[0].type, _sizes(inputs[0]))], content)
        else:
            shapes = [(tensor_type(type), self._shape(shape)) for type, shape in outputs]
            made = self._graph.add_custom(op, inputs, shapes, content, effect=not outputs)
        self._versions[op] = max(version, self._versions.get(op, 1))
        return self._named(made, name or op.lower())

    def graph(self, name: str) -> Builder:
        """Another subgraph, for operators that call one: ``b.add("WHILE", x, cond_subgraph_index=condition, …)``."""
        inner = Builder(name, signature=None)
        inner._sizes, inner._versions = self._sizes, self._versions
        return inner

    def output(self, name: str, value: Value) -> None:
        """Make a value an output, under this name."""
        if name in self._outputs:
            raise EditError(f"there is an output {name!r} already")
        if value.node is not None and value not in self._outputs.values():
            value.name = name
        self._outputs[name] = value
        self._graph.outputs.append(value)

    def finish(self, description: str = DESCRIPTION) -> Model:
        """The model, with the lowest versions of operators that have what it asks for. Raises `EditError` if there is
        no output, or the result is not sound."""
        if not self._outputs and not self._graph.effects:
            raise EditError("the model has no output")
        signature = Signature(self._signature or "", self._graph, self._inputs, self._outputs)
        try:
            model = to_model([signature], description)
        except ConvertError as error:
            raise EditError(str(error)) from error
        codes = [
            code.replace(version=self._versions.get(code.custom_code, code.version))
            if resolved_code(code) == BuiltinOperator.CUSTOM
            else code
            for code in model.operator_codes
        ]
        return finished(Model(), model.replace(operator_codes=tuple(codes)))

    # -- how

    def _shape(self, shape: Sizes) -> list[int | Size]:
        return [
            size if isinstance(size, int) and size >= 0 else self._open(size if isinstance(size, str) else axis)
            for axis, size in enumerate(shape)
        ]

    def _open(self, what: object) -> Size:
        if what not in self._sizes:
            self._sizes[what] = unknown(len(self._sizes), large=isinstance(what, int) and what > 0)
        return self._sizes[what]

    def _value(self, operand: Any) -> Value:
        if isinstance(operand, Builder):
            raise EditError("a subgraph is given by the option that names it")
        return operand if isinstance(operand, Value) else self.constant(operand)

    def _named(self, values: list[Value], name: str) -> Any:
        for position, value in enumerate(values):
            value.name = f"{name}:{position}" if position else name
        return values[0] if len(values) == 1 else tuple(values)

    def _custom_op(self, op: OpDef, operands: Sequence[Any], options: Mapping[str, Any], name: str) -> Any:
        inputs = [None if operand is None else self._value(operand) for operand in operands]
        content = flexbuffers.dumps(dict(options)) if options else b""
        worlds = []
        for world in range(WORLDS):
            seen = [None if value is None else value.operand(world) for value in inputs]
            try:
                worlds.append(infer(Call(op, Table(), seen, len(op.outputs), custom_options=content)))
            except ValueError as error:
                raise EditError(str(error)) from error
        outputs = []
        for results in zip(*worlds, strict=True):
            if any(result.shape is None for result in results):
                raise EditError(
                    f"{op.name} does not say what shape comes out: give it shape=, or use custom() with outputs="
                )
            shapes = [result.shape for result in results if result.shape is not None]
            sizes = [of[0] if len(set(of)) == 1 else Size(tuple(of)) for of in zip(*shapes, strict=True)]
            outputs.append((results[0].type, sizes))
        made = self._graph.add_custom(op.name, inputs, outputs, content)
        self._versions[op.name] = max(op.max_version if op.versions[-1].since is not None else 1, 1)
        return self._named(made, name or op.name.lower())

    def _call(
        self, op: OpDef, operands: Sequence[Any], graphs: Mapping[str, Builder], options: Mapping[str, Any], name: str
    ) -> Any:
        stored = stored_options(op, options)
        inputs = [None if operand is None else self._value(operand) for operand in operands]
        missing = [field.name for field in stored.FIELDS if "_subgraph_ind" in field.name and field.name not in graphs]
        unknown_names = [key for key in graphs if key not in stored.FIELD]
        if missing or unknown_names:
            named = [field.name for field in stored.FIELDS if "_subgraph_ind" in field.name]
            raise EditError(f"{op.name} calls {', '.join(named) or 'no subgraph'}, got {', '.join(graphs)}")
        results = list(graphs.values())[-1]._graph.outputs if op.outputs else []
        made = self._graph.call(
            op.name,
            inputs,
            results,
            {key: inner._graph for key, inner in graphs.items()},
            {field.name: getattr(stored, field.name) for field in stored.FIELDS if stored.has(field.name)},
            effect=not results,
        )
        return self._named(made, name or op.name.lower()) if made else None


def _sizes(value: Value) -> list[int | Size]:
    return [value.size(axis) for axis in range(value.rank)]


def _quantization(scale: ArrayLike | None, zero_point: ArrayLike, dimension: int = 0) -> Quantization:
    if scale is None:
        return UNQUANTIZED
    if np.ndim(scale):
        points = np.broadcast_to(np.asarray(zero_point, np.int32), np.shape(scale))
        return per_channel(scale, dimension, np.array(points))
    return per_tensor(float(np.asarray(scale)), int(np.asarray(zero_point)))


def _own_quantization(op: OpDef, inputs: Sequence[Value | None], type: TensorType | None) -> Quantization:
    """The quantization of what an operator gives where there is only one possible."""
    first = next((value for value in inputs if value is not None), None)
    if first is None or not first.quantization:
        return UNQUANTIZED
    rule = op.quantizes
    fixed = {} if rule is None else rule.fixed
    if (type or first.type) in fixed:
        return per_tensor(*fixed[type or first.type])
    if rule is None or rule.same_scale or (rule.same_scale_16 and first.type == TensorType.INT16):
        return first.quantization if type in (None, first.type) else UNQUANTIZED
    return UNQUANTIZED


def _count(op: OpDef, options: Table) -> int:
    """How many outputs an operator has."""
    for option in COUNTS:
        if op.outputs and op.outputs[-1].endswith("*") and option in options.FIELD:
            return int(getattr(options, option))
    if op.outputs and op.outputs[-1].endswith("*"):
        raise EditError(f"{op.name}: say how many outputs it has, outputs=2")
    return len([name for name in op.outputs if not name.endswith("?")])
