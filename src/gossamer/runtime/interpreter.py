"""`Interpreter`: the API of ``tf.lite.Interpreter`` and ``ai_edge_litert.interpreter.Interpreter``."""

from __future__ import annotations

import math
import operator
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.config import is_strict
from gossamer.delegates.delegate import Claims, Delegate, DelegateKernel
from gossamer.dtypes import is_packed
from gossamer.errors import DelegateError, InvokeError, PrepareError
from gossamer.log import logger
from gossamer.model import map_model, read_model
from gossamer.model.model import Model
from gossamer.model.structure import checksum
from gossamer.ops.op_def import OpDef
from gossamer.planner.planner import AllocationType, Plan
from gossamer.quantization import integer_range
from gossamer.resolver import (
    BuiltinOpResolver,
    InstalledOpResolver,
    MutableOpResolver,
    OpResolver,
    OpResolverType,
)
from gossamer.runtime.arenas import MemoryReport, called_subgraphs, memory_report
from gossamer.runtime.builder import build_subgraphs
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.details import Details, op_details, tensor_details
from gossamer.runtime.known import Forgotten, KnownGraph, record_of
from gossamer.runtime.signature import SignatureRunner
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.taps import Callback, Tap, Taps
from gossamer.runtime.tensor import Tensor
from gossamer.schema import TensorType

_PLAIN_SETTINGS = {
    "preserve_all_tensors": False,
    "delegate_clustering": True,
    "delegate_fusion": True,
    "profile_delegates": False,
}

_SHARED = (
    "_source",
    "_num_threads",
    "_compress_zero_points",
    "_resolver",
    "_settings",
    "_has_default_delegate",
    "_is_plain",
    "allow_buffer_handle_output",
)
"""What clones have in common."""

_VIEWS_HELD = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""


_NO_DATA = "Tensor data is null. Run allocate_tensors() first"

_SMALL = 1 << 16
"""Bytes of values for which it matters how a copy begins; and there is always memory for it."""


