"""What ships: for every kind of kernel, general forms that do whatever a model may ask for, and the forms that most
models ask for. No list of networks: tiles, functions and types are taken from where they are declared.

A *basis* is closed: with its kernels and no compiler, every graph that can be lowered runs as machine code, with the
same bits (`gossamer.codegen.commands.Build`, `gossamer.codegen.split`). `tests/codegen/test_basis.py` holds it to that.
What is quicker than general forms is there where it pays for many shapes: epilogues that are common, and tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from itertools import product
from pkgutil import iter_modules
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from gossamer.codegen import kernels
from gossamer.codegen.commands.quantized_depthwise import KNOWN
from gossamer.codegen.commands.quantized_winograd import tiles_of
from gossamer.codegen.dots import Byte, has_halves
from gossamer.codegen.elements import ELEMENT_OF, ELEMENTS
from gossamer.codegen.expression import FUNCTIONS, IDENTITY, Expression
from gossamer.codegen.kernels import quantized_reduce, quantized_window, window
from gossamer.codegen.kernels.arg_reduce import ArgReduce
from gossamer.codegen.kernels.contract import Gemm
from gossamer.codegen.kernels.contract16 import Contract16
from gossamer.codegen.kernels.depthwise import MULTIPLIERS, DepthwiseRow
from gossamer.codegen.kernels.dot import MAX_ROWS, Dot
from gossamer.codegen.kernels.dynamic import QuantizeRows, levels_of
from gossamer.codegen.kernels.elementwise import Map
from gossamer.codegen.kernels.enter import EnterSpec
from gossamer.codegen.kernels.fill import Fill
from gossamer.codegen.kernels.gather import Gather
from gossamer.codegen.kernels.groups import PREFETCH
from gossamer.codegen.kernels.hybrid import HybridDepthwiseRow, HybridGemm
from gossamer.codegen.kernels.move import Transpose
from gossamer.codegen.kernels.nonzero import Nonzero
from gossamer.codegen.kernels.normalize import Norm, Normalize
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.kernels.pack_depthwise import PackDepthwise, scheme, widths
from gossamer.codegen.kernels.push import Push
from gossamer.codegen.kernels.quantized_contract import STEP, QuantizedGemm, QuantizedPack, Walk
from gossamer.codegen.kernels.quantized_depthwise import HELD, QuantizedDepthwise, QuantizedRows
from gossamer.codegen.kernels.quantized_normalize import QuantizedNormalize
from gossamer.codegen.kernels.quantized_resize import QuantizedResize
from gossamer.codegen.kernels.quantized_softmax import QuantizedSoftmax
from gossamer.codegen.kernels.quantized_winograd import (
    QuantizedWinogradInput,
    QuantizedWinogradOutput,
    QuantizedWinogradProduct,
    QuantizedWinogradWeights,
)
from gossamer.codegen.kernels.reduce import Reduce, Reduction
from gossamer.codegen.kernels.scale import ScaleRows, runs
from gossamer.codegen.kernels.scan import TYPES as SCANNED
from gossamer.codegen.kernels.scan import Scan
from gossamer.codegen.kernels.scatter import COMBINES, Scatter, known_as
from gossamer.codegen.kernels.strassen import StrassenOutput
from gossamer.codegen.kernels.tile_contract import SUMS, TileGemm, WithTiles
from gossamer.codegen.kernels.topk import TopK
from gossamer.codegen.kernels.walk import Convention, WalkSpec
from gossamer.codegen.kernels.winograd import WinogradOutput
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import closed_tiles, few_tiles
from gossamer.targets import Target

RELU, RELU6, SILU = ("relu", 0), ("relu6", 0), ("mul", 0, ("logistic", 0))
ACTIVATIONS: tuple[Expression, ...] = (RELU, RELU6, ("hardswish", 0), SILU)
"""What follows most convolutions of floats."""

ENDINGS: tuple[Expression, ...] = (IDENTITY, *ACTIVATIONS, ("gelu", 0), ("add", 0, 1), ("relu", ("add", 0, 1)))
"""What follows most products of floats."""

BYTE_ENDINGS: tuple[Expression, ...] = (("qadd", 0, 1, 2), ("qadd", 1, 0, 2), ("lookup", 0, 1))
"""What follows most products of bytes: a residual sum, and any function of a byte."""

BYTES: tuple[Byte, ...] = get_args(Byte)

WINDOWS = tuple((size, size, stride) for size in (3, 5, 7) for stride in (1, 2))
"""Depthwise kernels, and the steps between pixels, for which there are kernels that have them written out."""

WALKS: tuple[tuple[Walk, int], ...] = (("taps", 0), *(("steps", short) for short in range(STEP)))
"""All ways through the depth of a product of bytes: any depth is one of them."""

PIXELS = (7, 4, 1)
"""Of a depthwise row at a time."""

NUMBERS = tuple(name for name in ELEMENT_OF.values() if name != "bool" and ELEMENTS[name].computed == name)
SIZES = (8, 16, 32, 64)


def basis(target: Target) -> Iterator[KernelSpec]:
    """The specs of everything that ships for a target, each once; not what one that it extends has."""
    parts = [_bytes(target), _dynamic(target)]
    if target.base is None:
        parts += [_small(target), _floats(target), _maps(target), _movements(target), _integers(target)]
    elif target.tiles:
        parts = [_tiles(target)]
    return iter({spec.name: spec for part in parts for spec in part}.values())


FOR_SOME = (EnterSpec, WalkSpec, Pack, WithTiles, ScaleRows)
"""Kinds not all of whose forms are for every target."""


def _small(target: Target) -> Iterator[KernelSpec]:
    """Every form of the kinds that have few: none but flags and choices to decide."""
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for kind in vars(import_module(module.name)).values():
            if not isinstance(kind, type) or kind.__module__ != module.name or isabstract(kind):
                continue
            if not issubclass(kind, KernelSpec) or kind in FOR_SOME:
                continue
            fields = {name: type for name, type in get_type_hints(kind).items() if get_origin(type) is not ClassVar}
            del fields["isa"]
            choices = [
                (False, True) if type is bool else get_args(type) if get_origin(type) is Literal else ()
                for type in fields.values()
            ]
            if all(choices):
                yield from (kind(target.name, *form) for form in product(*choices))
    for convention in get_args(Convention) if target.triple.startswith("x86_64") else ("",):
        yield EnterSpec(target.name, convention)
        yield from (WalkSpec(target.name, convention, timed) for timed in (False, True))
    for by_depth in (False, True):
        yield from (Pack(target.name, by_depth, *types) for types in (("f32",), ("f16",), ("f16", "f16")))


def _floats(target: Target) -> Iterator[KernelSpec]:
    """Sums of products, windows and rows of floats."""
    isa = target.name
    lasts = [(False, False), (True, False)] + [(True, True)] * (target.vector_bits == 512)
    for (mr, nv), (ragged, half) in product(closed_tiles(target, "gemm"), lasts):
        yield Gemm(isa, mr, nv, IDENTITY, ragged=ragged, half=half, prefetch=PREFETCH)
        yield Gemm(isa, mr, nv, IDENTITY, True, ragged, True, half=half)
        yield from (Gemm(isa, mr, nv, ending, True, ragged, half=half) for ending in ENDINGS)
    for rows, nr, ending in product(range(1, MAX_ROWS + 1), (1, 2, 4), (*ENDINGS, ("logistic", 0), ("tanh", 0))):
        if (rows + 1) * nr <= target.registers:
            yield Dot(isa, rows, nr, ending)
            if ending == IDENTITY:
                yield Dot(isa, rows, nr, ending, "f16")
    for pixels in PIXELS:
        yield from (DepthwiseRow(isa, pixels, multiplier=number) for number in MULTIPLIERS)
        yield from (
            DepthwiseRow(isa, pixels, end, window) for end, window in product((IDENTITY, *ACTIVATIONS), WINDOWS)
        )
    for size in (2, 4):
        yield from (WinogradOutput(isa, size, ending) for ending in ENDINGS)
    yield from (StrassenOutput(isa, ending) for ending in ENDINGS)
    for reduction, along in product(get_args(Reduction), (False, True)):
        yield Reduce(isa, reduction, along)
    for reduction, ending in product(get_args(window.Reduction), (IDENTITY, RELU, RELU6)):
        yield window.Window(isa, reduction, ending)
    yield from (Normalize(isa, norm) for norm in get_args(Norm))


def _maps(target: Target) -> Iterator[KernelSpec]:
    """Every function of every type that it has, of tensors and of single elements; and every conversion."""
    for (type, other), letter in product(product(ELEMENT_OF.values(), repeat=2), "vs"):
        yield Map(target.name, IDENTITY, letter, () if type == other == "f32" else (type, other))
    for name, function in FUNCTIONS.items():
        if name.startswith("to") and name[2:] in ELEMENTS:
            continue  # which is a conversion
        for type, element in ELEMENTS.items():
            if element.computed == type and element.kind in function.emit and function.bits in (0, element.bits):
                yield from _maps_of(target.name, name, type)
    # What follows in one pass is read only once: sums and products with an activation, and the like of two.
    for first, letters in product(("add", "mul", "sub"), ("vv", "vs")):
        yield from (Map(target.name, (ending[0], (first, 0, 1)), letters) for ending in (RELU, RELU6))
    yield Map(target.name, SILU, "v")


def _maps_of(isa: str, name: str, type: str) -> Iterator[KernelSpec]:
    function = FUNCTIONS[name]
    tensors = function.arity - (function.reads is not None)
    types = [type] * tensors
    if function.chooses:
        types[0] = "bool"
    # Tables are of bytes; other parameters are words.
    for of_parameters in ("",) if function.reads is None else ("u8",) if function.of_parameters else ("i32",):
        result = of_parameters if function.of_parameters else function.result or type
        all_types = (*types, *[of_parameters] * bool(of_parameters), result)
        for letters in product("vs", repeat=tensors):
            operands = "".join(letters) + "p" * bool(of_parameters)
            if name == "lookuprow" and operands[1] != "s":
                continue
            if function.of_parameters:
                all_types = ("u8",) * len(all_types)  # whatever they mean
            yield Map(isa, (name, *range(function.arity)), operands, () if set(all_types) == {"f32"} else all_types)


def _movements(target: Target) -> Iterator[KernelSpec]:
    """What moves elements of every size, and finds them."""
    isa = target.name
    for bits in SIZES:
        yield from (Transpose(isa, bits), Fill(isa, bits), Push(isa, bits))
        for index_bits, clamps, puts in product((16, 32, 64), (False, True), (False, True)):
            yield Gather(isa, bits, index_bits, clamps, puts)
    yield from (Scan(isa, exclusive, type) for exclusive, type in product((False, True), SCANNED))
    for type, combine in product(ELEMENT_OF.values(), COMBINES):
        if combine not in ("add", "mul") or type != "bool":
            yield Scatter(isa, known_as(type, combine), combine)
    for type in NUMBERS:
        yield Nonzero(isa, type)
        if type != "f64":
            yield TopK(isa, type)
            for greatest, along, index in product((False, True), (False, True), ("i32", "i64")):
                yield ArgReduce(isa, greatest, along, type, index)


def _integers(target: Target) -> Iterator[KernelSpec]:
    """Of quantised integers, what needs no dot products of bytes."""
    isa = target.name
    for type in BYTES:
        yield from (QuantizedNormalize(isa, type), QuantizedResize(isa, type))
    for small in (*BYTES, "i16"):
        for reduction, along in product(get_args(quantized_reduce.Reduction), (False, True)):
            yield quantized_reduce.QuantizedReduce(isa, reduction, along, small)
        yield quantized_window.QuantizedWindow(isa, "max", small)
        yield from (quantized_window.QuantizedWindow(isa, "mean", small, wide) for wide in (False, True))
    yield from (QuantizeRows(isa, type, together) for type in BYTES for together in (1, 4))


def _bytes(target: Target) -> Iterator[KernelSpec]:
    """Sums of products of bytes."""
    isa = target.name
    lasts = [(False, False), (True, False)] + [(True, True)] * has_halves(target)
    for (mr, nv), (ragged, half) in product(closed_tiles(target, "quantized_gemm"), lasts):
        last: dict[str, Any] = {"ragged": ragged, "half": half}
        for ending in (IDENTITY, *BYTE_ENDINGS):
            yield QuantizedGemm(isa, mr, nv, "i8", ending, "taps", **last)
        for type in BYTES:
            yield QuantizedGemm(isa, mr, nv, type, walk="taps", clamps=True, **last)
            yield QuantizedGemm(isa, mr, nv, type, walk="steps", clamps=True, **last)
        if not half:
            yield QuantizedGemm(isa, mr, nv, "u8", walk="taps", clamps=True, large=True, shifted=True, **last)
    for (mr, nv), type, ragged in product(few_tiles(target, "quantized_gemm"), BYTES, (False, True)):
        for walk, short in WALKS:
            form: dict[str, Any] = {"walk": walk, "short": short, "ragged": ragged}
            yield QuantizedGemm(isa, mr, nv, type, clamps=True, large=True, **form)
            yield QuantizedGemm(isa, mr, nv, type, clamps=True, large=True, shifted=True, nudged=True, **form)
            yield QuantizedGemm(isa, mr, nv, type, sums=True, shifted=True, **form)
    yield from (QuantizedPack(isa, *form) for form in product((False, True), repeat=2))
    yield from _depthwise_of_bytes(target)
    for deep in (False, True):
        yield QuantizedWinogradWeights(isa, deep)
        yield from (QuantizedWinogradInput(isa, type, deep, half) for type in BYTES for half in (False, True))
        yield from (QuantizedWinogradProduct(isa, mr, deep) for mr in range(1, tiles_of(target) + 1))
        for type, ending, general in product(BYTES, (IDENTITY, *BYTE_ENDINGS), (False, True)):
            yield QuantizedWinogradOutput(isa, type, ending, general, general, deep)
    for type, (result, log) in product(BYTES, (("", False), ("", True), ("i16", False))):
        yield QuantizedSoftmax(isa, type, result or type, log)
    if runs(target):
        yield from (ScaleRows(isa, clamps) for clamps in (False, True))
    if target.has("avx512vbmi"):
        yield from (spec for name in ("lookup", "lookuprow") for spec in _maps_of(isa, name, "i8"))
    for mr, nv, wide in product((1, 4), (1, 2 if target.lanes() >= 8 else 4), (False, True)):
        yield Contract16(isa, mr, nv, wide)


def _depthwise_of_bytes(target: Target) -> Iterator[KernelSpec]:
    isa = target.name
    yield QuantizedDepthwise(isa)
    items = {scheme(target, width).item for width in widths(target)}
    yield from (PackDepthwise(isa, type, item, layers) for type in BYTES for item in items for layers in (1, 2))
    for type, width, layers in product(BYTES, widths(target), (1, 2)):
        lasts = (False, True) if width == widths(target)[-1] else (False,)
        for ragged in lasts:
            yield QuantizedRows(isa, type, width, layers=layers, ragged=ragged, clamps=True, saturates=True)
    for type, width, (height, across, step), rows in product(BYTES, widths(target), WINDOWS, (1, 2)):
        if height * across > KNOWN or (rows == 2 and step > 1):
            continue
        lasts = (False, True) if width == widths(target)[-1] else (False,)
        large = height * across > HELD
        for ragged, kept in product(lasts, (0, step)):
            if kept and large and not target.dot and target.registers < 32:
                continue
            staged = bool(kept) and large and bool(target.dot) and step == 1
            form = ((height, across, kept), rows, 1 + staged)
            for clamps in (False, True):
                yield QuantizedRows(isa, type, width, *form, staged=staged, ragged=ragged, clamps=clamps)


def _dynamic(target: Target) -> Iterator[KernelSpec]:
    """Products of bytes whose grid is made when the model runs."""
    plain, type = target.plain.name, levels_of(target)
    for (mr, nv), ragged, image in product(closed_tiles(target, "quantized_gemm"), (False, True), (False, True)):
        for ending in (IDENTITY, RELU) if image else (IDENTITY, RELU, RELU6):
            yield HybridGemm(target.name, mr, nv, type, ending, "taps", ragged=ragged, image=image)
    for (mr, nv), ragged, image in product(few_tiles(target, "quantized_gemm"), (False, True), (False, True)):
        for walk, short in WALKS:
            yield HybridGemm(target.name, mr, nv, type, walk=walk, short=short, ragged=ragged, image=image)
    if target.base is None:
        for pixels in PIXELS:
            yield from (HybridDepthwiseRow(plain, pixels, multiplier=number) for number in MULTIPLIERS)
            yield from (HybridDepthwiseRow(plain, pixels, IDENTITY, window) for window in WINDOWS[:2])


def _tiles(target: Target) -> Iterator[KernelSpec]:
    yield WithTiles(target.name)
    for mr, nv, type, rest, ragged in product((1, 2, 3, 4), (1, 2, 3, 4), BYTES, (False, True), (False, True)):
        if mr * nv <= SUMS:
            form: dict[str, Any] = {"conv": True, "rest": rest, "ragged": ragged}
            yield TileGemm(target.name, mr, nv, type, clamps=True, large=True, **form)
            for ending in (IDENTITY, *BYTE_ENDINGS) if type == "i8" else (IDENTITY,):
                yield TileGemm(target.name, mr, nv, type, ending, **form)
