"""Exported programs put together by hand, converted and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer import Interpreter, OpResolverType
from gossamer.arrays import NDArray
from gossamer.convert.export import to_model
from gossamer.convert.importers.torch import import_program
from gossamer.convert.request import Request
from gossamer.convert.sources import torch_export as source
from gossamer.convert.sources.symbolic import Size
from gossamer.model.writer import write_model
from gossamer.schema.enums import BuiltinOperator

Array = NDArray[Any]


class Fixed(NamedTuple):
    """An argument that is a constant of the program; other arrays are its inputs."""

    value: Array


class Result(NamedTuple):
    """What came out by name, and the operators that it took, in order."""

    outputs: dict[str, Array]
    operators: list[str]


def meta(array: Array, shape: Sequence[Size] | None = None) -> source.TensorMeta:
    """What torch knows of a tensor like this; ``shape`` where sizes are symbolic."""
    strides = tuple([stride // array.itemsize for stride in array.strides])
    return source.TensorMeta(array.dtype, tuple(array.shape if shape is None else shape), strides, 0, "strided")


class Program:
    """A program in the making. ``shapes`` of inputs where they are symbolic; ``ranges`` of the symbols."""

    def __init__(self, ranges: Mapping[str, tuple[int | None, int | None]] | None = None) -> None:
        self.ranges = dict(ranges or {})
        self.inputs: list[source.InputSpec] = []
        self.outputs: list[source.OutputSpec] = []
        self.nodes: list[source.Node] = []
        self.tensors: dict[str, source.TensorMeta] = {}
        self.numbers: dict[str, Any] = {}
        self.state: dict[str, Array] = {}
        self.feeds: dict[str, Array] = {}
        self.expected: dict[str, Array] = {}

    def input(self, name: str, array: Array, shape: Sequence[Size] | None = None) -> source.Value:
        """An input, and what is fed to it."""
        self.tensors[name] = meta(array, shape)
        self.inputs.append(source.InputSpec("user_input", source.Value(name)))
        self.feeds[name] = array
        return source.Value(name)

    def stored(self, name: str, array: Array, kind: str = "parameter") -> source.Value:
        """A parameter, buffer or constant."""
        self.tensors[name] = meta(array)
        self.state[name] = array
        self.inputs.append(source.InputSpec(kind, source.Value(name), name))
        return source.Value(name)

    def call(self, target: str, results: Any, /, *positional: Any, **arguments: Any) -> Any:
        """An operator and what it gives: arrays, or ``(array, symbolic shape)``; a `Size` is a number. One value, or a
        list for a list; in-place operators have results as well."""
        names = []
        for number, result in enumerate(results if isinstance(results, list) else [results]):
            name = f"v{len(self.nodes)}_{number}"
            if isinstance(result, tuple):
                self.tensors[name] = meta(*result)
            elif isinstance(result, np.ndarray):
                self.tensors[name] = meta(result)
            elif result is not None:
                self.numbers[name] = result
            names.append(source.Value(name) if result is not None else None)
        given = [source.Argument("", value, False) for value in positional]
        given += [source.Argument(name, value, False) for name, value in arguments.items()]
        self.nodes.append(source.Node(target, tuple(given), tuple(names), {}))
        return names if isinstance(results, list) else names[0]

    def output(self, value: source.Value, expected: Array) -> None:
        """An output and what it must be."""
        self.outputs.append(source.OutputSpec("user_output", value))
        self.expected[value.name] = expected

    def changed(self, kind: str, value: source.Value, target: str) -> None:
        """A new value of a buffer or an input."""
        self.outputs.append(source.OutputSpec(kind, value, target))

    @property
    def program(self) -> source.ExportedProgram:
        """As the reader gives it."""
        graph = source.Graph(
            "",
            tuple([spec.value for spec in self.inputs]),
            tuple([spec.value for spec in self.outputs]),
            tuple(self.nodes),
            self.tensors,
            self.numbers,
        )
        return source.ExportedProgram(
            graph, tuple(self.inputs), tuple(self.outputs), self.state, self.ranges, ("TRAINING",), "2.13.0"
        )

    def graph(self, name: str) -> source.Graph:
        """As a graph that an operator calls."""
        return source.Graph(
            name,
            tuple([spec.value for spec in self.inputs]),
            tuple([spec.value for spec in self.outputs]),
            tuple(self.nodes),
            self.tensors,
            self.numbers,
        )

    def convert(self, **request: Any) -> tuple[bytes, list[str]]:
        """The file without any patterns, and its operators."""
        imported = import_program(self.program, Request(**request))
        imported.report.check("program")
        model = to_model(imported.signatures)
        codes = [BuiltinOperator(code.builtin_code).name for code in model.operator_codes]
        operators = [codes[op.opcode_index] for subgraph in model.subgraphs for op in subgraph.operators]
        return write_model(model), operators

    def check(self, *more: Mapping[str, Array], rtol: float = 1e-5, atol: float = 1e-6, **request: Any) -> Result:
        """Convert and run it: the outputs are those expected, with their dtypes and shapes; ``more`` is fed
        afterwards, for its outputs."""
        content, operators = self.convert(**request)
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # nothing is compiled for small programs
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
        runner = interpreter.get_signature_runner("serving_default")
        found = runner(**self.feeds)
        for name, expected in self.expected.items():
            same(found[name], expected, rtol, atol)
        for feeds in more:
            found = runner(**feeds)
        return Result(found, operators)


def same(found: Array, expected: Array, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, expected)


def check_one(target: str, expected: Any, *, rtol: float = 1e-5, atol: float = 1e-6, **arguments: Any) -> list[str]:
    """A program of one operator gives what is expected, an array or a list of them (``None``: whatever it is): its
    operators. Arrays among the arguments are inputs."""
    program = Program()

    def argument(name: str, value: Any) -> Any:
        if isinstance(value, Fixed):
            return program.stored(f"the_{name}", value.value)
        if isinstance(value, np.ndarray):
            return program.input(f"the_{name}", value)
        if isinstance(value, list):
            return [argument(f"{name}{number}", element) for number, element in enumerate(value)]
        return value

    given = {name: argument(name, value) for name, value in arguments.items()}
    results = program.call(target, expected, **given)
    pairs = zip(results, expected, strict=True) if isinstance(results, list) else [(results, expected)]
    for value, wanted in pairs:
        if wanted is not None:
            program.output(value, wanted)
    return program.check(rtol=rtol, atol=atol).operators
