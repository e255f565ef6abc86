"""A model made ready to run, with its inputs and outputs under the names that a user knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError, did_you_mean
from gossamer.inputs.port import ports
from gossamer.records import record
from gossamer.resolver import OpResolverType
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.signature import SignatureRunner
from gossamer.runtime.state import lasting_state

Array = NDArray[Any]


@record(frozen=True)
class Seconds:
    """What a `Session.call` has taken: to resize, allocate and set the inputs, for which machine code may have to be
    planned and compiled; and to run."""

    plan: float
    inference: float


class Session:
    """An interpreter of one model, called by its first subgraph or by one of its signatures.

    ``settings``: further arguments of `Interpreter`. ``load``: seconds until that was there. ``took``: what the last
    `call` has taken.

    Raises `InputError` for a signature that does not exist, and what `Interpreter` raises.
    """

    def __init__(
        self,
        path: str,
        signature: str | None = None,
        threads: int | None = None,
        reference: bool = False,
        allow_reduced_precision: bool = False,
        **settings: Any,
    ) -> None:
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if reference else OpResolverType.AUTO
        self.path = path
        self.signature = signature
        self.took = Seconds(0.0, 0.0)
        started = time.perf_counter()
        self.interpreter = Interpreter(
            path,
            num_threads=threads,
            experimental_op_resolver_type=resolver,
            allow_reduced_precision=allow_reduced_precision,
            **settings,
        )
        self.load = time.perf_counter() - started
        self.model = self.interpreter.model
        self.subgraph = 0
        self._runner: SignatureRunner | None = None
        self._ready = False
        self._prepared: list[tuple[int, ...]] | None = None
        self.timeout: float | None = None
        if signature is None:
            self.inputs, self.outputs = ports(self.interpreter)
            return
        keys = list(self.model.signatures)
        if signature not in keys:
            known = f"Its signatures are {', '.join(keys)}." if keys else "It has no signatures."
            raise InputError(f"{path}: there is no signature {signature!r}{did_you_mean(signature, keys)} {known}")
        self.subgraph = self.model.signatures[signature].subgraph_index
        self._runner = self.interpreter.get_signature_runner(signature)
        self.inputs, self.outputs = ports(self.interpreter, signature)

    def prepare(self, shapes: Sequence[Sequence[int]] | None = None) -> None:
        """Resize inputs to these shapes where they differ, and allocate. A signature does so at each `call`."""
        if self._runner is not None:
            return
        wanted = None if shapes is None else list(map(tuple, shapes))
        if self._ready and wanted is not None and wanted == self._prepared:
            return
        current = [tuple(d["shape"].tolist()) for d in self.interpreter.get_input_details()]
        for port, old, new in zip(self.inputs, current, wanted or current, strict=True):
            if new != old:
                self.interpreter.resize_tensor_input(port.index, list(new))
                self._ready = False
        if not self._ready:
            self.interpreter.allocate_tensors()
            self._ready = True
        self._prepared = wanted

    def set_inputs(self, values: Sequence[Array]) -> None:
        """Write the inputs of the next `invoke`."""
        self.prepare([value.shape for value in values])
        for port, value in zip(self.inputs, values, strict=True):
            self.interpreter.set_tensor(port.index, value)

    def invoke(self) -> None:
        """Run the first subgraph on the inputs that are set."""
        self.interpreter.invoke(timeout=self.timeout)

    def get_outputs(self) -> list[Array]:
        """Copies of the outputs of the last `invoke`."""
        return [np.asarray(self.interpreter.get_tensor(port.index)) for port in self.outputs]

    def call(self, values: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, by the signature if one was chosen."""
        runner = self._runner
        started = time.perf_counter()
        if runner is None:
            self.set_inputs(values)
        else:
            runner.set_inputs({port.name: value for port, value in zip(self.inputs, values, strict=True)})
        planned = time.perf_counter()
        if runner is None:
            self.invoke()
        else:
            runner.invoke(timeout=self.timeout)
        self.took = Seconds(planned - started, time.perf_counter() - planned)
        self._ready = True
        if runner is None:
            return self.get_outputs()
        results = runner.get_outputs()
        return [np.asarray(results[port.name]) for port in self.outputs]

    def clone(self) -> Session:
        """Another session for another thread: machine code and packed weights are shared, tensors and state are not."""
        other = copy(self)
        other._begin_anew()
        return other

    def reset(self) -> None:
        """Forget what variables and resources hold, so that the next call does not depend on those before."""
        if not self._ready:
            return
        if self.writes_resources:  # which only a new interpreter has as they were
            self._begin_anew()
        else:
            self.interpreter.reset_all_variables()

    @cached_property
    def writes_resources(self) -> bool:
        """Whether a run leaves values behind that TFLite's ``reset_all_variables`` does not reset."""
        return lasting_state(self.model, self.interpreter._engine.settings.resolver)[1]

    def _begin_anew(self) -> None:
        self.interpreter = self.interpreter.clone()
        self._ready = False  # whoever has the other one at the moment may have been about to allocate
        if self.signature is not None:
            self._runner = self.interpreter.get_signature_runner(self.signature)
