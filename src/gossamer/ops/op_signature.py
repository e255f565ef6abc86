"""What the version of an operator may depend on, and the vocabulary in which operator files say it.

`OpSignature` is an operator of a model without its data: types, shapes, quantization and options. A `Condition` is a
question to it that can also be said in words::

    input_type(0, TensorType.INT8) & ~option("keep_num_dims")      # input is int8 and keep_num_dims is not set

Conditions stand in the versions of an `OpDef`. They never raise, whatever the signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gossamer.dtypes import type_name
from gossamer.records import record
from gossamer.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from gossamer.schema.fields import Table
    from gossamer.schema.tables import QuantizationParameters

FLOAT8 = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)


@record(frozen=True)
class TensorSpec:
    """What versions may depend on in an operand. An optional operand that was left out has no type."""

    type: int | None = None
    shape: tuple[int, ...] = ()
    quantization: QuantizationParameters | None = None
    is_constant: bool = False
    is_dynamic: bool = False
    is_sparse: bool = False

    @property
    def scales(self) -> Any:
        """The scales as an array, often empty."""
        return () if self.quantization is None else self.quantization.scale


_LEFT_OUT = TensorSpec()


@record(frozen=True)
class OpSignature:
    """What versions may depend on in an operator of a model: TFLite's OpSignature.

    ``options`` is ``None`` where the file stores none; TFLite then takes each of them for 0, whatever the schema's
    default. ``version`` is the one that is stored.
    """

    op: int
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    options: Table | None = None
    version: int = 1
    custom_name: str = ""

    def input(self, position: int) -> TensorSpec:
        """An input; one without a type where there is none."""
        return self.inputs[position] if position < len(self.inputs) else _LEFT_OUT

    def output(self, position: int = 0) -> TensorSpec:
        """An output; one without a type where there is none."""
        return self.outputs[position] if position < len(self.outputs) else _LEFT_OUT

    def option(self, name: str) -> Any:
        """An option by its name in the schema."""
        return 0 if self.options is None else getattr(self.options, name, 0)

    @property
    def name(self) -> str:
        """``CONV_2D``; for a custom operator its own name; for an unknown builtin ``BUILTIN_300``."""
        if self.op == BuiltinOperator.CUSTOM:
            return self.custom_name
        known = self.op in BuiltinOperator._value2member_map_
        return BuiltinOperator(self.op).name if known else f"BUILTIN_{self.op}"


class Condition:
    """A condition on an `OpSignature`, to be combined by ``&``, ``|`` and ``~``.

    ``words`` say it, and ``opposite`` that it does not hold; ``{input[0]}`` and ``{output[0]}`` stand for operands.
    """

    def __init__(self, words: str, opposite: str, test: Callable[[OpSignature], object]) -> None:
        self.words = words
        self.opposite = opposite
        self.test = test

    def __call__(self, signature: OpSignature) -> bool:
        return bool(self.test(signature))

    def __and__(self, other: Condition) -> Condition:
        return _Joined("and", self, other)

    def __or__(self, other: Condition) -> Condition:
        return _Joined("or", self, other)

    def __invert__(self) -> Condition:
        return Condition(self.opposite, self.words, lambda signature: not self(signature))

    def describe(self, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> str:
        """The condition in words, with the operands' names; without names with their positions."""
        return self.words.format(input=_Names("input", inputs), output=_Names("output", outputs))

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


class _Joined(Condition):
    """Several conditions joined by "and" or "or"; more of the same word join flat."""

    def __init__(self, word: str, *parts: Condition) -> None:
        self.word = word
        self.parts: tuple[Condition, ...] = ()
        for part in parts:
            self.parts += part.parts if isinstance(part, _Joined) and part.word == word else (part,)
        join = all if word == "and" else any
        super().__init__(_words(self.parts, word), "", lambda signature: join(part(signature) for part in self.parts))

    def __invert__(self) -> Condition:
        return _Joined("or" if self.word == "and" else "and", *(~part for part in self.parts))


def _words(parts: tuple[Condition, ...], word: str) -> str:
    # A part that is joined itself is set off by brackets.
    texts = [f"({part.words})" if isinstance(part, _Joined) else part.words for part in parts]
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


class _Names:
    """Stands in `str.format` for the operands: ``{input[0]}``."""

    def __init__(self, what: str, names: Sequence[str]) -> None:
        self.what = what
        self.names = [name.rstrip("?*") for name in names]

    def __getitem__(self, position: int) -> str:
        if not self.names:
            return f"{self.what} {position}"
        return self.names[min(position, len(self.names) - 1)]


def input_type(position: int, *types: TensorType) -> Condition:
    """An input is of one of these types."""
    return _of_type(f"{{input[{position}]}}", types, lambda signature: signature.input(position).type)


