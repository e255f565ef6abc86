"""Invocations that are ended before they are done, and what is left of the interpreter."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import CancelledError, DeadlineExceededError, Interpreter, InvokeError, OpResolverType
from gossamer.schema import TensorType, WhileOptions
from tests.conftest import HANGS
from tests.runtime.graphs import ModelMaker, adder

PATHS = {"jit": OpResolverType.AUTO, "reference": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}


def loop() -> bytes:
    """i, n -> while i < n: i + 1, n. With n = inf it never ends: 2**24 + 1 is 2**24 in float32."""
    make = ModelMaker()
    inputs, outputs = [make.tensor(()), make.tensor(())], [make.tensor(()), make.tensor(())]
    make.op("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, outputs)
    make.signature("count", {"i": 0, "n": 1}, {"i": outputs[0]})
    make.subgraph("cond")
    i, n, less = make.tensor(()), make.tensor(()), make.tensor((), TensorType.BOOL)
    make.op("LESS", [i, n], [less])
    make.io([i, n], [less])
    make.subgraph("body")
    i, n, after = make.tensor(()), make.tensor(()), make.tensor(())
    make.op("ADD", [i, make.constant(1, np.float32, TensorType.FLOAT32)], [after])
    make.io([i, n], [after, n])
    return make.model()


@pytest.fixture(params=PATHS.values(), ids=PATHS)
def endless(request: pytest.FixtureRequest) -> Iterator[Interpreter]:
    made = Interpreter(model_content=loop(), experimental_op_resolver_type=request.param)
    made.allocate_tensors()
    made.set_tensor(1, np.float32(np.inf))
    yield made
    # Whatever ended it: the next invocation runs.
    made.set_cancellation_function(None)
    made.set_tensor(0, np.float32(0))
    made.set_tensor(1, np.float32(7))
    made.invoke()
    assert made.get_tensor(2) == 7


def test_a_timeout_ends_a_loop_without_end(endless: Interpreter) -> None:
    with pytest.raises(DeadlineExceededError, match=r"took longer than the 0.05 s of its timeout") as raised:
        endless.invoke(timeout=0.05)
    assert isinstance(raised.value, CancelledError)
    assert isinstance(raised.value, InvokeError)
    assert isinstance(raised.value, TimeoutError)


def test_a_timeout_is_for_one_invocation(endless: Interpreter) -> None:
    endless.set_tensor(1, np.float32(5))
    endless.invoke(timeout=HANGS)
    with pytest.raises(DeadlineExceededError):
        endless.invoke(timeout=0)
    endless.invoke()
    assert endless.get_tensor(2) == 5


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_is_no_negative_time(endless: Interpreter, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be 0 seconds or more, got"):
        endless.invoke(timeout=timeout)


def test_another_thread_cancels(endless: Interpreter) -> None:
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.05):
            endless.cancel()  # which does nothing before the invocation has begun

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(CancelledError, match=r"Client requested cancel during Invoke\(\)") as raised:
        endless.invoke()
    ended.set()
    thread.join()
    assert not isinstance(raised.value, DeadlineExceededError)


def test_what_takes_the_short_way_is_cancelled_too(endless: Interpreter) -> None:
    endless.set_tensor(1, np.float32(1))
    for _ in range(3):
        endless.invoke()
    endless.set_tensor(1, np.float32(np.inf))
    test_another_thread_cancels(endless)


def test_to_cancel_nothing_leaves_the_next_invocation_alone(endless: Interpreter) -> None:
    endless.set_tensor(1, np.float32(3))
    endless.cancel()
    endless.invoke()
    assert endless.get_tensor(2) == 3


def test_a_function_that_is_asked_cancels(endless: Interpreter) -> None:
    answers = iter([False] * 20 + [True])
    endless.set_cancellation_function(lambda: next(answers))
    with pytest.raises(CancelledError, match="Client requested cancel"):
        endless.invoke()
    assert next(answers, None) is None


def test_signatures_are_cancelled_too(endless: Interpreter) -> None:
    runner = endless.get_signature_runner("count")
    asked = iter([False, False, True])
    endless.set_cancellation_function(lambda: next(asked))
    with pytest.raises(CancelledError):
        runner(i=np.float32(0), n=np.float32(np.inf))
    endless.set_cancellation_function(None)
    assert runner(i=np.float32(0), n=np.float32(2))["i"] == 2


def test_what_the_function_raises_comes_out(endless: Interpreter) -> None:
    def check() -> bool:
        raise KeyError("mine")

    endless.set_cancellation_function(check)
    with pytest.raises(KeyError, match="mine"):
        endless.invoke()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_control_c_ends_a_loop_without_end(endless: Interpreter) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come before the loop begins
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            endless.invoke()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("resolver", PATHS.values(), ids=PATHS)
def test_the_function_is_asked_before_each_node(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=adder(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
    asked: list[int] = []
    interpreter.set_cancellation_function(lambda: bool(asked.append(1)))
    for count in (1, 2, 3):
        interpreter.invoke()
        assert len(asked) == count * len(interpreter._subgraphs[0].execution_plan)
    interpreter.set_cancellation_function(lambda: True)
    with pytest.raises(CancelledError, match=r"before \w+ \(node \d+\) of subgraph 0"):
        interpreter.invoke()
    interpreter.set_cancellation_function(None)
    interpreter.invoke()


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="takes a function without arguments"):
        Interpreter(model_content=adder()).set_cancellation_function(True)  # type: ignore[arg-type]


def test_operators_and_kernels_may_ask_themselves() -> None:
    class Endless(gossamer.DelegateKernel):
        def invoke(self, ctx: Any) -> None:
            while True:
                ctx.poll()

    class Takes(gossamer.Delegate):
        name = "takes"

        def is_node_supported(self, node: Any) -> bool:
            return True

        def create_kernel(self, partition: Any) -> gossamer.DelegateKernel:
            return Endless()

    interpreter = Interpreter(model_content=adder(), experimental_delegates=[Takes()])
    interpreter.allocate_tensors()
    with pytest.raises(DeadlineExceededError, match=r"in takes \(node \d+\) of subgraph 0"):
        interpreter.invoke(timeout=0.02)
