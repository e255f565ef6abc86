"""Models on machine code and on the reference kernels, with memory in which mistakes show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer.codegen.kinds import kind_of
from gossamer.delegates.delegate import DelegateKernel, Partition
from gossamer.delegates.jit.delegate import JitDelegate, JitKernel
from gossamer.programs import host
from gossamer.programs.program import ARENA, SLACK
from gossamer.targets import Target, all_targets
from tests.codegen.emulator import READ
from tests.codegen.kernels import harness

Array = NDArray[Any]

TARGETS = [target for target in all_targets().values() if target.runs_on(host.cpu_features())]
"""What this CPU runs, or the emulator in tests that are marked so."""

PATTERN = 0xFE
"""As float32 and float16, large negative numbers; not what any kernel leaves behind."""


class Watched(JitDelegate):
    """The default delegate, which remembers its kernels."""

    def __init__(self, num_threads: int = 1, target: Target | None = None) -> None:
        super().__init__(num_threads, target)
        self.made: list[JitKernel] = []

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        kernel = super().create_kernel(partition)
        assert isinstance(kernel, JitKernel)
        self.made.append(kernel)
        return kernel


def reference(model: bytes) -> Any:
    """An interpreter on the reference kernels."""
    resolver = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return gossamer.Interpreter(model_content=model, experimental_op_resolver_type=resolver)


def machine_code(model: bytes, num_threads: int = 1, target: Target | None = None) -> tuple[Any, JitKernel]:
    """An interpreter with all nodes in one program, and the kernel that holds it."""
    delegate = Watched(num_threads, target)
    model_content: Any = model
    if harness.machine is not None:  # which sees what is in its memory only, as weights that are not packed must be
        model_content = harness.machine.memory(len(model), READ, to_the_end=False)
        model_content[:] = np.frombuffer(model, np.uint8)
    resolver = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = gossamer.Interpreter(model_content=model_content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(delegate)
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals, dict(claims.refusals)
    (kernel,) = interpreter.delegate_kernels()
    assert kernel.program is not None
    for part in [] if kernel.built is None else kernel.built.graph.parts():
        assert all(kind_of(node).takes(node) for node in part)
    return interpreter, kernel


def outputs(interpreter: Any, inputs: Mapping[int, Array]) -> list[Array]:
    """What one invocation makes of inputs by tensor."""
    for index, value in inputs.items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def check(
    model: bytes,
    inputs: Mapping[int, Array],
    *,
    threads: Sequence[int] = (1, 3),
    within: float = 0.0,
    least: float = 0.0,
    target: Target | None = None,
) -> None:
    """Machine code computes what the reference kernels compute, to ``within`` of the largest magnitude of an output,
    or to ``least``.

    It reads nothing that it has not written, writes nothing behind its memory, and computes the same bits with any
    number of threads and in the next invocation.
    """
    wanted = reference(model)
    wanted.allocate_tensors()
    expected = outputs(wanted, inputs)
    first: list[Array] = []
    for count in threads:
        interpreter, kernel = machine_code(model, count, target)
        program = kernel.program
        assert program is not None
        size = program.plan.sizes[ARENA]
        memory = np.frombuffer(program.memory[ARENA].view(), np.uint8)
        for _ in range(2):
            memory[:] = PATTERN
            got = outputs(interpreter, inputs)
            assert (memory[size : size + SLACK] == PATTERN).all()
            first = first or got
            for result, same in zip(got, first, strict=True):
                assert result.tobytes() == same.tobytes()
    for result, value in zip(first, expected, strict=True):
        assert (result.shape, result.dtype) == (value.shape, value.dtype)
        room = within * float(np.abs(value, where=np.isfinite(value), out=np.zeros_like(value)).max(initial=0))
        np.testing.assert_allclose(result, value, rtol=0, atol=max(room, least))
