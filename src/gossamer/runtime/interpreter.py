"""`Interpreter`: the API of ``tf.lite.Interpreter`` and ``ai_edge_litert.interpreter.Interpreter``."""

from __future__ import annotations

import operator
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.delegates.delegate import Claims, Delegate, DelegateKernel
from gossamer.model import map_model
from gossamer.model.model import Model
from gossamer.ops.op_def import OpDef
from gossamer.planner.planner import AllocationType, Plan
from gossamer.resolver import OpResolver, OpResolverType
from gossamer.runtime import values
from gossamer.runtime.arenas import MemoryReport, memory_report
from gossamer.runtime.details import Details, in_words, tensor_details
from gossamer.runtime.engine import Engine
from gossamer.runtime.private_names import PrivateNames
from gossamer.runtime.settings import PLAIN, Settings, checked_delegate, resolver_of
from gossamer.runtime.signature import SignatureRunner
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.taps import Callback, Tap, observed

_VIEWS_HELD = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""


_SMALL = 1 << 16
"""Bytes of values for which it matters how a copy begins; and there is always memory for it."""


class Interpreter(PrivateNames):
    """Runs a .tflite model.

    Arguments are those of ``ai_edge_litert``'s Interpreter. ``model_path`` is mapped, ``model_content`` (any object
    with the buffer protocol) referenced, neither is copied. ``num_threads``: at least 1.
    ``experimental_op_resolver_type``: see `OpResolverType`; an `OpResolver` of your own is taken too.
    ``experimental_delegates``: see `modify_graph_with_delegate`, which is called with each, in order.
    ``experimental_preserve_all_tensors``: intermediate tensors keep their values after `invoke`.
    ``experimental_disable_delegate_clustering``: delegates keep the order of the nodes.
    ``experimental_disable_delegate_node_fusion``: a delegate gets each of its nodes as a partition of its own.
    ``experimental_force_delegate_node_profiling``: profilers see the kernels of delegates that report their own nodes
    too. ``experimental_default_delegate_latest_features`` changes nothing: the default delegate has none that are off.
    ``experimental_compress_quantization_zero_points``: details report one zero point where all are equal.
    ``custom_ops``, which only Gossamer has: custom operators, as `gossamer.custom_op` makes them; they go before those
    of the resolver.
    ``allow_reduced_precision``, which TFLite has as ``allow_fp16``: products of float32 matrices, and convolutions, may
    be computed of operands rounded to bfloat16, with sums in float32. The default delegate does so where this CPU has
    instructions for it (AVX-512-BF16) and kernels can be compiled; elsewhere it changes nothing.

    ``allow_buffer_handle_output``: `invoke` may leave outputs in the buffers of delegates; `get_tensor` copies them.

    Raises `ValueError`: no model or two, a file that cannot be opened or is no valid model (`ModelError`), an operator
    or version that is not registered (`UnsupportedOpError`), or an argument out of range. With delegates also
    `RuntimeError`: one of them fails (`DelegateError`), or an operator refuses its operands (`PrepareError`).

    >>> interpreter = gossamer.Interpreter("digits.tflite")
    >>> interpreter.allocate_tensors()
    >>> (image,), (scores,) = interpreter.get_input_details(), interpreter.get_output_details()
    >>> interpreter.set_tensor(image["index"], np.zeros(image["shape"], image["dtype"]))
    >>> interpreter.invoke()
    >>> interpreter.get_tensor(scores["index"]).shape
    (1, 10)
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: Any = None,
        experimental_delegates: Sequence[Delegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType | OpResolver = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        custom_ops: Iterable[OpDef] = (),
        allow_reduced_precision: bool = False,
    ) -> None:
        resolver = resolver_of(experimental_op_resolver_type, custom_ops)
        if experimental_preserve_all_tensors and experimental_op_resolver_type in (
            OpResolverType.AUTO,
            OpResolverType.BUILTIN,
        ):
            warnings.warn(
                "experimental_preserve_all_tensors with the AUTO or BUILTIN op resolver is meant for debugging: "
                "every intermediate tensor keeps its memory.",
                stacklevel=2,
            )
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        delegates = [checked_delegate(delegate, "experimental_delegates") for delegate in experimental_delegates or ()]
        content = model_content if model_content is not None and len(model_content) else None
        if not model_path and content is None:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if model_path and content is not None:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if isinstance(content, str):
            raise TypeError("model_content takes the bytes of a model, got a str; a path is model_path")
        subgraphs = {
            "preserve_all_tensors": experimental_preserve_all_tensors,
            "delegate_clustering": not experimental_disable_delegate_clustering,
            "delegate_fusion": not experimental_disable_delegate_node_fusion,
            "profile_delegates": experimental_force_delegate_node_profiling,
        }
        settings = Settings(
            resolver=resolver,
            num_threads=num_threads or 1,
            subgraphs=subgraphs,
            has_default_delegate=experimental_op_resolver_type
            not in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
            is_plain=content is None
            and experimental_op_resolver_type in (OpResolverType.AUTO, OpResolverType.BUILTIN)
            and not custom_ops
            and not delegates
            and subgraphs == PLAIN,
            compress_zero_points=experimental_compress_quantization_zero_points,
            allow_reduced_precision=allow_reduced_precision,
        )
        self.allow_buffer_handle_output = False
        source: Any = map_model(os.fsdecode(model_path or "")) if content is None else content
        self._start(Engine(source, settings), delegates)

    def _start(self, engine: Engine, delegates: Sequence[Delegate]) -> None:
        self._engine = engine
        self._held: set[weakref.ref[values.View]] = set()
        engine.start()
        for delegate in delegates:
            self.modify_graph_with_delegate(delegate)

    def clone(self) -> Interpreter:
        """Another interpreter of the same model, with the same settings, delegates and input shapes, allocated if this
        one is: to run at the same time, in another thread.

        Shared are the file, machine code and packed weights, none of which changes. Separate are tensors and all state:
        variables, resource variables and hash tables are as in a new interpreter (CALL_ONCE runs again), and inputs
        have no values. Taps, views and the cancellation function stay here. Delegates of your own get both graphs.
        Raises as the constructor and `allocate_tensors` do.
        """
        other = object.__new__(type(self))
        other.allow_buffer_handle_output = self.allow_buffer_handle_output
        other._start(self._engine.another(), self._engine.delegates)
        is_allocated = self._engine.executor.is_invokable
        if self._engine.known is None:
            graph = self._subgraphs[0]
            for index in graph.inputs:
                if index >= 0 and not graph.tensors[index].is_constant:
                    other.resize_tensor_input(index, graph.tensors[index].shape)
        if is_allocated:
            other.allocate_tensors()
        return other

    def __repr__(self) -> str:
        """The model, what goes in and out, and whether it can run: ``<Interpreter of m.tflite: x float32[1, 4] ->
        y float32[1, 2], allocated>``."""
        engine: Engine | None = getattr(self, "_engine", None)
        executor = getattr(engine, "executor", None)
        if engine is None or executor is None:
            return f"<{type(self).__name__}: not made>"
        path = getattr(engine.source, "path", None)
        of = f" of {os.path.basename(path)}" if path else ""
        ends = [
            in_words([executor.tensors[index] for index in side if index >= 0])
            for side in (executor.inputs, executor.outputs)
        ]
        state = "allocated" if executor.is_invokable else "not allocated"
        return f"<{type(self).__name__}{of}: {' -> '.join(ends)}, {state}>"

    @property
    def model(self) -> Model:
        """The stored model that this interpreter runs."""
        return self._engine.model

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of that name."""
        return self._engine.settings.compress_zero_points

    def allocate_tensors(self) -> None:
        """Prepare every operator and give every tensor its memory; variables become zero if anything changed.

        Raises `RuntimeError`: an operator refuses its operands (`PrepareError`), the graph is inconsistent, there is
        not enough memory, or a view of `tensor` is still held.
        """
        self._ensure_safe()
        self._engine.allocate_tensors()

    def invoke(self, *, timeout: float | None = None) -> None:
        """Run the model on the inputs that are set.

        ``timeout``: seconds after which it ends with `DeadlineExceededError`, a `TimeoutError`, as soon as a node or an
        iteration of a loop is done; what a delegate runs as one, and has no loop, is not interrupted.

        Raises `RuntimeError`: not allocated, an operator refuses its values (`InvokeError`), a view of `tensor` is
        still held, or it is cancelled (`CancelledError`). `ValueError` for a timeout below 0.
        """
        graph = self._engine.executor
        sole = graph.sole
        if sole is not None and timeout is None and not self._held and not graph.busy:
            again = sole.again
            if again is not None and not graph.cancellation.pending:
                graph.busy = True
                try:
                    left = again()
                finally:
                    graph.busy = False
                if not left:
                    return
        self._ensure_safe()
        with self._invocation(timeout):
            self._engine.invoke()
        if self._engine.known is None and not self.allow_buffer_handle_output:
            self._subgraphs[0].make_outputs_readable()

    def _invocation(self, timeout: float | None) -> AbstractContextManager[None]:
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be 0 seconds or more, got {timeout}")
        return self._engine.cancellation.invocation(timeout)

    def set_cancellation_function(self, check: Callable[[], bool] | None) -> None:
        """Have a function asked before every node, in every iteration of a loop, and by operators that run long:
        `invoke` ends with `CancelledError` when it returns ``True``. ``None`` takes it away.

        After that, variables and resources have the values that they had then; the next `invoke` runs.
        """
        if check is not None and not callable(check):
            raise ValueError(f"set_cancellation_function takes a function without arguments or None, got {check!r}")
        self._engine.cancellation.check = check
        self._engine.unsettle()

    def cancel(self) -> None:
        """End the `invoke` that is under way in another thread, at the same places where `set_cancellation_function`
        has its function asked; it raises `CancelledError`. Calls of `invoke` after that are not affected."""
        self._engine.cancel()

    def modify_graph_with_delegate(self, delegate: Delegate) -> bool:
        """Let a delegate take the nodes that it claims in every subgraph, except those named ``VALIDATION:``.

        ``False`` if a subgraph has tensors whose shapes depend on values and the delegate does not allow that: the
        graph stays as it is there, with a warning. Raises `DelegateError`, a `RuntimeError`, if the delegate fails:
        the graph is then as it was without any delegate, allocated, and runs. `allocate_tensors` raises it if the
        delegate fails when it is applied again after a resize. Raises `ValueError` for what is no `Delegate`.
        """
        self._ensure_safe()
        return self._engine.apply(checked_delegate(delegate, "modify_graph_with_delegate"))

    def preview_delegate(self, delegate: Delegate, subgraph_index: int = 0) -> Claims:
        """What a delegate would take of a subgraph, and why not the rest; nothing is applied, no kernel made."""
        return self._subgraph(subgraph_index).delegation.preview(checked_delegate(delegate, "preview_delegate"))

    def delegate_claims(self, subgraph_index: int = 0) -> list[Claims]:
        """What each delegate applied to a subgraph took of it, and why not the rest."""
        return list(self._subgraph(subgraph_index).delegation.claims)

    def delegate_kernels(self, subgraph_index: int = 0) -> list[DelegateKernel]:
        """What runs the partitions of a subgraph, in the order in which `delegate_claims` lists them."""
        return self._subgraph(subgraph_index).delegation.kernels

    def set_buffer_handle(self, tensor_index: int, handle: int | None, delegate: Delegate) -> None:
        """Tie a tensor to a buffer of a delegate, freeing the handle that it had; ``None`` unties it.

        Raises `DelegateError`, a `RuntimeError`, if another delegate has the tensor.
        """
        subgraph = self._subgraphs[0]
        subgraph.tensor(int(tensor_index)).set_buffer_handle(handle, delegate)
        subgraph.unsettle()

    def get_buffer_handle(self, tensor_index: int) -> tuple[int | None, Delegate | None]:
        """The buffer handle of a tensor, and the delegate that the tensor belongs to."""
        tensor = self._subgraphs[0].tensor(int(tensor_index))
        return tensor.buffer_handle, tensor.delegate

    def reset_all_variables(self) -> None:
        """Zero the variable tensors of every subgraph; operators forget what they remember. Raises `RuntimeError`
        before a subgraph with variables is allocated."""
        if self._engine.known is not None:
            return  # one kernel without variables, and none of its operators remembers anything
        for subgraph in self._subgraphs:
            if any(not subgraph.tensors[index].has_data for index in subgraph.variables):
                raise RuntimeError(
                    f"variable tensors of subgraph {subgraph.index} have no memory yet. Run allocate_tensors() first"
                )
            subgraph.reset_variables()

    def num_subgraphs(self) -> int:
        """The number of subgraphs in the model."""
        return len(self._subgraphs)

    def resize_tensor_input(self, input_index: int, tensor_size: ArrayLike, strict: bool = False) -> None:
        """Give an input tensor a new shape; `allocate_tensors` must follow.

        ``strict``: only dimensions that are -1 in ``shape_signature`` may change. Raises `ValueError` for a size that
        is no list of integers (and `OverflowError`, if 32 bits do not hold one), `RuntimeError` for a bad index, a
        constant tensor, or what strict forbids.
        """
        self._ensure_safe()
        sizes, index = values.shape_of(tensor_size), operator.index(input_index)
        known = self._engine.known
        if known is not None and known.has_input(index, sizes):
            return  # nothing changes
        self._engine.resize_input(index, sizes, strict=strict)

    def set_tensor(self, tensor_index: int, value: ArrayLike) -> None:
        """Copy a value into a tensor. dtype and shape must be the tensor's: nothing is cast or reshaped, but that int4
        and uint4 take any shape of as many elements, and the float8 types take their bytes as int8 or uint8 too.

        Raises `ValueError`: bad index, other dtype or shape, or not allocated.
        """
        tensor = self._engine.plain.get(tensor_index) if type(tensor_index) is int else None
        if tensor is not None and type(value) is np.ndarray:
            array = tensor.cached
            if array is not None and value.dtype is array.dtype and value.shape == tensor.shape:
                array[...] = value
                tensor.data_is_stale = False
                return
        self._set_tensor(tensor_index, value, 0)
        self._engine.remember_tensor(operator.index(tensor_index))

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]:
        """A copy of a tensor's value; a scalar comes as a NumPy scalar. Strings are `bytes` in an object array; int4
        and int2 come as int8.

        An intermediate tensor holds its value only with ``experimental_preserve_all_tensors``: its memory is shared; so
        is that of all tensors of subgraphs that operators call.
        Raises `ValueError`: bad index, or no value yet; `RuntimeError`: not enough memory for the copy.
        """
        if type(tensor_index) is int and not subgraph_index:
            plain = self._engine.plain.get(tensor_index)
            if plain is not None and plain.bytes <= _SMALL and not plain.data_is_stale:
                array = plain.cached
                if array is not None and array.shape:
                    copied: NDArray[Any] = array.copy()
                    return copied
        tensor = self._engine.tensor(operator.index(tensor_index), operator.index(subgraph_index))
        if subgraph_index and not self._subgraph(subgraph_index).holds(tensor):
            raise ValueError(values.NO_DATA)
        value = values.copied(tensor)
        if not subgraph_index:
            self._engine.remember_tensor(tensor.index)
        return value

    def tensor(self, tensor_index: int) -> Callable[[], NDArray[Any]]:
        """A function that gives a live view of a tensor; hold the function, not the view. Of a scalar it gives a copy.

        While a view is held, `invoke`, `allocate_tensors` and `resize_tensor_input` raise `RuntimeError`. Views of
        constants are read-only, and of strings, int4, uint4 and int2 there are only copies.
        """

        def view() -> NDArray[Any]:
            return values.lent(self._subgraphs[0].tensor(operator.index(tensor_index)), self._held)

        return view

    def tap(
        self,
        callback: Callback,
        tensors: Iterable[int | str] | None = None,
        subgraph_index: int = 0,
        *,
        copy: bool = True,
    ) -> Tap:
        """Have a function called with a tensor (``index``, ``name``, ``type``, ``shape``, ``quantization``) and a copy
        of its value whenever that is written while the model runs: in a loop, in each iteration.

        ``tensors``: indices or names; by default all that nodes write, and the inputs. Inputs are told when the
        subgraph begins, what a node writes when it is done, variables that it may write among it. Outputs keep every
        bit: what a delegate leaves out by fusing operators is computed apart, which takes time. With ``copy=False`` the
        function sees the tensor's own memory, read-only, which holds something else when it has returned.

        Call ``remove()`` of what is returned, or use it in a ``with`` statement, to end it. Raises `ValueError` for a
        tensor that does not exist or has one value only, `ModelError` and the like as the constructor does; `invoke`
        raises `InvokeError` if the function fails.
        """
        if not callable(callback):
            raise ValueError(f"tap takes a function of a tensor and its value, got {callback!r}")
        subgraph = self._subgraph(subgraph_index)
        observable = subgraph.observable
        chosen = observable if tensors is None else {observed(subgraph, observable, tensor) for tensor in tensors}
        tap = Tap(self._engine.taps, callback, subgraph_index, chosen, copy)
        self._engine.taps.add(tap)
        self._engine.unsettle()
        return tap

    def get_input_details(self) -> list[Details]:
        """Details of the inputs: ``name``, ``index``, ``shape``, ``shape_signature``, ``dtype``, ``quantization``
        (scale, zero point), ``quantization_parameters`` and ``sparsity_parameters``."""
        return [self._get_tensor_details(index, 0) for index in self._engine.executor.inputs]

    def get_output_details(self) -> list[Details]:
        """Details of the outputs, as `get_input_details` gives them."""
        return [self._get_tensor_details(index, 0) for index in self._engine.executor.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """Details of every tensor of a subgraph, the scratch tensors of its operators at the end.

        Raises `ValueError` for a bad index.
        """
        if not 0 <= subgraph_index < len(self._subgraphs):
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model, "
                f"which has {len(self._subgraphs)} subgraphs."
            )
        return [
            self._get_tensor_details(tensor.index, subgraph_index)
            for tensor in self._subgraphs[subgraph_index].tensors
            if tensor.allocation_type != AllocationType.MEM_NONE
        ]

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """``{signature key: {"inputs": [names], "outputs": [names]}}``."""
        return {
            key: {side: list(tensors) for side, tensors in signature.items()}
            for key, signature in self._get_full_signature_list().items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A callable that takes inputs and gives outputs by name. The key may be left out if there is only one.

        Raises `ValueError` for an unknown key, or none where it is needed.
        """
        if signature_key is None:
            signatures = self._get_full_signature_list()
            if len(signatures) != 1:
                raise ValueError(
                    f"SignatureDef signature_key is None and model has {len(signatures)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(signatures))
        self._engine.apply_default_delegate()
        self._engine.warn()
        return SignatureRunner(interpreter=self, signature_key=signature_key)

    def memory_plan(self, subgraph_index: int = 0, *, persistent: bool = False) -> Plan:
        """Where the tensors of a subgraph lie in its arena, or in the arena of what stays between invocations.

        Raises `ValueError` for a bad index, `RuntimeError` before `allocate_tensors`.
        """
        return self._subgraph(subgraph_index).plan(persistent=persistent)

    def memory_report(self) -> MemoryReport:
        """What the arenas of all subgraphs take, and how much is saved where those that operators call share memory."""
        return memory_report(self._subgraphs)

    @property
    def _subgraphs(self) -> list[Subgraph]:
        return self._engine.subgraphs

    def _subgraph(self, index: int) -> Subgraph:
        return self._engine.subgraph(index)

    def _resize_input(self, tensor_index: int, shape: tuple[int, ...], subgraph_index: int) -> None:
        self._engine.resize_input(tensor_index, shape, subgraph_index)

    def _ensure_safe(self) -> None:
        if self._held:
            raise RuntimeError(_VIEWS_HELD)

    def _set_tensor(self, tensor_index: int, value: ArrayLike, subgraph_index: int) -> None:
        values.assign(self._engine.tensor(operator.index(tensor_index), subgraph_index), value)

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> Details:
        tensor = self._engine.tensor(int(tensor_index), int(subgraph_index))
        if tensor.allocation_type == AllocationType.MEM_NONE:
            raise ValueError(f"Tensor with no type found: {tensor.index} is kept free for scratch memory.")
        return tensor_details(
            tensor,
            lambda: self._subgraph(int(subgraph_index)),
            values.readable,
            self.experimental_compress_quantization_zero_points,
        )
