"""Jaxprs made by hand, of stand-ins for JAX's own objects, so that these tests need no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from gossamer import Interpreter
from gossamer.arrays import NDArray
from gossamer.convert.converter import Converted, finished
from gossamer.convert.importers.jax import import_jaxpr
from gossamer.convert.request import Request

Array = NDArray[Any]


class Variable:
    """A variable of a jaxpr."""

    def __init__(self, shape: Sequence[Any], dtype: Any) -> None:
        self.aval = SimpleNamespace(
            shape=tuple(shape), dtype=np.dtype(dtype) if isinstance(dtype, (str, type)) else dtype
        )


class Literal:
    """A constant among the operands of an equation."""

    def __init__(self, value: Any) -> None:
        self.val = np.asarray(value)
        if not isinstance(value, (np.ndarray, np.generic)):
            self.val = self.val.astype({"f": np.float32, "i": np.int32}.get(self.val.dtype.kind, self.val.dtype))
        self.aval = SimpleNamespace(shape=self.val.shape, dtype=self.val.dtype)


class Jaxpr:
    """A jaxpr in the making, closed or not: it has no constants but literals."""

    def __init__(self, *inputs: tuple[Sequence[Any], Any]) -> None:
        self.invars = [Variable(shape, dtype) for shape, dtype in inputs]
        self.constvars: list[Variable] = []
        self.consts: list[Any] = []
        self.eqns: list[Any] = []
        self.outvars: list[Any] = []
        self.jaxpr = self

    def const(self, value: Array) -> Variable:
        """A constant that the function captures."""
        self.constvars.append(Variable(value.shape, value.dtype))
        self.consts.append(value)
        return self.constvars[-1]

    def many(
        self, name: str, *operands: Any, gives: Sequence[tuple[Sequence[Any], Any]], **params: Any
    ) -> list[Variable]:
        """An equation; operands that are no variables are literals."""
        atoms = [one if isinstance(one, (Variable, Literal)) else Literal(one) for one in operands]
        made = [Variable(*one) for one in gives]
        self.eqns.append(
            SimpleNamespace(primitive=SimpleNamespace(name=name), params=params, invars=atoms, outvars=made)
        )
        return made

    def add(self, name: str, *operands: Any, gives: Sequence[Any], dtype: Any = np.float32, **params: Any) -> Variable:
        """An equation of one output, with the shape that it has."""
        return self.many(name, *operands, gives=[(gives, dtype)], **params)[0]

    def returns(self, *outputs: Any) -> Jaxpr:
        self.outvars = list(outputs)
        return self


class Result(NamedTuple):
    """What came out, and the operators that the equations became, each once."""

    values: list[Array]
    operators: list[str]

    @property
    def value(self) -> Array:
        (value,) = self.values
        return value


def converted(jaxpr: Jaxpr, request: Request | None = None) -> Converted:
    """The model of a jaxpr: inputs ``x0`` …, outputs ``y0`` …."""
    names = [
        [f"{letter}{n}" for n in range(len(these))] for letter, these in (("x", jaxpr.invars), ("y", jaxpr.outvars))
    ]
    return finished(import_jaxpr(jaxpr, *names, request or Request()), "a jaxpr")


def run(jaxpr: Jaxpr, *inputs: Any) -> Result:
    """What the model of a jaxpr makes of inputs."""
    model = converted(jaxpr)
    interpreter = Interpreter(model_content=model.to_bytes())
    runner = interpreter.get_signature_runner()
    needed = runner.get_input_details()
    found = runner(**{f"x{n}": value for n, value in enumerate(inputs) if f"x{n}" in needed})
    operators = [op for entry in model.report.entries for op in entry.operators]
    return Result([found[f"y{n}"] for n in range(len(jaxpr.outvars))], list(dict.fromkeys(operators)))


def run_one(name: str, *operands: Any, gives: Array, **params: Any) -> Result:
    """One primitive of operands, of which all are inputs but literals: ``gives`` is what is expected of it."""
    given = [operand for operand in operands if not isinstance(operand, Literal)]
    jaxpr = Jaxpr(*[(operand.shape, operand.dtype) for operand in given])
    rest = iter(jaxpr.invars)
    atoms = [operand if isinstance(operand, Literal) else next(rest) for operand in operands]
    made = jaxpr.add(name, *atoms, gives=gives.shape, dtype=gives.dtype, **params)
    return run(jaxpr.returns(made), *given)