class _View:
    """The owner of a view that `Interpreter.tensor` gave out; alive as long as any array over it."""

    __slots__ = ("__array_interface__", "__weakref__", "array")

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Interpreter:
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

    ``allow_buffer_handle_output``: `invoke` may leave outputs in the buffers of delegates; `get_tensor` copies them.

    Raises `ValueError`: no model or two, a file that cannot be opened or is no valid model (`ModelError`), an operator
    or version that is not registered (`UnsupportedOpError`), or an argument out of range. With delegates also
    `RuntimeError`: one of them fails (`DelegateError`), or an operator refuses its operands (`PrepareError`).
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
    ) -> None:
        resolver = _with_custom_ops(_resolver(experimental_op_resolver_type), custom_ops)
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
        delegates = [_checked(delegate, "experimental_delegates") for delegate in experimental_delegates or ()]
        content = model_content if model_content is not None and len(model_content) else None
        if not model_path and content is None:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if model_path and content is not None:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if isinstance(content, str):
            raise TypeError("model_content takes the bytes of a model, got a str; a path is model_path")
        self._source: Any = map_model(os.fsdecode(model_path or "")) if content is None else content
        self._num_threads = num_threads or 1
        self._compress_zero_points = experimental_compress_quantization_zero_points
        self._resolver = resolver
        self._settings = {
            "preserve_all_tensors": experimental_preserve_all_tensors,
            "delegate_clustering": not experimental_disable_delegate_clustering,
            "delegate_fusion": not experimental_disable_delegate_node_fusion,
            "profile_delegates": experimental_force_delegate_node_profiling,
        }
        self._has_default_delegate = experimental_op_resolver_type not in (
            OpResolverType.BUILTIN_REF,
            OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        # What is kept of a model was made with the operators that ship, and with these settings.
        self._is_plain = (
            content is None
            and experimental_op_resolver_type in (OpResolverType.AUTO, OpResolverType.BUILTIN)
            and not custom_ops
            and not delegates
            and self._settings == _PLAIN_SETTINGS
        )
        self.allow_buffer_handle_output = False
        self._start(delegates)

    def _start(self, delegates: Sequence[Delegate]) -> None:
        """Make what no interpreters share."""
        self._cancellation = Cancellation()
        self._taps = Taps()
        self._held: set[weakref.ref[_View]] = set()
        # Tensors whose value is set and read by copying an array, which is remembered: most of a small model's call.
        self._plain: dict[int, Tensor] = {}
        self._release: weakref.finalize[..., Any] | None = None
        self._wants_default_delegate = self._has_default_delegate
        self._made: list[Subgraph] | None = None
        self._default: Delegate | None = None
        self._delegates: list[Delegate] = []
        self._may_be_known = self._is_plain
        self._known = self._recall() if self._may_be_known else None
        if self._known is None:
            self._make()
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
        for name in _SHARED:
            setattr(other, name, getattr(self, name))
        if "_model" in self.__dict__:
            other.__dict__["_model"] = self._model
        other._start(self._delegates)
        if self._known is not None:
            is_allocated = self._known.is_allocated
        else:
            graph = self._subgraphs[0]
            is_allocated = graph.is_invokable
            for index in graph.inputs:
                if index >= 0 and not graph.tensors[index].is_constant:
                    other.resize_tensor_input(index, graph.tensors[index].shape)
        if is_allocated:
            other.allocate_tensors()
        return other

    @property
    def model(self) -> Model:
        """The stored model that this interpreter runs."""
        return self._model

    @cached_property
    def _model(self) -> Model:
        return read_model(self._source)

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of that name."""
        return self._compress_zero_points

    def allocate_tensors(self) -> None:
        """Prepare every operator and give every tensor its memory; variables become zero if anything changed.

        Raises `RuntimeError`: an operator refuses its operands (`PrepareError`), the graph is inconsistent, there is
        not enough memory, or a view of `tensor` is still held.
        """
        self._ensure_safe()
        if self._known is not None:
            try:
                self._known.allocate_tensors()
                return
            except Forgotten as reason:
                self._forget(reason)
        if self._wants_default_delegate:
            self._apply_default_delegate()
        self._subgraphs[0].allocate_tensors()
        if self._may_be_known:
            self._remember()

    def invoke(self, *, timeout: float | None = None) -> None:
        """Run the model on the inputs that are set.

        ``timeout``: seconds after which it ends with `DeadlineExceededError`, a `TimeoutError`, as soon as a node or an
        iteration of a loop is done; what a delegate runs as one, and has no loop, is not interrupted.

        Raises `RuntimeError`: not allocated, an operator refuses its values (`InvokeError`), a view of `tensor` is
        still held, or it is cancelled (`CancelledError`). `ValueError` for a timeout below 0.
        """
        graph = self._known or self._subgraphs[0]
        sole = graph.sole
        if sole is not None and timeout is None and not self._held and not graph.busy:
            again = sole.again
            if again is not None:
                graph.busy = True
                try:
                    again()
                finally:
                    graph.busy = False
                return
        self._ensure_safe()
        with self._invocation(timeout):
            if self._known is not None:
                try:
                    self._known.invoke()
                    return
                except Forgotten as reason:
                    self._forget(reason)
            self._subgraphs[0].invoke()
        if not self.allow_buffer_handle_output:
            self._subgraphs[0].make_outputs_readable()

    def _invocation(self, timeout: float | None) -> AbstractContextManager[None]:
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be 0 seconds or more, got {timeout}")
        return self._cancellation.invocation(timeout)

    def set_cancellation_function(self, check: Callable[[], bool] | None) -> None:
        """Have a function asked before every node, in every iteration of a loop, and by operators that run long:
        `invoke` ends with `CancelledError` when it returns ``True``. ``None`` takes it away.

        After that, variables and resources have the values that they had then; the next `invoke` runs.
        """
        if check is not None and not callable(check):
            raise ValueError(f"set_cancellation_function takes a function without arguments or None, got {check!r}")
        self._cancellation.check = check
        for graph in (self._known, *(self._made or ())):
            if graph is not None:
                graph.sole = None

    def cancel(self) -> None:
        """End the `invoke` that is under way in another thread, at the same places where `set_cancellation_function`
        has its function asked; it raises `CancelledError`. Calls of `invoke` after that are not affected."""
        self._cancellation.cancel()

    def modify_graph_with_delegate(self, delegate: Delegate) -> bool:
        """Let a delegate take the nodes that it claims in every subgraph, except those named ``VALIDATION:``.

        ``False`` if a subgraph has tensors whose shapes depend on values and the delegate does not allow that: the
        graph stays as it is there, with a warning. Raises `DelegateError`, a `RuntimeError`, if the delegate fails:
        the graph is then as it was without any delegate, allocated, and runs. `allocate_tensors` raises it if the
        delegate fails when it is applied again after a resize. Raises `ValueError` for what is no `Delegate`.
        """
        self._ensure_safe()
        _checked(delegate, "modify_graph_with_delegate")
        if self._release is None:
            self._release = weakref.finalize(self, _release, self._subgraphs)
        try:
            applied = [subgraph.delegation.apply(delegate) for subgraph in self._delegated_subgraphs()]
        except DelegateError:
            for subgraph in self._subgraphs:
                subgraph.delegation.remove()
            self._delegates.clear()
            raise
        self._delegates.append(delegate)
        return all(applied)

    def preview_delegate(self, delegate: Delegate, subgraph_index: int = 0) -> Claims:
        """What a delegate would take of a subgraph, and why not the rest; nothing is applied, no kernel made."""
        return self._subgraph(subgraph_index).delegation.preview(_checked(delegate, "preview_delegate"))

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
        subgraph.sole = None

    def get_buffer_handle(self, tensor_index: int) -> tuple[int | None, Delegate | None]:
        """The buffer handle of a tensor, and the delegate that the tensor belongs to."""
        tensor = self._subgraphs[0].tensor(int(tensor_index))
        return tensor.buffer_handle, tensor.delegate

    def reset_all_variables(self) -> None:
        """Zero the variable tensors of every subgraph. Raises `RuntimeError` before one that has any is allocated."""
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
        is no list of integers, `RuntimeError` for a bad index, a constant tensor, or what strict forbids.
        """
        self._ensure_safe()
        try:
            shape = np.array(tensor_size, dtype=np.int64)
        except OverflowError:
            raise ValueError(f"Shape should hold 32-bit integers, got {tensor_size!r}.") from None
        if (shape != shape.astype(np.int32)).any():
            raise ValueError(f"Shape should hold 32-bit integers, got {tensor_size!r}.")
        if shape.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {shape.ndim}.")
        index, sizes = operator.index(input_index), tuple(shape.tolist())
        if self._known is not None and self._known.has_input(index, sizes):
            return  # nothing changes
        self._subgraphs[0].resize_input(index, sizes, strict=strict)

    def set_tensor(self, tensor_index: int, value: ArrayLike) -> None:
        """Copy a value into a tensor. dtype and shape must be the tensor's: nothing is cast or reshaped, but that int4
        and uint4 take any shape of as many elements, and the float8 types take their bytes as int8 or uint8 too.

        Raises `ValueError`: bad index, other dtype or shape, or not allocated.
        """
        tensor = self._plain.get(tensor_index) if type(tensor_index) is int else None
        if tensor is not None and type(value) is np.ndarray:
            array = tensor.cached
            if array is not None and value.dtype is array.dtype and value.shape == tensor.shape:
                array[...] = value
                tensor.data_is_stale = False
                return
        self._set_tensor(tensor_index, value, 0)
        self._remember_tensor(operator.index(tensor_index))

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]:
        """A copy of a tensor's value; a scalar comes as a NumPy scalar. Strings are `bytes` in an object array; int4
        and int2 come as int8.

        An intermediate tensor holds its value only with ``experimental_preserve_all_tensors``: its memory is shared; so
        is that of all tensors of subgraphs that operators call.
        Raises `ValueError`: bad index, or no value yet; `RuntimeError`: not enough memory for the copy.
        """
        if type(tensor_index) is int and not subgraph_index:
            plain = self._plain.get(tensor_index)
            if plain is not None and plain.bytes <= _SMALL and not plain.data_is_stale:
                array = plain.cached
                if array is not None:
                    copied: NDArray[Any] = array.copy()
                    return copied
        tensor = self._tensor(operator.index(tensor_index), operator.index(subgraph_index))
        if subgraph_index and not self._subgraph(subgraph_index).holds(tensor):
            raise ValueError(_NO_DATA)
        try:
            value = _returned(np.array(self._readable(tensor)))
        except MemoryError as error:
            raise InvokeError(
                f'tensor {tensor.index} "{tensor.name}": not enough memory for a copy: {error}'
            ) from error
        if not subgraph_index:
            self._remember_tensor(tensor.index)
        return value

    def tensor(self, tensor_index: int) -> Callable[[], NDArray[Any]]:
        """A function that gives a live view of a tensor; hold the function, not the view. Of a scalar it gives a copy.

        While a view is held, `invoke`, `allocate_tensors` and `resize_tensor_input` raise `RuntimeError`. Views of
        constants are read-only, and of strings, int4, uint4 and int2 there are only copies.
        """

        def view() -> NDArray[Any]:
            array = self._readable(self._subgraphs[0].tensor(operator.index(tensor_index)))
            if array.dtype == np.object_:
                return array
            if not array.shape:
                return _returned(array)
            if array.dtype.isbuiltin != 1:
                return np.asarray(array)
            owner = _View(array)
            self._held.add(weakref.ref(owner, self._held.discard))
            live: NDArray[Any] = np.asarray(owner)
            return live

        return view

    def tap(self, callback: Callback, tensors: Iterable[int | str] | None = None, subgraph_index: int = 0) -> Tap:
        """Have a function called with a tensor (``index``, ``name``, ``type``, ``shape``, ``quantization``) and a copy
        of its value whenever that is written while the model runs: in a loop, in each iteration.

        ``tensors``: indices or names; by default all that nodes write, and the inputs. Inputs are told when the
        subgraph begins, what a node writes when it is done, variables that it may write among it. Outputs keep every
        bit: what a delegate leaves out by fusing operators is computed apart, which takes time.

        Call ``remove()`` of what is returned, or use it in a ``with`` statement, to end it. Raises `ValueError` for a
        tensor that does not exist or has one value only, `ModelError` and the like as the constructor does; `invoke`
        raises `InvokeError` if the function fails.
        """
        if not callable(callback):
            raise ValueError(f"tap takes a function of a tensor and its value, got {callback!r}")
        subgraph = self._subgraph(subgraph_index)
        observable = subgraph.observable
        chosen = observable if tensors is None else {_observed(subgraph, observable, tensor) for tensor in tensors}
        tap = Tap(self._taps, callback, subgraph_index, chosen)
        self._taps.add(tap)
        for each in self._subgraphs:
            each.sole = None
        return tap

    def get_input_details(self) -> list[Details]:
        """Details of the inputs: ``name``, ``index``, ``shape``, ``shape_signature``, ``dtype``, ``quantization``
        (scale, zero point), ``quantization_parameters`` and ``sparsity_parameters``."""
        return [self._get_tensor_details(index, 0) for index in self._boundary.inputs]

    def get_output_details(self) -> list[Details]:
        """Details of the outputs, as `get_input_details` gives them."""
        return [self._get_tensor_details(index, 0) for index in self._boundary.outputs]

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
        if self._wants_default_delegate:
            self._apply_default_delegate()
        return SignatureRunner(interpreter=self, signature_key=signature_key)

    def memory_plan(self, subgraph_index: int = 0, *, persistent: bool = False) -> Plan:
        """Where the tensors of a subgraph lie in its arena, or in the arena of what stays between invocations.

        Raises `ValueError` for a bad index, `RuntimeError` before `allocate_tensors`.
        """
        return self._subgraph(subgraph_index).plan(persistent=persistent)

    def memory_report(self) -> MemoryReport:
        """What the arenas of all subgraphs take, and how much is saved where those that operators call share memory."""
        return memory_report(self._subgraphs)

    def _apply_default_delegate(self) -> None:
        # As late as TFLite does it: after those that the user applies, when the shapes are those that will run.
        self._wants_default_delegate = False
        delegate = self._default or _default_delegate(self._num_threads)
        self._default = delegate
        if delegate is None:
            return
        if self._release is None:
            self._release = weakref.finalize(self, _release, self._subgraphs)
        subgraphs = {subgraph.index: subgraph for subgraph in self._delegated_subgraphs()}
        waiting = [index for index, subgraph in subgraphs.items() if subgraph.is_entry]
        for index in waiting:
            subgraph = subgraphs[index]
            try:
                subgraph.delegation.apply(delegate)
            except DelegateError as error:
                # What the graph is to blame for, whoever runs it, allocate_tensors and invoke will say; other shapes
                # may do better.
                if isinstance(error.__cause__, PrepareError):
                    self._wants_default_delegate |= subgraph.index == 0
                elif is_strict():
                    raise
                else:
                    logger.warning("The default delegate fails, the reference kernels run instead: %s", error)
            # What a delegate has taken together with the operator that calls it needs nothing of its own.
            left = [node.options for node in subgraph.planned_nodes if node.options is not None]
            called = dict.fromkeys(callee for options in left for callee in called_subgraphs(options))
            waiting += [callee for callee in called if callee in subgraphs and callee not in waiting]

    @property
    def _subgraphs(self) -> list[Subgraph]:
        return self._make() if self._made is None else self._made

    def _make(self) -> list[Subgraph]:
        """Read the model and build its subgraphs, which take the place of what is known of it."""
        from gossamer.model.verifier import verify_model

        self._plain.clear()
        made = build_subgraphs(
            self._model, self._resolver, verify_model(self._model), self._cancellation, self._taps, **self._settings
        )
        known, self._known, self._made = self._known, None, made
        if known is not None and known.is_allocated:
            self._apply_default_delegate()
            made[0].allocate_tensors()
            known.hand_over(made[0])
        return made

    @property
    def _boundary(self) -> Subgraph | KnownGraph:
        """What knows the inputs and outputs of the model."""
        return self._subgraphs[0] if self._known is None else self._known

    def _tensor(self, index: int, subgraph_index: int = 0) -> Tensor:
        known = self._known.tensors.get(index) if self._known is not None and not subgraph_index else None
        return self._subgraph(subgraph_index).tensor(index) if known is None else known

    def _remember_tensor(self, index: int) -> None:
        tensor = self._tensor(index)
        if tensor.shape and not tensor.is_constant and not tensor.has_objects:
            self._plain[index] = tensor

    def _recall(self) -> KnownGraph | None:
        """What is known of the file, unless it has been changed."""
        self._default = _default_delegate(self._num_threads)
        if self._default is None:
            return None
        record = self._default.recall(self._source.identity)
        if not record or checksum(self._source.content, record["structure"]) != record["checksum"]:
            return None
        self._may_be_known = False
        return KnownGraph(self._source, record, self._default, self._cancellation)

    def _remember(self) -> None:
        """Take down what the next interpreter of this file needs, if everything is as it was made for."""
        self._may_be_known = False
        if self._default is None:
            return
        record = record_of(self._model, self._subgraphs, self._default)
        if record is not None:
            self._default.remember(self._source.identity, record)

    def _forget(self, reason: Forgotten) -> None:
        """Go on with nodes: what runs the model without is not there any more, or cannot say what is wrong."""
        logger.info("%s is read after all: %r", self._source.path, reason.__cause__)
        self._make()

    def _ensure_safe(self) -> None:
        if self._held:
            raise RuntimeError(_VIEWS_HELD)

    def _subgraph(self, index: int) -> Subgraph:
        if not 0 <= index < len(self._subgraphs):
            raise ValueError(f"Invalid subgraph index {index} exceeds max subgraph index {len(self._subgraphs) - 1}")
        return self._subgraphs[index]

    def _delegated_subgraphs(self) -> Iterator[Subgraph]:
        for index, subgraph in enumerate(self._subgraphs):
            if subgraph.name.startswith("VALIDATION:"):
                logger.info("Skipping calling ModifyGraphWithDelegate on Subgraph %d: %s", index, subgraph.name)
            else:
                yield subgraph

    def _readable(self, tensor: Tensor) -> NDArray[Any]:
        tensor.make_readable()
        if not tensor.has_data:
            raise ValueError(_NO_DATA)
        return tensor.array()

    def _set_tensor(self, tensor_index: int, value: ArrayLike, subgraph_index: int) -> None:
        tensor = self._tensor(operator.index(tensor_index), subgraph_index)
        array = np.asarray(value)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if tensor.type in _FLOAT8 and array.dtype in (np.int8, np.uint8):
            array = array.view(tensor.dtype)
        got = _tflite_type_name(array.dtype)
        expected = "INT8" if tensor.type == TensorType.INT2 else tensor.type.name
        matches = array.dtype == tensor.dtype or (tensor.type == TensorType.STRING and array.dtype.kind in "SUO")
        if matches and array.dtype == np.object_ and tensor.type == TensorType.STRING:
            odd = next((type(item) for item in array.reshape(-1) if not isinstance(item, str | bytes)), None)
            matches, got = odd is None, f"object holding {odd.__name__}" if odd else got
        if not matches:
            raise ValueError(
                f"Cannot set tensor: Got value of type {got} but expected type {expected} "
                f"for input {tensor.index}, name: {tensor.name} "
            )
        if tensor.type in (TensorType.INT4, TensorType.UINT4) and array.size == math.prod(tensor.shape):
            array = array.reshape(tensor.shape)
        if array.ndim != len(tensor.shape):
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected {len(tensor.shape)} "
                f"for input {tensor.index}."
            )
        for axis, (size, wanted) in enumerate(zip(array.shape, tensor.shape, strict=True)):
            if size != wanted:
                raise ValueError(
                    f"Cannot set tensor: Dimension mismatch. Got {size} but expected {wanted} "
                    f"for dimension {axis} of input {tensor.index}."
                )
        if tensor.is_constant:
            raise ValueError(f"Cannot set tensor: {tensor.index}, name: {tensor.name}, is a constant of the model")
        if not tensor.has_data and not tensor.has_objects:
            raise ValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
        if is_packed(tensor.type) and array.size:
            low, high = integer_range(tensor.type)
            if array.min() < low or array.max() > high:
                raise ValueError(f"Cannot set tensor: {tensor.type.name} holds {low} to {high}")
        tensor.assign(array)

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> Details:
        tensor = self._tensor(int(tensor_index), int(subgraph_index))
        if tensor.allocation_type == AllocationType.MEM_NONE:
            raise ValueError(f"Tensor with no type found: {tensor.index} is kept free for scratch memory.")
        return tensor_details(
            tensor, lambda: self._subgraph(int(subgraph_index)), self._readable, self._compress_zero_points
        )

    def _get_op_details(self, op_index: int) -> Details:
        nodes = self._subgraphs[0].nodes
        if not 0 <= op_index < len(nodes):
            raise ValueError("Invalid node index")
        return op_details(nodes[op_index], self._subgraphs[0].tensors)

    def _get_ops_details(self) -> list[Details]:
        return [self._get_op_details(index) for index in range(len(self._subgraphs[0].nodes))]

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        # Tensor maps are sorted by name in TFLite, whatever their order in the file.
        return {
            key: {
                "inputs": {entry.name: entry.tensor_index for entry in sorted(stored.inputs, key=_entry_name)},
                "outputs": {entry.name: entry.tensor_index for entry in sorted(stored.outputs, key=_entry_name)},
            }
            for key, stored in self._model.signatures.items()
        }

    def _signature_subgraph(self, signature_key: str) -> int:
        return self._model.signatures[signature_key].subgraph_index

    def _native_handle(self) -> int:
        raise RuntimeError("there is no native interpreter behind this one: it is Python")


