"""Products of float32 with operands rounded to bfloat16: only where that is asked for, and no further off than that."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.delegates.jit import default_delegate
from gossamer.delegates.jit.delegate import JitDelegate, JitKernel
from gossamer.programs import host, plans
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    Conv3DOptions,
    FullyConnectedOptions,
    Padding,
    QuantizationParameters,
    TensorType,
)
from gossamer.targets import Target, all_targets, host_target, reduced
from tests.delegates.jit import test_guarded
from tests.delegates.jit.running import check, machine_code, outputs
from tests.delegates.jit.test_matmul import Inputs, integers
from tests.runtime.graphs import ModelMaker

FEATURE = "avx512bf16"

HOST = host_target(host.cpu_features())
BF16 = reduced(HOST, host.cpu_features()) if HOST is not None else None

WIDE = [target for target in all_targets().values() if target.vector_bits == 512]

here = pytest.mark.skipif(BF16 is None, reason="the CPU has no AVX-512-BF16")


def random_array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer(weights: np.ndarray, rows: int) -> bytes:
    """x W^T."""
    make = ModelMaker()
    x, y = make.tensor((rows, weights.shape[1])), make.tensor((rows, weights.shape[0]))
    w = make.constant(weights, np.float32, TensorType.FLOAT32)
    make.op("FULLY_CONNECTED", [x, w], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


def bytes_layer() -> bytes:
    """A layer of int8."""
    make, rng = ModelMaker(), np.random.default_rng(0)
    grid = QuantizationParameters(scale=np.array([0.1], np.float32), zero_point=np.array([0]))
    x, y = (make.tensor((9, 64), TensorType.INT8, quantization=grid) for _ in range(2))
    weights = make.constant(rng.integers(-99, 99, (64, 64)), np.int8, TensorType.INT8, quantization=grid)
    make.op("FULLY_CONNECTED", [x, weights], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


def kernels(kernel: JitKernel) -> set[str]:
    """Those of a program, and those that they call."""
    assert kernel.built is not None
    return {spec.name for spec in kernel.built.specs.values()}


def of_bf16(kernel: JitKernel) -> bool:
    """Whether a program has products of bfloat16, and none of float32."""
    names = kernels(kernel)
    return any(name.startswith("bf16_gemm") for name in names) and not any(
        name.startswith(("f32_gemm", "f32_conv", "f32_dot", "x8_strassen")) for name in names
    )


class Exact(Inputs):
    """Integers that bfloat16 has, whose sums float32 has: there is nothing to round."""

    def check(self, *outputs: int, fast: bool = True) -> None:
        """As the reference kernels compute it, on the fast path."""
        self.io(tuple(self.fed), outputs)
        model = self.model()
        check(model, self.fed, target=BF16)
        _interpreter, kernel = machine_code(model, target=BF16)  # which lives as long as the program
        assert of_bf16(kernel) == fast


@here
@pytest.mark.parametrize("depth", [16, 17, 31, 33, 64, 200])
@pytest.mark.parametrize(("rows", "units"), [(1, 300), (3, 72), (14, 65), (17, 80), (130, 100)])
def test_fully_connected_integers_are_exact(rows: int, depth: int, units: int) -> None:
    make = Exact(random.Random(rows + depth))
    x, weights, bias = make.operand(rows, depth), make.operand(units, depth, constant=True), make.operand(units)
    y = make.tensor((rows, units))
    options = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    make.op("FULLY_CONNECTED", [x, weights, bias], [y], options)
    make.check(y)


@here
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 32, 40), (16, 16, 64), (17, 33, 40), (40, 65, 70)])
def test_batches_of_computed_matrices_are_exact(rows: int, depth: int, columns: int, adjoint: bool) -> None:
    make = Exact(random.Random(rows))
    x = make.operand(2, 3, rows, depth)
    y = make.operand(2, 3, *((columns, depth) if adjoint else (depth, columns)))
    z, total = (make.tensor((2, 3, rows, columns)) for _ in range(2))
    make.op("BATCH_MATMUL", [x, y], [z], BatchMatMulOptions(adj_y=adjoint))
    make.op("ADD", [z, make.operand(2, 3, rows, columns)], [total], AddOptions())
    # A matrix that is read once, and lies so that it need not be packed, is not rounded either.
    make.check(total, fast=rows > 1 or not adjoint)


@here
@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize(("kernel", "depth", "groups"), [(1, 16, 1), (2, 5, 1), (3, 7, 1), (3, 9, 2), (5, 3, 1)])
def test_convolutions_of_integers_are_exact(
    kernel: int, depth: int, groups: int, stride: int, dilation: int, padding: Padding
) -> None:
    make = Exact(random.Random(kernel))
    x = make.operand(2, 13, 12, depth * groups)
    filter, bias = make.operand(70 * groups, kernel, kernel, depth, constant=True), make.operand(70 * groups)
    extent = (kernel - 1) * dilation + 1
    size = [-(-n // stride) if padding == Padding.SAME else (n - extent) // stride + 1 for n in (13, 12)]
    y = make.tensor((2, *size, 70 * groups))
    options = Conv2DOptions(
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
    )
    make.op("CONV_2D", [x, filter, bias], [y], options)
    make.check(y)


@here
def test_weights_of_float16_are_exact() -> None:
    make = Exact(random.Random(0))
    x, y, weights = make.operand(9, 37), make.tensor((9, 50)), make.tensor((50, 37))
    stored = make.constant(integers(make.choose, (50, 37)), np.float16, TensorType.FLOAT16)
    make.op("DEQUANTIZE", [stored], [weights], version=3)
    make.op("FULLY_CONNECTED", [x, weights], [y], FullyConnectedOptions())
    make.check(y)


@here
@pytest.mark.parametrize("kernel", [1, 3])
def test_volumes_of_integers_are_exact(kernel: int) -> None:
    make = Exact(random.Random(kernel))
    x, y = make.operand(2, 4, 5, 6, 17), make.tensor((2, 4, 5, 6, 70))
    filter = make.operand(kernel, kernel, kernel, 17, 70, constant=True)
    options = Conv3DOptions(padding=Padding.SAME, stride_d=1, stride_h=1, stride_w=1)
    make.op("CONV_3D", [x, filter], [y], options)
    make.check(y)


@here
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(3, 33, 40), (17, 65, 17), (14, 32, 64)])
def test_it_stays_between_guards(rows: int, depth: int, columns: int, adjoint: bool) -> None:
    make = Exact(random.Random(0))
    x, y = make.operand(rows, depth), make.operand(*((columns, depth) if adjoint else (depth, columns)))
    z = make.tensor((rows, columns))
    make.op("BATCH_MATMUL", [x, y], [z], BatchMatMulOptions(adj_y=adjoint))
    make.io(tuple(make.fed), (z,))
    assert BF16 is not None
    test_guarded.check(make.model(), [BF16])


@here
@pytest.mark.parametrize(("rows", "depth", "units"), [(2, 15, 400), (40, 100, 16), (40, 20, 40)])
def test_small_products_stay_as_they_are(rows: int, depth: int, units: int) -> None:
    """Of little depth, of a vector of channels, or of few weights."""
    make = Exact(random.Random(0))
    y = make.tensor((rows, units))
    operands = [make.operand(rows, depth), make.operand(units, depth, constant=True)]
    make.op("FULLY_CONNECTED", operands, [y], FullyConnectedOptions())
    make.check(y, fast=False)


@here
@pytest.mark.parametrize("rounds_weights", [False, True])
def test_operands_are_rounded_to_the_nearest_bfloat16(rounds_weights: bool) -> None:
    """Ties to even; what is not a number or infinite stays."""
    values = np.ldexp(random_array(32, 32), np.random.default_rng(1).integers(-120, 120, (32, 32))).astype(np.float32)
    values[0, :8] = np.arange(0x3F800000, 0x3F800000 + 8 * 0x4000, 0x4000, dtype=np.uint32).view(np.float32)
    values[1, 0] = values[1, 1] = 0
    identity = np.eye(32, dtype=np.float32)
    x, weights = (identity, values.T.copy()) if rounds_weights else (values, identity)
    interpreter, kernel = machine_code(layer(weights, 32), target=BF16)
    assert of_bf16(kernel)
    (y,) = outputs(interpreter, {0: x})
    np.testing.assert_array_equal(y, values.astype(ml_dtypes.bfloat16).astype(np.float32))


@here
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_stays_so(value: float) -> None:
    x = np.ones((2, 33), np.float32)
    x[1, 32] = value
    (y,) = outputs(machine_code(layer(np.ones((40, 33), np.float32), 2), target=BF16)[0], {0: x})
    np.testing.assert_array_equal(y, [[33] * 40, [value] * 40])


@here
@pytest.mark.parametrize(("rows", "depth", "units"), [(1, 500, 100), (30, 1001, 65), (128, 256, 256)])
def test_the_error_is_that_of_the_operands(rows: int, depth: int, units: int) -> None:
    """An operand rounded to 8 bits is off by a factor of 1 + d, |d| <= u / (1 + u), u = 2^-8; a product so by
    |d1 + d2 + d1 d2| <= (2 u + 3 u²) / (1 + u)² < 2^-7. Each of the sums is off by 2^-24 of all that was added."""
    x, weights = random_array(rows, depth), random_array(units, depth, seed=1)
    interpreter, kernel = machine_code(layer(weights, rows), target=BF16)
    assert of_bf16(kernel)
    (y,) = outputs(interpreter, {0: x})
    wide_x, wide_weights = x.astype(np.float64), weights.astype(np.float64)
    bound = (2.0**-7 + 1.1 * depth * 2.0**-24) * (np.abs(wide_x) @ np.abs(wide_weights).T)
    error = np.abs(y - wide_x @ wide_weights.T)
    assert (error <= bound).all()
    assert error.max() > 2.0**-20 * bound.max()  # it has been rounded


# What is asked for


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A model whose product would go by Strassen's algorithm."""
    model = tmp_path / "model.tflite"
    model.write_bytes(layer(random_array(256, 256), 128))
    return str(model)


