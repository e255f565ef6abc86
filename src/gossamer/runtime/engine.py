"""What an interpreter runs its model by: which of the executors, and what is kept of a file between them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.config import is_strict
from gossamer.delegates.delegate import Delegate
from gossamer.errors import DelegateError, PrepareError
from gossamer.log import logger
from gossamer.model import read_model
from gossamer.model.model import Model
from gossamer.model.reader import ModelFile
from gossamer.phases import phase
from gossamer.runtime.arenas import called_subgraphs
from gossamer.runtime.builder import build_subgraphs
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.executor import Executor
from gossamer.runtime.known import Forgotten, KnownGraph, record_of
from gossamer.runtime.node import Shape
from gossamer.runtime.settings import Settings
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.taps import Taps
from gossamer.runtime.tensor import Tensor
from gossamer.schema import OperatorCode

if TYPE_CHECKING:
    from gossamer.runtime.coverage import Coverage
    from gossamer.runtime.graph import Recorder

_NOT_HERE = "There is no machine code for this CPU, or its features are not told."

_NOT_WANTED = "The default delegate is not wanted."

_told: set[str] = set()
"""The warnings that this process has seen."""


class Engine:
    """Runs a model: without nodes, if the file is known, as long as that will do; else by its subgraphs.

    ``source``: the file, mapped, or the bytes of a model. ``executor`` is what runs it now: `known`, if there is one,
    which gives way to subgraphs as soon as somebody asks for them. ``delegates``: those that the user applied.
    ``plain``: tensors whose value is set and read by copying an array, which is remembered: most of a small model's
    call.
    """

    executor: Executor

    def __init__(self, source: Any, settings: Settings) -> None:
        self.source = source
        self.settings = settings
        self.cancellation = Cancellation()
        self.taps = Taps()
        self._recorder: Recorder | None = None
        self.delegates: list[Delegate] = []
        self.plain: dict[int, Tensor] = {}
        self.known: KnownGraph | None = None
        self._made: list[Subgraph] | None = None
        self._stored: Model | None = None  # if what runs says the same in other operators
        self._release: weakref.finalize[..., Any] | None = None
        self._default: Delegate | None = None
        self._wants_default_delegate, self._has_failed = settings.has_default_delegate, False
        self._has_claimed = False
        self._may_be_known = settings.is_plain

    def start(self) -> None:
        """Recall what is known of the file, or read it. Raises what reading and building raise."""
        self.known = self._recall() if self._may_be_known else None
        if self.known is None:
            self._make()
        else:
            self.executor = self.known

    def another(self) -> Engine:
        """Another one for the same model, which is not read again; not started."""
        other = Engine(self.source, self.settings)
        if "model" in self.__dict__:
            other.__dict__["model"] = self.model
        return other

    @cached_property
    def model(self) -> Model:
        """The stored model. Operators of TensorFlow in it are others where builtin ones can say what they do, unless
        the reference kernels are asked for."""
        model = read_model(self.source)
        if self.settings.has_default_delegate and any(map(_is_flex, model.operator_codes)):
            rewrite = import_module("gossamer.flex.rewrite").rewritten
            rewritten: Model = rewrite(model, self.settings.resolver.find_custom)
            if rewritten is not model:
                self._stored, self._may_be_known = model, False
            return rewritten
        return model

    @property
    def subgraphs(self) -> list[Subgraph]:
        """Those of the model, which are made when somebody asks for them."""
        return self._make() if self._made is None else self._made

    @property
    def delegated_subgraphs(self) -> Iterator[Subgraph]:
        """Those that delegates are shown."""
        for index, subgraph in enumerate(self.subgraphs):
            if subgraph.name.startswith("VALIDATION:"):
                logger.info("Skipping calling ModifyGraphWithDelegate on Subgraph %d: %s", index, subgraph.name)
            else:
                yield subgraph

    def subgraph(self, index: int) -> Subgraph:
        """One of them. Raises `ValueError` if there is none with this index."""
        if not 0 <= index < len(self.subgraphs):
            raise ValueError(f"Invalid subgraph index {index} exceeds max subgraph index {len(self.subgraphs)}")
        return self.subgraphs[index]

    def tensor(self, index: int, subgraph_index: int = 0) -> Tensor:
        """A tensor, for which no subgraph is made if it goes in or out of a known one. Raises `ValueError`."""
        known = self.known.tensors.get(index) if self.known is not None and not subgraph_index else None
        return self.subgraph(subgraph_index).tensor(index) if known is None else known

    def remember_tensor(self, index: int) -> None:
        """Note that the tensor is `plain`, if it is."""
        tensor = self.tensor(index)
        if tensor.shape and not tensor.is_constant and not tensor.has_objects:
            self.plain[index] = tensor

    @phase("prepare")
    def allocate_tensors(self) -> None:
        """See `Interpreter.allocate_tensors`."""
        if self.known is not None:
            try:
                self.known.allocate_tensors()
                return
            except Forgotten as reason:
                self._forget(reason)
        self.apply_default_delegate()
        try:
            self.subgraphs[0].allocate_tensors()
        except PrepareError:
            self._claim_again()
            raise
        self._has_claimed = True
        if self._may_be_known:
            self._remember()
        self.warn()

    def _claim_again(self) -> None:
        """Have the default delegate asked for other shapes, if there have been none yet with which nodes can be
        prepared: it claims none that cannot be."""
        if not self._has_claimed and self._default is not None and self.settings.has_default_delegate:
            self.subgraphs[0].delegation.withdraw(self.delegates)
            self._wants_default_delegate = True

    def invoke(self) -> None:
        """See `Interpreter.invoke`."""
        if self.known is not None:
            try:
                self.known.invoke()
                return
            except Forgotten as reason:
                self._forget(reason)
        self.subgraphs[0].invoke()

    def resize_input(self, index: int, shape: Shape, subgraph_index: int = 0, *, strict: bool = False) -> None:
        """See `RunningGraph.resize_input`."""
        subgraph = self.subgraph(subgraph_index)
        if self._stored is not None and not strict and index in subgraph.inputs:
            signature = subgraph.tensors[index].shape_signature
            if len(signature) != len(shape) or any(
                was not in (-1, size) for was, size in zip(signature, shape, strict=True)
            ):
                self._return_to_stored()
                subgraph = self.subgraph(subgraph_index)
        subgraph.resize_input(index, shape, strict=strict)

    def _return_to_stored(self) -> None:
        """What was rewritten holds for the sizes that the file fixes only."""
        stored, self._stored = self._stored, None
        if stored is None or _ends(stored) != _ends(self.model):
            raise PrepareError("inputs of this model keep their sizes: its outputs are inputs, or one another")
        self.__dict__["model"] = stored
        self._wants_default_delegate = self.settings.has_default_delegate
        delegates, self.delegates = self.delegates, []
        self._make()
        for delegate in delegates:
            self.apply(delegate)

    def unsettle(self) -> None:
        """See `Executor.unsettle`: of all subgraphs."""
        for graph in (self.known, *(self._made or ())):
            if graph is not None:
                graph.unsettle()

    @property
    def recorder(self) -> Recorder | None:
        """Who is told what runs, if anybody. Nobody: then nothing asks for it on the way of a model that has run."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        for subgraph in self.subgraphs:
            subgraph.recorder = recorder
        self.unsettle()

    def cancel(self) -> None:
        """See `Interpreter.cancel`."""
        self.cancellation.cancel(is_running=self.executor.busy)

    @phase("delegates")
    def apply(self, delegate: Delegate) -> bool:
        """See `Interpreter.modify_graph_with_delegate`."""
        self._release_at_the_end(self.subgraphs)
        try:
            applied = [subgraph.delegation.apply(delegate) for subgraph in self.delegated_subgraphs]
        except DelegateError:
            for subgraph in self.subgraphs:
                subgraph.delegation.remove()
            self.delegates.clear()
            raise
        self.delegates.append(delegate)
        return all(applied)

    @phase("delegates")
    def apply_default_delegate(self) -> None:
        """Let the default delegate take what it claims, unless it has, or none is wanted."""
        # As late as TFLite does it: after those that the user applies, when the shapes are those that will run.
        made = self.subgraphs  # first: as they are made in the place of what is known, they get it too
        # Where it has failed, but the graph runs, it is asked again when shapes change: variables keep their values.
        if not self._wants_default_delegate or (self._has_failed and made[0].is_invokable):
            return
        self._wants_default_delegate = self._has_failed = False
        delegate = self._default or _default_delegate(self.settings)
        self._default = delegate
        if delegate is None:
            return
        self._release_at_the_end(made)
        subgraphs = {subgraph.index: subgraph for subgraph in self.delegated_subgraphs}
        waiting = [index for index, subgraph in subgraphs.items() if subgraph.is_entry]
        for index in waiting:
            subgraph = subgraphs[index]
            if subgraph.delegation.has(delegate):
                continue
            try:
                subgraph.delegation.apply(delegate)
                if _comes_late(subgraph) and (late := delegate.late()) is not None:
                    subgraph.delegation.apply(late)
            except DelegateError as error:
                # What the graph is to blame for, whoever runs it, allocate_tensors and invoke will say; other shapes
                # may do better.
                if isinstance(error.__cause__, PrepareError):
                    self._wants_default_delegate |= subgraph.index == 0
                    self._has_failed = self._wants_default_delegate
                elif is_strict():
                    raise
                else:
                    logger.warning("The default delegate fails, the reference kernels run instead: %s", error)
            # What a delegate has taken together with the operator that calls it needs nothing of its own.
            left = [node.options for node in subgraph.planned_nodes if node.options is not None]
            called = dict.fromkeys(callee for options in left for callee in called_subgraphs(options))
            waiting += [callee for callee in called if callee in subgraphs and callee not in waiting]

    def coverage(self) -> Coverage:
        """Which operators run on the reference kernels, the delegates being as they are."""
        from gossamer.runtime.coverage import coverage

        why_not = (
            None if self._default is not None else _NOT_HERE if self.settings.has_default_delegate else _NOT_WANTED
        )
        return coverage(self.subgraphs, why_not)

    def lacking(self) -> Coverage:
        """Those of them for which there is machine code, though not here or now."""
        applied = [delegate for delegate in (self._default, *self.delegates) if delegate is not None]
        failures = {_NOT_HERE, *[failure for delegate in applied for failure in delegate.failures]}
        found = self.coverage()
        left = {(name, reason): count for (name, reason), count in found.left.items() if reason in failures}
        return found._replace(left=Counter(left))

    def warn(self) -> None:
        """Say, once for a model, if anything is lacking."""
        applied = [delegate for delegate in (self._default, *self.delegates) if delegate is not None]
        is_nowhere = self.settings.has_default_delegate and self._default is None
        if not (is_nowhere or any(delegate.failures for delegate in applied)) or not self.lacking().left:
            return
        of = f'"{self.source.path}"' if isinstance(self.source, ModelFile) else "the model"
        text = self.coverage().sentences(of)
        if text not in _told:
            _told.add(text)
            logger.warning("%s", text)

    def _make(self) -> list[Subgraph]:
        """Read the model and build its subgraphs, which take the place of what is known of it."""
        from gossamer.model.verifier import verify_model

        self.plain.clear()
        made = build_subgraphs(
            self.model,
            self.settings.resolver,
            verify_model(self.model),
            self.cancellation,
            self.taps,
            is_default_path=self.settings.has_default_delegate,
            **self.settings.subgraphs,
        )
        for subgraph in made:
            subgraph.recorder = self._recorder
        known, self.known, self._made, self.executor = self.known, None, made, made[0]
        if known is not None and known.is_invokable:
            self.apply_default_delegate()
            made[0].allocate_tensors()
            known.hand_over(made[0])
        return made

    @phase("recall")
    def _recall(self) -> KnownGraph | None:
        """What is known of the file, unless it has been changed."""
        self._default = _default_delegate(self.settings)
        if self._default is None:
            return None
        record = self._default.recall(self.source.identity)
        if not record:
            return None
        try:
            known = KnownGraph(self.source, record, self._default, self.cancellation)
        except Forgotten:
            return None
        self._may_be_known = False
        return known

    def _remember(self) -> None:
        """Take down what the next interpreter of this file needs, if everything is as it was made for."""
        self._may_be_known = False
        if self._default is None:
            return
        record = record_of(self.model, self.subgraphs, self._default)
        if record is not None:
            self._default.remember(self.source.identity, record)

    def _forget(self, reason: Forgotten) -> None:
        """Go on with nodes: what runs the model without is not there any more, or cannot say what is wrong."""
        logger.info("%s is read after all: %r", self.source.path, reason.__cause__)
        self._make()

    def _release_at_the_end(self, subgraphs: list[Subgraph]) -> None:
        if self._release is None:
            self._release = weakref.finalize(self, _release, subgraphs)


def _default_delegate(settings: Settings) -> Delegate | None:
    """Found by name, and only when a first model is allocated: the runtime knows no delegate."""
    make = import_module("gossamer.delegates.jit").default_delegate
    made: Delegate | None = make(settings.num_threads, settings.allow_reduced_precision)
    return made


def _comes_late(subgraph: Subgraph) -> bool:
    """Whether nodes are left, and among them one that leaves a shape to its value."""
    left = any(node.delegate is None for node in subgraph.planned_nodes)
    with suppress(PrepareError):  # which allocate_tensors will say
        return left and subgraph.dynamic_tensor() is not None
    return False


def _release(subgraphs: list[Subgraph]) -> None:
    for subgraph in subgraphs:
        subgraph.delegation.release()


def _ends(model: Model) -> list[tuple[int, list[int], list[int]]]:
    """Of what can be called from outside: the subgraph, its inputs and outputs."""
    entries = [0, *[signature.subgraph_index for signature in model.signatures.values()]]
    return [(index, list(model.subgraphs[index].inputs), list(model.subgraphs[index].outputs)) for index in entries]


def _is_flex(code: OperatorCode) -> bool:
    return code.has("custom_code") and code.custom_code.startswith("Flex")