class InterpreterWithCustomOps(Interpreter):
    """An `Interpreter` with custom operators: each of ``custom_op_registerers`` is called with a `MutableOpResolver`,
    or is an operator that `gossamer.custom_op` made.

    Raises `ValueError` for a registerer that is a symbol name: those live in C++ libraries.
    """

    def __init__(
        self,
        custom_op_registerers: Sequence[OpDef | Callable[[MutableOpResolver], None]] | None = None,
        **kwargs: Any,
    ) -> None:
        base = _resolver(kwargs.pop("experimental_op_resolver_type", OpResolverType.AUTO))
        resolver = MutableOpResolver(base)
        for registerer in custom_op_registerers or ():
            if isinstance(registerer, OpDef):
                resolver.add(registerer)
            elif callable(registerer):
                registerer(resolver)
            else:
                raise ValueError(
                    f"Looking up symbol '{registerer}' failed: a registerer here is a Python function that takes a "
                    "MutableOpResolver"
                )
        super().__init__(experimental_op_resolver_type=resolver, **kwargs)


def _observed(subgraph: Subgraph, observable: set[int], wanted: int | str) -> int:
    """The index of a tensor that can be observed. Raises `ValueError`."""
    if isinstance(wanted, str):
        named = [tensor for tensor in subgraph.tensors if tensor.name == wanted]
        if not named:
            raise ValueError(f'subgraph {subgraph.index} has no tensor "{wanted}"')
        index = next((tensor.index for tensor in named if tensor.index in observable), named[0].index)
    else:
        index = subgraph.tensor(operator.index(wanted)).index
    if index not in observable:
        raise ValueError(
            f'tensor {index} "{subgraph.tensors[index].name}" of subgraph {subgraph.index} is not written when the '
            "model runs; get_tensor has its value, if it has one"
        )
    return index