def run(path: str, **options: Any) -> tuple[np.ndarray, Interpreter]:
    interpreter = Interpreter(path, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, random_array(128, 256, seed=2))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


def program(interpreter: Interpreter) -> JitKernel:
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    return kernel


@here
def test_it_is_off_unless_it_is_allowed_and_nothing_is_mixed(path: str) -> None:
    """Also of a file that is known, whichever was first."""
    for _ in range(2):
        plain, first = run(path)
        fast, second = run(path, allow_reduced_precision=True)
        off, third = run(path, allow_reduced_precision=False)
        assert plain.tobytes() == off.tobytes() != fast.tobytes()
        for interpreter in (first, third):
            assert program(interpreter).target is HOST
            assert not any("bf16" in name for name in kernels(program(interpreter)))
        assert program(second).target == BF16
        assert of_bf16(program(second))
    assert fast.tobytes() == run(path, allow_reduced_precision=True, num_threads=2)[0].tobytes()


@here
def test_a_clone_is_allowed_what_its_original_is(path: str) -> None:
    fast, interpreter = run(path, allow_reduced_precision=True)
    other = interpreter.clone()
    other.set_tensor(0, random_array(128, 256, seed=2))
    other.invoke()
    assert other.get_tensor(other.get_output_details()[0]["index"]).tobytes() == fast.tobytes()
    assert program(other).target == BF16


