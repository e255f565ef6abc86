from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.blob import extract
from gossamer.codegen.compiler import _llvm, _machine
from gossamer.codegen.ir import F32, I64, PTR, Function, Module, Type, vector
from gossamer.codegen.spec import ArgumentBlock
from gossamer.programs import host
from gossamer.targets import Target, all_targets
from tests.codegen.kernels import harness
from tests.codegen.kernels.harness import filled, guarded, on_every_target

AVX2 = all_targets()["avx2"]


def body(f: Function) -> list[str]:
    """The instructions of a function."""
    return [line.strip() for line in f.text().splitlines()[2:-2]]


def run(module: Module, *arguments: int) -> None:
    """Compile the module and call its entry."""
    with _llvm() as llvm:
        machine = _machine(module.target)
        parsed = llvm.parse_assembly(module.text())
        parsed.verify()
        parsed.triple, parsed.data_layout = module.target.triple, str(machine.target_data)
        blob = extract(machine.emit_object(parsed))
    if harness.machine is not None:
        harness.call(harness.machine.load(blob), *arguments)
    else:
        memory = host.ExecutableMemory.from_bytes(blob.code)
        harness.call(memory.address + blob.entry, *arguments)


def test_types() -> None:
    assert str(vector("float", 8)) == "<8 x float>"
    assert vector("float", 8).suffix == "v8f32"
    assert vector("float", 8).scalar is F32
    assert vector("float", 8).with_element("i1") == Type("i1", 8)
    assert not I64.is_float


def test_integer_constants_fold() -> None:
    f = Module(AVX2).driver()
    x = f.parameters[1]
    assert (f.integer(6) * 7 + 1).constant == 43
    assert (x * 0).constant == 0
    assert x * 1 is x
    assert 0 + x is x
    assert x // 1 is x
    assert body(f) == []
    assert f.offset(f.parameters[0], 0) is f.parameters[0]


def test_instructions_follow_the_type() -> None:
    f = Module(AVX2).driver()
    p, x, _ = f.parameters
    y = f.load(F32, f.at(p, x))
    _ = y + 1.0, -y, x - 3, x // 5
    assert body(f) == [
        "%v1 = getelementptr float, ptr %args, i64 %tid",
        "%v2 = load float, ptr %v1, align 4",
        "%v3 = fadd float %v2, 0x3FF0000000000000",
        "%v4 = fneg float %v2",
        "%v5 = sub nsw i64 %tid, 3",
        "%v6 = udiv i64 %tid, 5",
    ]


def test_constants_are_rounded_to_their_type() -> None:
    f = Module(AVX2).driver()
    assert f.constant(F32, 0.1).text == "0x3FB99999A0000000"
    assert f.constant(f.f32, 1.0).text == "splat (float 0x3FF0000000000000)"
    assert f.constant(f.f32, 0.0).text == "zeroinitializer"
    assert f.constant(f.f32, -0.0).text == "splat (float 0x8000000000000000)"


def test_intrinsics_are_declared_once() -> None:
    module = Module(AVX2)
    f = module.driver()
    x = f.constant(f.f32, 2.0)
    f.fma(f.fma(x, x, x), x, x)
    assert module.text().count("declare <8 x float> @llvm.fma.v8f32") == 1


def test_a_loop_of_one_turn_leaves_no_trace() -> None:
    f = Module(AVX2).driver()
    with f.loop(0, 4, 4, carry=[f.parameters[1]]) as loop:
        loop.hand_on([loop.values[0] + 1])
    assert body(f) == ["%v1 = add nsw i64 %tid, 1"]
    assert loop.results[0].text == "%v1"


@pytest.mark.parametrize(
    "bounds", [(0, 0, 1), (0, 1, 1), (0, 7, 1), (0, 7, 3), (2, 3, 4), (5, 2, 1), (-3, 4, 2), (0, 9, 9)]
)
@pytest.mark.parametrize("known", [True, False])
def test_loops(bounds: tuple[int, int, int], known: bool) -> None:
    target = next(iter(all_targets()[name] for name in ("avx2", "neon") if runs(name)))
    module = Module(target)
    f = module.function("k", (PTR, "out"), (I64, "start"), (I64, "stop"), (I64, "step"))
    out, *given = f.parameters
    start, stop, step = bounds if known else given
    with f.loop(start, stop, step, carry=[f.integer(0), f.integer(100)]) as loop:
        count, total = loop.values
        loop.hand_on([count + 1, total + loop.index])
    for at, value in enumerate(loop.results):
        f.store(value, f.at(out, at, "i64"))
    result = np.zeros(2, np.int64)
    run(module, result.ctypes.data, *bounds)
    assert list(result) == [len(range(*bounds)), 100 + sum(range(*bounds))]


@pytest.mark.parametrize("unroll", [1, 4])
@pytest.mark.parametrize("carried", [False, True])
@on_every_target
def test_vectors_touch_every_element_once(target: Target, carried: bool, unroll: int) -> None:
    module = Module(target)
    f = module.function("k", (PTR, "x"), (PTR, "y"), (PTR, "total"), (I64, "count"))
    x, y, total, count = f.parameters

    def add(at, parts, carry):  # type: ignore[no-untyped-def]
        sums = list(carry)
        for v, part in enumerate(parts):
            value = part.load(f.at(f.offset(x, at), v * f.lanes))
            part.store(value + 1.0, f.at(f.offset(y, at), v * f.lanes))
            if carry:
                sums[0] = sums[0] + part.keep(value, 0.0)
        return sums

    results = f.vectors(count, add, unroll, carry=[f.constant(f.f32, 0.0)] if carried else [])
    if carried:
        f.store(f.fold(lambda a, b: a + b, results[0]), total)
    for n in (0, 1, f.lanes - 1, f.lanes, f.lanes + 1, 4 * f.lanes, 5 * f.lanes + 2):
        numbers, to, sums = guarded(np.arange(n, dtype=np.float32)), filled([n]), filled([1], -1)
        run(module, numbers.ctypes.data, to.ctypes.data, sums.ctypes.data, n)
        np.testing.assert_array_equal(to, numbers + 1)
        assert sums[0] == (numbers.sum() if carried else -1)


@on_every_target
def test_shares_are_a_partition(target: Target) -> None:
    module = Module(target)
    f = module.driver()
    block = ArgumentBlock("*out count")
    a = f.arguments(block)
    with f.share(a.count) as task:
        place = f.at(a.out, task, "i64")
        f.store(f.load(I64, place) + 1, place)
    for count in (0, 1, 2, 7, 24):
        for threads in (1, 2, 3, 8):
            out = guarded(np.zeros(count, np.int64))
            arguments = guarded(np.array([out.ctypes.data, count]))
            for tid in range(threads):
                run(module, arguments.ctypes.data, tid, threads)
            assert (out == 1).all()


def test_unknown_arguments_are_named() -> None:
    f = Module(AVX2).driver()
    with pytest.raises(AttributeError, match=r"has x, y; no z\."):
        _ = f.arguments(ArgumentBlock("*x y")).z


def test_text_is_the_same_every_time() -> None:
    def text() -> str:
        module = Module(AVX2)
        f = module.driver()
        p, count, _ = f.parameters
        f.vectors(count, lambda at, parts, _: parts[0].store(parts[0].load(p) + 1.0, p))
        return module.text()

    assert text() == text()


def runs(name: str) -> bool:
    return all_targets()[name].runs_on(host.cpu_features())