def _default_delegate(num_threads: int) -> Delegate | None:
    """Found by name, and only when a first model is allocated: the runtime knows no delegate."""
    made: Delegate | None = import_module("gossamer.delegates.jit").default_delegate(num_threads)
    return made


def _checked(delegate: Any, argument: str) -> Delegate:
    if isinstance(delegate, Delegate):
        return delegate
    if hasattr(delegate, "_get_native_delegate_pointer"):
        what = "a C++ delegate for LiteRT's own runtime"
    else:
        what = f"a {type(delegate).__name__}"
    raise ValueError(f"{argument} takes instances of gossamer.Delegate, got {what}")


def _release(subgraphs: list[Subgraph]) -> None:
    for subgraph in subgraphs:
        subgraph.delegation.release()


def _resolver(choice: OpResolverType | OpResolver) -> OpResolver:
    if isinstance(choice, OpResolver):
        return choice
    if not isinstance(choice, OpResolverType):
        raise ValueError(f"Unrecognized passed in op resolver type: {choice}")
    return MutableOpResolver(BuiltinOpResolver(reference=choice is OpResolverType.BUILTIN_REF), InstalledOpResolver())


def _with_custom_ops(resolver: OpResolver, custom_ops: Iterable[OpDef]) -> OpResolver:
    own = MutableOpResolver(resolver)
    for op in custom_ops:
        if not isinstance(op, OpDef):
            raise ValueError(f"custom_ops takes what @gossamer.custom_op(name) makes, got {op!r}")
        own.add(op)
    return own if custom_ops else resolver


def _returned(array: NDArray[Any]) -> NDArray[Any]:
    # As functions of NumPy and LiteRT do: an array without dimensions is returned as a scalar, unless it is a string.
    scalar: NDArray[Any] = array if array.dtype == np.object_ else array[()]
    return scalar


def _entry_name(entry: Any) -> str:
    return str(entry.name)


_FLOAT8 = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)
_TYPE_OF_KIND = {"O": "STRING", "S": "STRING", "U": "STRING", "b": "BOOL"}


def _tflite_type_name(dtype: np.dtype[Any]) -> str:
    name = _TYPE_OF_KIND.get(dtype.kind, dtype.name.upper())
    return name if name in TensorType.__members__ else "NOTYPE"