@pytest.mark.skipif(HOST is None, reason="no machine code for this CPU")
def test_a_cpu_without_it_computes_as_ever(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gossamer")
    plain, _ = run(path)
    features = host.cpu_features() - {FEATURE}
    monkeypatch.setattr(host, "cpu_features", lambda: features)
    same, interpreter = run(path, allow_reduced_precision=True)
    assert same.tobytes() == plain.tobytes()
    assert program(interpreter).target is HOST
    (message,) = {record.getMessage() for record in caplog.records if "allow_reduced" in record.getMessage()}
    assert message.startswith("allow_reduced_precision changes nothing: this CPU, or ")


@here
def test_without_a_compiler_it_computes_as_ever(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gossamer")
    monkeypatch.setattr("gossamer.delegates.jit.is_llvm_here", lambda: False)
    delegate = default_delegate(1, True)
    assert isinstance(delegate, JitDelegate)
    assert delegate.target is HOST
    (record,) = [record for record in caplog.records if "allow_reduced" in record.getMessage()]
    assert record.getMessage().endswith("its kernels do not ship, and nothing can be compiled here")


@pytest.mark.skipif(HOST is None, reason="no machine code for this CPU")
@pytest.mark.parametrize("target", WIDE, ids=lambda target: target.name)
def test_only_products_of_float32_are_others(target: Target) -> None:
    """Kernels of a target and of those that it extends, with AMX, too; those of bfloat16 are all that is for it."""
    found = reduced(target, {FEATURE})
    assert found is not None
    _interpreter, of_bytes = machine_code(bytes_layer())
    plain, same = of_bytes.built_for(target), of_bytes.built_for(found)
    assert plain is not None
    assert same is not None
    assert plain.specs == same.specs
    assert plans.plain(plain.plan) == plans.plain(same.plan)
    _interpreter, of_floats = machine_code(layer(random_array(64, 64), 20))
    built = of_floats.built_for(found)
    assert built is not None
    assert {name for name, spec in built.specs.items() if spec.isa == found.name} == {
        name for name in built.specs if "bf16_" in name
    }
    assert any(name.startswith("bf16_gemm") for name in built.specs)


@pytest.mark.parametrize("target", all_targets().values(), ids=list(all_targets()))
def test_targets(target: Target) -> None:
    """It adds products of bfloat16 to vectors of 512 bits, for which there are instructions."""
    assert reduced(target, target.requires) is None
    found = reduced(target, {*target.requires, FEATURE})
    assert (found is not None) == (target.vector_bits == 512)
    if found is not None:
        assert found.name == f"{target.name}bf16"
        assert found.exact is found.base is target is target.exact
        assert found.plain is target.plain
        assert found.has(FEATURE)
        assert found.requires - target.requires == {FEATURE}
        assert not found.runs_on(target.requires)
        assert host_target(found.requires) in all_targets().values()