def output_type(position: int, *types: TensorType) -> Condition:
    """An output is of one of these types."""
    return _of_type(f"{{output[{position}]}}", types, lambda signature: signature.output(position).type)


def _of_type(operand: str, types: tuple[TensorType, ...], look: Callable[[OpSignature], int | None]) -> Condition:
    listed = " or ".join(type_name(tensor_type) for tensor_type in types)
    return Condition(f"{operand} is {listed}", f"{operand} is not {listed}", lambda signature: look(signature) in types)


def in_and_out(tensor_type: TensorType) -> Condition:
    """The first input and the first output are both of this type."""
    return input_type(0, tensor_type) & output_type(0, tensor_type)


def in_or_out(*types: TensorType) -> Condition:
    """The first input or the first output is of one of these types."""
    return input_type(0, *types) | output_type(0, *types)


def operand_types(first: TensorType, second: TensorType, output: TensorType) -> Condition:
    """The first two inputs and the output are of these types: those of a contraction."""
    return input_type(0, first) & input_type(1, second) & output_type(0, output)


def _rank(position: int, words: str, test: Callable[[int], bool]) -> Condition:
    operand = f"{{input[{position}]}}"
    return Condition(
        f"{operand} has {words} dimensions",
        f"{operand} has not {words} dimensions",
        lambda signature: test(len(signature.input(position).shape)),
    )


def rank_is(position: int, rank: int) -> Condition:
    """An input has so many dimensions."""
    return _rank(position, str(rank), partial(int.__eq__, rank))


def rank_above(position: int, rank: int) -> Condition:
    """An input has more dimensions."""
    return _rank(position, f"more than {rank}", partial(int.__lt__, rank))


def broadcasts_above(rank: int) -> Condition:
    """The first two inputs differ in shape, and one of the inputs has more dimensions."""
    return Condition(
        f"inputs of different shapes have more than {rank} dimensions",
        f"inputs have one shape or at most {rank} dimensions",
        lambda signature: (
            len(signature.inputs) > 1
            and signature.inputs[0].shape != signature.inputs[1].shape
            and max(len(tensor.shape) for tensor in signature.inputs) > rank
        ),
    )


def option(name: str, value: object = None) -> Condition:
    """An option is set (neither 0 nor false), or has this value."""
    if value is None:
        return Condition(f"{name} is set", f"{name} is not set", lambda signature: signature.option(name))
    word = getattr(value, "name", value)
    return Condition(f"{name} is {word}", f"{name} is not {word}", lambda signature: signature.option(name) == value)


HAS_OPTIONS = Condition("options are stored", "no options are stored", lambda signature: signature.options is not None)
"""Any options at all. TFLite's test of ``quantized_bias_type``: it takes the schema's default for a set one."""


def input_count(count: int) -> Condition:
    """The operator has so many inputs; one that is left out as -1 counts."""
    return Condition(
        f"it has {count} inputs", f"it has not {count} inputs", lambda signature: len(signature.inputs) == count
    )


def given(position: int) -> Condition:
    """An optional input is there."""
    operand = f"{{input[{position}]}}"
    return Condition(
        f"{operand} is given", f"{operand} is left out", lambda signature: signature.input(position).type is not None
    )


def sparse(position: int) -> Condition:
    """An input is stored sparse."""
    operand = f"{{input[{position}]}}"
    return Condition(
        f"{operand} is sparse", f"{operand} is dense", lambda signature: signature.input(position).is_sparse
    )


def quantized(position: int) -> Condition:
    """An input has quantization parameters stored, be they empty."""
    operand = f"{{input[{position}]}}"
    return Condition(
        f"{operand} has quantization parameters",
        f"{operand} has no quantization parameters",
        lambda signature: signature.input(position).quantization is not None,
    )


def per_channel(position: int, dimension: int | None = None, *, least: int = 1) -> Condition:
    """An input has a scale for each index of a dimension, by default the one that it names, and at least so many."""
    return _per_channel(f"{{input[{position}]}}", lambda signature: signature.input(position), dimension, least)


def output_per_channel(position: int, *, least: int = 1) -> Condition:
    """The same for an output."""
    return _per_channel(f"{{output[{position}]}}", lambda signature: signature.output(position), None, least)


def _per_channel(
    operand: str, look: Callable[[OpSignature], TensorSpec], dimension: int | None, least: int
) -> Condition:
    def test(signature: OpSignature) -> bool:
        tensor = look(signature)
        if tensor.quantization is None:
            return False
        axis = tensor.quantization.quantized_dimension if dimension is None else dimension
        return 0 <= axis < len(tensor.shape) and least <= len(tensor.scales) == tensor.shape[axis]

    return Condition(f"{operand} has a scale for each channel", f"{operand} has no scale for each channel", test)
