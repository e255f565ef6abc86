"""IR text to blobs, by LLVM: instruction selection without optimisation passes, in forked workers if there is much."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from gossamer.codegen.blob import extract
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.phases import phase
from gossamer.programs import host
from gossamer.programs.kernel_file import Blob
from gossamer.programs.team import worker_threads
from gossamer.targets import Target

FORK_FROM = 6
"""Kernels from which a second process pays: LLVM takes 50 ms to start and 6-8 ms for a kernel."""

_JOB = struct.Struct("<H")  # what is written to a pipe at once in two bytes is read at once
_MOST_JOBS = 2048  # 4 KB, which every pipe holds

# LLVM's options are of the process, and llvmlite takes one call at a time.
_llvm_lock = threading.RLock()


def compile_kernel(spec: KernelSpec, target: Target) -> Blob:
    """The machine code of a kernel."""
    return compile_text(kernel_text(spec, target), target_of(spec, target), spec.name)


def compile_text(text: str, target: Target, name: str) -> Blob:
    """The machine code of the IR text of a kernel, perhaps one that was kept; messages call it by the name."""
    with _llvm() as llvm:
        module, machine = _parse(llvm, text, name, target)
        try:
            return extract(machine.emit_object(module))
        except CompileError as error:
            raise CompileError(f"{name}: {error}") from error


def kernel_text(spec: KernelSpec, target: Target) -> str:
    """The IR text of a kernel of a target, or of one that this extends. Raises `CompileError` for any other."""
    return spec.emit(target_of(spec, target))


def target_of(spec: KernelSpec, target: Target) -> Target:
    """The member of a target's family that a kernel is for."""
    for member in target.family():
        if spec.isa == member.name:
            return member
    raise CompileError(f"{spec.name} is a kernel for {spec.isa}, not for {target.name}.")


def assembly(spec: KernelSpec, target: Target) -> str:
    """The machine code of a kernel as text, for people and tests."""
    text = kernel_text(spec, target)
    with _llvm() as llvm:
        module, machine = _parse(llvm, text, spec.name, target_of(spec, target))
        return str(machine.emit_assembly(module))


@phase("compile")
def compile_kernels(specs: Iterable[KernelSpec], target: Target, processes: int | None = None) -> dict[str, Blob]:
    """The machine code of kernels by name, compiled in up to ``processes`` processes (default: one for each CPU)."""
    kernels = list({spec.name: spec for spec in specs}.values())
    if processes is None:
        processes = host.usable_cpus() if len(kernels) >= FORK_FROM else 1
    blobs: dict[str, Blob] = {}
    if processes > 1 and _may_fork():
        for start in range(0, len(kernels), _MOST_JOBS):
            blobs |= _compile_forked(kernels[start : start + _MOST_JOBS], target, processes)
    # What a worker could not do is done here: either it works, or the error is raised where it is seen.
    return {spec.name: blobs.get(spec.name) or compile_kernel(spec, target) for spec in kernels}


def _parse(llvm: Any, text: str, name: str, target: Target) -> tuple[Any, Any]:
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise CompileError(f"{name}: LLVM refuses the text: {error}") from error
    machine = _machine(target)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    return module, machine


@cache
def _machine(target: Target) -> Any:
    import llvmlite.binding as llvm

    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=",".join(target.features), opt=1, reloc="pic", codemodel="default"
    )


@cache
def _start_llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise CompileError('Compiling kernels needs llvmlite: python -m pip install "gossamer[compile]".') from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@contextmanager
def _llvm() -> Iterator[Any]:
    # Strides and counts are arguments of our kernels; loop strength reduction would keep a register for each product
    # of them and spill. The switch is of the process: others who use LLVM here find it as it was.
    with _llvm_lock:
        llvm = _start_llvm()
        llvm.set_option("gossamer", "-disable-lsr=true")
        try:
            yield llvm
        finally:
            llvm.set_option("gossamer", "-disable-lsr=false")


def _may_fork() -> bool:
    # Other threads might hold a lock that the child needs. Ours hold none, nor do those of NumPy's libraries.
    return threading.active_count() - worker_threads() == 1


def _compile_forked(kernels: Sequence[KernelSpec], target: Target, processes: int) -> dict[str, Blob]:
    if sys.platform != "linux":
        return {}  # macOS's libraries do not bear it
    jobs, to_do = os.pipe()
    os.write(to_do, b"".join(_JOB.pack(number) for number in range(len(kernels))))
    os.close(to_do)
    workers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside NumPy's threads: see _may_fork
        for _ in range(processes - 1):
            result, to_parent = os.pipe()
            process = os.fork()
            if process == 0:
                _work(kernels, target, jobs, to_parent)
            os.close(to_parent)
            workers.append((process, result))
    try:
        blobs = _compile_jobs(kernels, target, jobs)
    finally:
        os.close(jobs)
        answers = [_read_all(result) for _, result in workers]
        for process, _ in workers:
            with suppress(ChildProcessError):
                os.waitpid(process, 0)
    for answer in answers:
        with suppress(EOFError, pickle.UnpicklingError):
            blobs |= pickle.loads(answer)
    return blobs


def _work(kernels: Sequence[KernelSpec], target: Target, jobs: int, to_parent: int) -> None:
    """What a worker does: its share, one message, and nothing of what a process does at its end."""
    try:
        answer = memoryview(pickle.dumps(_compile_jobs(kernels, target, jobs)))
        while answer:
            answer = answer[os.write(to_parent, answer) :]
    finally:
        os._exit(0)


def _compile_jobs(kernels: Sequence[KernelSpec], target: Target, jobs: int) -> dict[str, Blob]:
    blobs = {}
    while job := os.read(jobs, _JOB.size):
        spec = kernels[_JOB.unpack(job)[0]]
        with suppress(CompileError):
            blobs[spec.name] = compile_kernel(spec, target)
    return blobs


def _read_all(file: int) -> bytes:
    with os.fdopen(file, "rb") as stream:
        return stream.read()
