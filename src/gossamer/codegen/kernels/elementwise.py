"""The vocabulary of fused expressions, and `map`: an expression applied to every element of a strided tensor.

An expression is a chain of steps, applied to a value one after the other. A step is a function of the value
(``relu``), or combines it with an operand: ``add`` with one that varies along the innermost dimension as the value
does, ``addc`` (XNNPACK's c) with one that is the same along it. ``rsub`` is operand - value, ``sub`` value - operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gossamer.codegen.ir import F32, Function, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.targets import Target

Unary = Callable[[Function, Value], Value]
Binary = Callable[[Function, Value, Value], Value]


def _clamp(low: float, high: float) -> Unary:
    return lambda f, x: f.at_most(f.at_least(x, low), high)


def _abs(f: Function, x: Value) -> Value:
    return f.intrinsic("llvm.fabs", x)


def _sign(f: Function, x: Value) -> Value:
    one, zero = f.constant(x.type, 1.0), f.constant(x.type, 0.0)
    positive = f.select(f.compare("ogt", x, 0.0), one, x * zero)  # NaN stays
    return f.select(f.compare("olt", x, 0.0), -one, positive)


def _hard_swish(f: Function, x: Value) -> Value:
    return x * (f.at_most(f.at_least(x + 3.0, 0.0), 6.0) * (1.0 / 6.0))


def _elu(f: Function, x: Value) -> Value:
    return f.select(f.compare("olt", x, 0.0), f.exp_minus_1(f.at_most(x, 0.0)), x)


def _gelu(f: Function, x: Value) -> Value:
    return (x * 0.5) * (f.erf(x * math.sqrt(0.5)) + 1.0)


def _gelu_tanh(f: Function, x: Value) -> Value:
    cubic = x * x * x * 0.044715
    return (x * 0.5) * (f.tanh((x + cubic) * math.sqrt(2 / math.pi)) + 1.0)


UNARY: dict[str, Unary] = {
    "abs": _abs,
    "ceil": lambda f, x: f.intrinsic("llvm.ceil", x),
    "elu": _elu,
    "exp": lambda f, x: f.exp(x),
    "floor": lambda f, x: f.intrinsic("llvm.floor", x),
    "gelu": _gelu,
    "gelutanh": _gelu_tanh,
    "hardswish": _hard_swish,
    "log": lambda f, x: f.log(x),
    "logistic": lambda f, x: f.logistic(x),
    "neg": lambda f, x: -x,
    "relu": lambda f, x: f.at_least(x, 0.0),
    "relu01": _clamp(0.0, 1.0),
    "relu6": _clamp(0.0, 6.0),
    "relun1": _clamp(-1.0, 1.0),
    "round": lambda f, x: f.intrinsic("llvm.roundeven", x),
    "rsqrt": lambda f, x: 1.0 / f.intrinsic("llvm.sqrt", x),
    "sign": _sign,
    "silu": lambda f, x: x * f.logistic(x),
    "sqrt": lambda f, x: f.intrinsic("llvm.sqrt", x),
    "square": lambda f, x: x * x,
    "tanh": lambda f, x: f.tanh(x),
}
"""Steps that need the value only."""

BINARY: dict[str, Binary] = {
    "add": lambda f, x, y: x + y,
    "div": lambda f, x, y: x / y,
    "max": lambda f, x, y: f.maximum(x, y),
    "min": lambda f, x, y: f.minimum(x, y),
    "mul": lambda f, x, y: x * y,
    "prelu": lambda f, x, y: f.select(f.compare("olt", x, 0.0), x * y, x),
    "rdiv": lambda f, x, y: y / x,
    "rsub": lambda f, x, y: y - x,
    "sqrdiff": lambda f, x, y: (x - y) * (x - y),
    "sub": lambda f, x, y: x - y,
}
"""Steps that combine the value with an operand; each also with a c behind its name."""


def takes_operand(step: str) -> bool:
    """Whether a step combines the value with an operand. Raises `CompileError` for an unknown step."""
    if step in UNARY:
        return False
    if step in BINARY or step.removesuffix("c") in BINARY:
        return True
    raise CompileError(f"There is no step {step!r}; there are {', '.join([*UNARY, *BINARY])}.")


def apply_step(step: str, f: Function, x: Value, operand: Value | None = None) -> Value:
    """Emit one step on a value of any vector type."""
    if not takes_operand(step):
        return UNARY[step](f, x)
    if operand is None:
        raise CompileError(f"Step {step!r} needs an operand, and here there is none.")
    return BINARY[step if step in BINARY else step.removesuffix("c")](f, x, operand)


def operand_count(steps: Sequence[str]) -> int:
    """How many operands a chain takes."""
    return sum(takes_operand(step) for step in steps)


MAX_OPERANDS = 4


@dataclass(frozen=True)
class Map(KernelSpec):
    """y = steps(x) over [rows, columns, count], count innermost and contiguous.

    Every tensor has its own strides between rows and columns, 0 to broadcast. The operands of the steps come in the
    order of the steps; along ``count`` they are contiguous, or one element for steps with a c. No step: a copy.

    Rows are cut into blocks of ``block`` elements along ``count`` (a multiple of 16 unless it is all of them), and
    threads share rows x blocks. y may be x or an operand of the same strides; it may not overlap them otherwise.
    """

    steps: tuple[str, ...]

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        y="ptr",
        rows="i64",
        columns="i64",
        count="i64",
        block="i64",
        blocks="i64",
        x_row="i64",
        x_column="i64",
        y_row="i64",
        y_column="i64",
        operand0="ptr",
        operand0_row="i64",
        operand0_column="i64",
        operand1="ptr",
        operand1_row="i64",
        operand1_column="i64",
        operand2="ptr",
        operand2_row="i64",
        operand2_column="i64",
        operand3="ptr",
        operand3_row="i64",
        operand3_column="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "map", *(self.steps or ("copy",)))

    def emit(self, target: Target) -> str:
        if operand_count(self.steps) > MAX_OPERANDS:
            raise CompileError(f"{self.name}: at most {MAX_OPERANDS} operands, got {operand_count(self.steps)}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        taking = [step for step in self.steps if takes_operand(step)]
        with f.share(a.rows * a.blocks) as task:
            row = task // a.blocks
            start = (task - row * a.blocks) * a.block
            count = f.least(a.block, a.count - start)
            x, y = (f.offset(f.at(p, start), row * stride) for p, stride in ((a.x, a.x_row), (a.y, a.y_row)))
            operands = []
            for at, step in enumerate(taking):
                pointer = f.offset(getattr(a, f"operand{at}"), row * getattr(a, f"operand{at}_row"))
                operands.append(f.at(pointer, start) if step in BINARY else pointer)
            with f.loop(0, a.columns) as columns:
                here = [f.offset(p, columns.index * getattr(a, f"operand{at}_column")) for at, p in enumerate(operands)]
                # What is the same along the row is loaded once.
                fixed = [None if step in BINARY else f.load(F32, p) for step, p in zip(taking, here, strict=True)]
                source, destination = f.offset(x, columns.index * a.x_column), f.offset(y, columns.index * a.y_column)

                def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                    (part,) = parts
                    value = part.load(f.offset(source, at))
                    moving = iter(zip(fixed, here, strict=True))
                    for step in self.steps:
                        operand = None
                        if takes_operand(step):
                            known, pointer = next(moving)
                            operand = part.splat(known) if known else part.load(f.offset(pointer, at), 1.0)
                        value = apply_step(step, f, value, operand)
                    part.store(value, f.offset(destination, at))

                f.vectors(count, block)
        return module.text()
