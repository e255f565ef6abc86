"""What ships is closed: whatever can be lowered runs on it, on every target, with the bits of what LLVM would make."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import get_origin

import numpy as np
import pytest

from gossamer.codegen import kernels
from gossamer.codegen.basis import basis
from gossamer.codegen.dots import adds_pairs, crosses, multiplies_pairs, takes_signs
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.kernels.contract24 import narrowed
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_contract import QuantizedGemm
from gossamer.codegen.library import ensure
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import closed_tiles
from gossamer.delegates.jit import compiling
from gossamer.ops.depthwise_conv_2d import op as DEPTHWISE_CONV_2D
from gossamer.records import replace
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    MaximumMinimumOptions,
    QuantizationParameters,
    TensorType,
)
from gossamer.targets import Target, all_targets
from tests.delegates.jit.running import TARGETS, machine_code, outputs
from tests.delegates.jit.test_quantized_depthwise import layer as depthwise_layer
from tests.ops.cases import model_of
from tests.random_graphs import FORMS, Form, RandomGraph
from tests.runtime.graphs import ModelMaker

GRAPHS = 8, 200
"""Random graphs of each form: of them, and of them in slow tests."""

RUN = 3
"""How many of them run, too."""

NEEDS_A_COMPILER = {"Bf16Rows", "Turns"}
"""Kinds that are made for one model: a loop's own statements, which run as commands without a compiler. And those of
reduced precision, which is then not had."""

TILES, X86 = {"TileGemm", "WithTiles"}, {"ScaleRows"}
"""What only targets with tiles of bytes, or x86, have."""

WEIGHTS_OF_24_BITS = {"Gemm24", "Pack24"}
"""What only targets have that shift two words as one."""

INNER_PRODUCTS = {
    *("ContractGroups", "InnerProductGemm", "InnerProductRows", "Widen"),
    *("QuantizedStrassenInput", "QuantizedStrassenOutput", "QuantizedStrassenWeights"),
}
"""What only targets have that multiply bytes so, or whose base does."""


@cache
def shipped(target: Target) -> dict[str, KernelSpec]:
    return {spec.name: spec for member in target.family() for spec in basis(member)}


def kernel_types() -> Iterator[type[KernelSpec]]:
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            is_class = get_origin(found) is None  # `inspect` takes `tuple[int]` for one in Python 3.10
            is_kernel = is_class and issubclass(found, KernelSpec) and not inspect.isabstract(found)
            if is_kernel and found.__module__ == module.name:
                yield found


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_every_kind_of_kernel_ships(target: Target) -> None:
    missing = {found.__name__ for found in kernel_types()} - {type(spec).__name__ for spec in shipped(target).values()}
    assert missing == (
        NEEDS_A_COMPILER
        | (set() if target.tiles else TILES)
        | (set() if narrowed(target) < math.inf else WEIGHTS_OF_24_BITS)
        | (set() if target.triple.startswith("x86_64") else X86)
        | (set() if any(crosses(member) for member in target.family()) else INNER_PRODUCTS)
    )


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_every_kernel_that_ships_is_there_once_and_of_the_family(target: Target) -> None:
    names = [spec.name for spec in basis(target)]
    assert len(names) == len(set(names))
    assert {spec.isa for spec in shipped(target).values()} <= {member.name for member in target.family()}


@pytest.mark.slow
@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_every_kernel_that_ships_can_be_emitted(target: Target) -> None:
    for spec in basis(target):
        assert "@k(" in spec.emit(target)


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_depths_that_are_no_whole_steps_keep_their_tiles(target: Target) -> None:
    # As in most first convolutions, of three channels.
    isa = target.without_tiles
    for mr, nv in closed_tiles(isa, "quantized_gemm"):
        if min(mr, nv) > 1 and crosses(isa):
            continue  # they have other kernels, which know no steps
        if nv > 4 and isa.vector_bits == 256:
            continue  # these ship for whole steps only
        for clamps, relu in ((False, False), (False, True), (True, False)):
            spec = QuantizedGemm(isa.name, mr, nv, "i8", Requantized(clamps=clamps, relu=relu), "steps")
            spec = replace(spec, by_sign=takes_signs(isa, "i8", mr), narrow=adds_pairs(isa))
            found = next(one for one in (spec, *spec.general()) if one.name in shipped(isa))
            assert isinstance(found, QuantizedGemm)
            assert found.output == Requantized(clamps=True)


def made_of_what_ships(graph: KernelGraph, source: memoryview | None, target: Target) -> compiling.Made:
    made = compiling.made_of(graph, source, target, shipped(target).__contains__)
    ensure(made[0].specs.values(), target)
    return made


@pytest.mark.parametrize("count", [GRAPHS[0], pytest.param(GRAPHS[1], marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", FORMS)
def test_random_graphs_need_nothing_else(monkeypatch: pytest.MonkeyPatch, form: Form, count: int) -> None:
    built: list[str] = []

    def for_every_target(graph: KernelGraph, source: memoryview | None, target: Target) -> compiling.Made:
        for other in all_targets().values():
            made, _ = compiling.made_of(graph, source, other, shipped(other).__contains__)
            assert made.specs.keys() <= shipped(other).keys()
            built.append(other.name)
        return made_of_what_ships(graph, source, target)

    monkeypatch.setattr(compiling, "compiled_of", for_every_target)
    for seed in range(count):
        machine_code(RandomGraph(seed, form).model())  # which asserts that there is one program, of all nodes
    assert len(built) == count * len(all_targets())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("form", FORMS)
def test_random_graphs_keep_their_bits(monkeypatch: pytest.MonkeyPatch, form: Form, target: Target) -> None:
    for seed in range(RUN):
        graph = RandomGraph(seed, form)
        model, x = graph.model(), {0: graph.input()}
        interpreter, _ = machine_code(model, target=target)
        (expected,) = outputs(interpreter, x)
        with monkeypatch.context() as patch:
            patch.setattr(compiling, "compiled_of", made_of_what_ships)
            interpreter, kernel = machine_code(model, target=target)
        assert set(kernel.program.plan.kernels) <= shipped(target).keys()
        (found,) = outputs(interpreter, x)
        if expected.dtype == np.float32:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"seed {seed}")
        else:
            np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}")


def test_levels_are_made_and_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What joins QUANTIZE, an operator and DEQUANTIZE does not ship; each of them does."""
    make = ModelMaker()
    grid = QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.array([3]))
    x, other, y = (make.tensor(shape) for shape in ((4, 1), (1, 100), (4, 100)))
    levels = [make.tensor(shape, TensorType.INT8, quantization=grid) for shape in ((4, 1), (1, 100), (4, 100))]
    for real, level in ((x, levels[0]), (other, levels[1])):
        make.op("QUANTIZE", [real], [level])
    make.op("MAXIMUM", levels[:2], levels[2:], MaximumMinimumOptions())
    make.op("DEQUANTIZE", levels[2:], [y])
    make.io([x, other], [y])
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    _, kernel = machine_code(make.model(), target=TARGETS[0])
    assert kernel.program is not None
    assert {name.rpartition("__")[0] for name in kernel.program.plan.kernels} == {
        "f32_f32_f32_i8_map_mul_round_add_vss",
        "i8_map_max_sv",
        "i8_f32_f32_f32_map_tof32_sub_mul_vss",
    }


