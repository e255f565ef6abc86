"""Models of TensorFlow's operators, as its converter writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer import Interpreter, OpResolverType
from gossamer.convert.flex import flex_options
from gossamer.convert.flex_operators import flex_operator
from gossamer.convert.messages.tensorflow import AttrValue, DataType, NameAttrList, NodeDef, OpDef, TensorShapeProto
from gossamer.convert.sources.tensor_proto import tensor_type
from gossamer.schema import TensorType
from tests.runtime.graphs import ModelMaker


def data_type(dtype: Any) -> DataType:
    """TensorFlow's type of a NumPy dtype, or of a name such as ``"variant"``."""
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, str) and f"DT_{dtype.upper()}" in DataType.__members__:
        return DataType[f"DT_{dtype.upper()}"]
    kind = np.dtype(dtype)
    names = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "object": "STRING"}
    return DataType[f"DT_{names.get(kind.name, kind.name.upper())}"]


class FlexMaker(ModelMaker):
    """A `ModelMaker` for Flex operators too."""

    def flex(
        self,
        op: str,
        inputs: Sequence[int],
        shapes: Sequence[Sequence[int] | None] | None = None,
        **attributes: Any,
    ) -> list[int]:
        """Adds an operator; its outputs, of these shapes, or unknown ones. Attributes that name types of operands
        follow from those; ``shapes_`` is an attribute ``shapes``."""
        definition = flex_operator(op)
        given = {name.rstrip("_"): value for name, value in attributes.items()}
        self._types_of_operands(definition, inputs, given)
        values = {a.name: attribute(a.type, given[a.name]) for a in definition.attr if a.name in given}
        node = NodeDef(name=op, op=op, input=("x",) * len(inputs), attr=values)
        complete = {a.name: values.get(a.name, a.default_value) for a in definition.attr}
        types = [type for argument in definition.output_arg for type in _types(argument, complete)]
        outputs = []
        for number, type in enumerate(types):
            shape = shapes[number] if shapes is not None else None
            rank = {"has_rank": True} if shape is not None else {}
            signature = {"shape_signature": tuple(shape)} if shape is not None and -1 in shape else {}
            sizes = [1 if size < 0 else size for size in shape or ()]
            outputs.append(self.tensor(sizes, type, f"{op}:{number}", **rank, **signature))
        self.op(f"Flex{op}", inputs, outputs, custom=True, custom_options=flex_options(node))
        return outputs

    def _types_of_operands(self, definition: OpDef, inputs: Sequence[int], given: dict[str, Any]) -> None:
        left = [data_type(_name(self.graphs[-1].tensors[index].type)) for index in inputs]
        lists = [a for a in definition.input_arg if a.type_list_attr or a.number_attr]
        for argument in definition.input_arg:
            count = 1
            if argument.type_list_attr or argument.number_attr:
                known = given.get(argument.number_attr or argument.type_list_attr)
                if known is not None:
                    count = known if isinstance(known, int) else len(known)
                else:
                    count = len(inputs) - (len(definition.input_arg) - 1) if len(lists) == 1 else 1
            types, left = left[:count], left[count:]
            if argument.number_attr:
                given.setdefault(argument.number_attr, count)
            if argument.type_list_attr:
                given.setdefault(argument.type_list_attr, types)
            if argument.type_attr and types:
                given.setdefault(argument.type_attr, types[0])


def _name(type: TensorType) -> str:
    names = {TensorType.FLOAT32: "float", TensorType.FLOAT64: "double", TensorType.FLOAT16: "half"}
    return names.get(type, TensorType(type).name.lower())


def _types(argument: OpDef.ArgDef, attributes: dict[str, AttrValue | None]) -> list[TensorType]:
    if argument.type_list_attr:
        stored = attributes[argument.type_list_attr]
        return [tensor_type(type) for type in stored.list.type]  # type: ignore[union-attr]
    one = attributes[argument.type_attr].type if argument.type_attr else argument.type  # type: ignore[union-attr]
    number = attributes[argument.number_attr].i if argument.number_attr else 1  # type: ignore[union-attr]
    return [tensor_type(one)] * number


def attribute(kind: str, value: Any) -> AttrValue:
    """A value as an attribute of a kind: ``attribute("list(int)", [1, 2])``."""
    if isinstance(value, AttrValue):
        return value
    if kind.startswith("list("):
        field = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape"}[kind[5:-1]]
        return AttrValue(
            list=AttrValue.ListValue(**{field: tuple([getattr(attribute(kind[5:-1], one), field) for one in value])})
        )
    if kind == "type":
        return AttrValue(type=data_type(value))
    if kind == "shape":
        if value is None:
            return AttrValue(shape=TensorShapeProto(unknown_rank=True))
        return AttrValue(
            shape=TensorShapeProto(dim=tuple([TensorShapeProto.Dim(size=-1 if s is None else s) for s in value]))
        )
    if kind == "string":
        return AttrValue(s=value.encode() if isinstance(value, str) else value)
    if kind == "func":
        return AttrValue(func=NameAttrList(name=value))
    return AttrValue(**{{"int": "i", "float": "f", "bool": "b"}[kind]: value})


def run(op: str, *operands: Any, rewritten: bool = False, **attributes: Any) -> Any:
    """What an operator gives for these operands: an array, or a list of them if it has not one result.

    It runs by its own kernel; ``rewritten``: by builtin operators, if these can say it.
    """
    make = FlexMaker()
    arrays = [np.asarray(operand, object if isinstance(operand, (bytes, str)) else None) for operand in operands]
    arrays = [np.asarray(a, object) if a.dtype.kind == "S" else a for a in arrays]
    inputs = [
        make.tensor(a.shape, tensor_type(data_type(a.dtype)), f"x{n}", has_rank=True) for n, a in enumerate(arrays)
    ]
    outputs = make.flex(op, inputs, **attributes)
    make.io(inputs, outputs)
    kind = OpResolverType.AUTO if rewritten else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    for index, array in zip(inputs, arrays, strict=True):
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    results = [interpreter.get_tensor(index) for index in outputs]
    return results[0] if len(results) == 1 else results
