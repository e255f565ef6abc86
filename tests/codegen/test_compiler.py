from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from gossamer.codegen import compiler
from gossamer.codegen.compiler import assembly, compile_kernel, compile_kernels
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.texts import Text
from tests.programs.kernels import Add, call, kernels_in_memory, target_here

TARGETS = all_targets()


@pytest.fixture(scope="module")
def target() -> Target:
    return target_here()


def numbered(target: Target, count: int) -> list[KernelSpec]:
    return [
        Text(target.name, str(number), f"define i32 @k() nounwind {{\n ret i32 {number}\n}}") for number in range(count)
    ]


def test_equal_specs_are_equal_code(target: Target) -> None:
    assert compile_kernel(Add(target.name), target) == compile_kernel(Add(target.name), target)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_number_of_processes_gives_the_same_code(target: Target, processes: int) -> None:
    specs = [*numbered(target, 20), Add(target.name), Add(target.name)]
    blobs = compile_kernels(specs, target, processes)
    assert list(blobs) == [spec.name for spec in dict.fromkeys(specs)]
    assert blobs == {spec.name: compile_kernel(spec, target) for spec in specs}
    archive = kernels_in_memory([], target)
    archive.add(blobs)
    assert [call(archive.find(spec.name)) for spec in specs[:20]] == list(range(20))


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_that_die_are_done_without(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    compile_here = compiler.compile_kernel

    def die(spec: KernelSpec, target: Target) -> object:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return compile_here(spec, target)

    monkeypatch.setattr(compiler, "compile_kernel", die)
    assert len(compile_kernels(numbered(target, 20), target, 3)) == 20


def test_no_process_is_forked_beside_a_thread_that_may_hold_a_lock(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "_compile_forked", lambda *_: pytest.fail("forked"))
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert len(compile_kernels(numbered(target, 3), target, 2)) == 3
    finally:
        done.set()
        thread.join()


def test_errors_name_the_kernel(target: Target) -> None:
    bad = Text(target.name, "bad", "define void @k() { nonsense }")
    with pytest.raises(CompileError, match=rf"(?s){bad.name}: LLVM refuses the text: .*expected instruction"):
        compile_kernel(bad, target)
    outside = Text(target.name, "outside", "declare void @f()\ndefine void @k() nounwind { call void @f() ret void }")
    with pytest.raises(CompileError, match=rf"{outside.name}: The kernel refers to f"):
        compile_kernels([*numbered(target, 8), outside], target, 2)


def test_a_kernel_is_compiled_for_its_own_target() -> None:
    with pytest.raises(CompileError, match=r"f32_vadd_ramp__neon is a kernel for neon, not for avx2\."):
        compile_kernel(Add("neon"), TARGETS["avx2"])


def test_without_llvm_the_error_says_what_to_install(target: Target) -> None:
    code = """
import sys
sys.modules["llvmlite"] = None
from gossamer.codegen.compiler import compile_kernel
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.errors import CompileError
from gossamer.targets import all_targets
try:
    compile_kernel(WalkSpec("avx2"), all_targets()["avx2"])
except CompileError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == 'Compiling kernels needs llvmlite: python -m pip install "gossamer[compile]".\n'


def test_assembly_shows_the_vectors_of_the_target() -> None:
    registers = {name: assembly(Add(name), target) for name, target in TARGETS.items()}
    assert "%zmm" in registers["avx512"]
    assert "%ymm" in registers["avx2"]
    assert "%zmm" not in registers["avx2"]
    assert "fadd\tv" in registers["neon"]


def test_nothing_beyond_the_target_is_emitted() -> None:
    # Population counts of vectors are an instruction of later CPUs than x86-64-v4.
    text = """
declare <8 x i64> @llvm.ctpop.v8i64(<8 x i64>)
define void @k(ptr %a) nounwind {
  %v = load <8 x i64>, ptr %a
  %c = call <8 x i64> @llvm.ctpop.v8i64(<8 x i64> %v)
  store <8 x i64> %c, ptr %a
  ret void
}
"""
    for name in ("avx512", "avx2"):
        assert "vpopcnt" not in assembly(Text(name, "ctpop", text), TARGETS[name])


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_the_walker_is_compiled_for_every_target_and_system(target: Target) -> None:
    for convention in ("", "win64"):
        if convention and not target.triple.startswith("x86_64"):
            continue
        blob = compile_kernel(WalkSpec(target.name, convention), target)
        assert len(blob.code) < 1536


STRIDES = """
define void @k(ptr %a, i64 %stride, i64 %count) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %i, %stride
  %p = getelementptr i8, ptr %a, i64 %at
  %q = getelementptr i64, ptr %p, i64 %stride
  %v = load i64, ptr %p
  store i64 %v, ptr %q
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %count
  br i1 %again, label %loop, label %done
done:
  ret void
}
"""


def test_loop_strength_reduction_is_off_here_and_on_for_others(target: Target) -> None:
    import llvmlite.binding as llvm

    def of_others() -> str:
        module = llvm.parse_assembly(STRIDES)
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=",".join(target.features), opt=1, reloc="pic"
        )
        module.triple, module.data_layout = target.triple, str(machine.target_data)
        return str(machine.emit_assembly(module))

    first = of_others()
    ours = assembly(Text(target.name, "strides", STRIDES), target)
    assert ours.count("mul") == 1  # in the loop
    assert first.count("mul") == 0
    assert of_others() == first