def test_the_end_of_a_normalization_is_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four functions do not ship, three of them do."""
    make = ModelMaker()
    x, deviation = make.tensor((16, 20)), make.tensor((16, 1))
    between = [make.tensor((16, 20)) for _ in range(3)]
    scale, offset = (make.constant(np.arange(20) + 0.5, np.float32, TensorType.FLOAT32) for _ in range(2))
    make.op("MUL", [x, deviation], between[:1])
    make.op("MUL", [between[0], scale], between[1:2])
    make.op("ADD", [between[1], offset], between[2:], AddOptions(fused_activation_function=ActivationFunctionType.RELU))
    make.io([x, deviation], between[2:])
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    _, kernel = machine_code(make.model(), target=TARGETS[0])
    assert kernel.program is not None
    names = {name.rpartition("__")[0] for name in kernel.program.plan.kernels}
    assert names == {"f32_map_mul_vs", "f32_map_mul_add_relu_vvv"}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_large_filters_share_rows_where_pairs_are_multiplied(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    case = depthwise_layer(1, np.int8, (1, 13, 14, 136), (7, 7))
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    interpreter, kernel = machine_code(model_of(DEPTHWISE_CONV_2D, case), target=target)
    assert kernel.program is not None
    names = {name.rpartition("__")[0].rpartition("_")[0] for name in kernel.program.plan.kernels}
    assert ("i8_dwconv_7x7s1staged" in names) == (multiplies_pairs(target) or bool(target.dot))
    (found,) = outputs(interpreter, {0: case.inputs[0].value})
    np.testing.assert_array_equal(found, case.outputs[0].value)
