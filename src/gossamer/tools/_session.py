"""A model made ready to run, with its inputs and outputs under the names that a user knows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import Interpreter, OpResolverType, SignatureRunner
from gossamer.arrays import NDArray
from gossamer.errors import ModelError
from gossamer.model import Model
from gossamer.model.metadata import model_metadata
from gossamer.records import record
from gossamer.tools._command import Failure, affine, did_you_mean, existing_file

Array = NDArray[Any]


@record(frozen=True)
class Port:
    """An input or an output of a model. ``aliases`` are names that signatures give it; -1 in ``signature`` is any."""

    position: int
    name: str
    aliases: tuple[str, ...]
    index: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    scale: float
    zero_point: int

    @property
    def is_text(self) -> bool:
        """Whether the elements are strings."""
        return self.dtype.kind in "SUO"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers; those of ml_dtypes (bfloat16, float8) are."""
        return self.dtype.kind == "f" or "float" in self.dtype.name

    @property
    def is_quantized(self) -> bool:
        """Whether the elements are integers that stand for real numbers."""
        return self.scale != 0.0 and self.dtype.kind in "iu"

    @property
    def type_name(self) -> str:
        """The element type for messages and tables."""
        return "string" if self.is_text else self.dtype.name

    @property
    def real_range(self) -> tuple[float, float]:
        """The real numbers that the least and the greatest integer of a quantized port stand for."""
        info = np.iinfo(self.dtype)
        return self.scale * (info.min - self.zero_point), self.scale * (info.max - self.zero_point)

    def answers_to(self, name: str) -> bool:
        """Whether this is a name of the port."""
        return name == self.name or name in self.aliases

    def describe(self) -> str:
        """Name, type, shape and quantization, as messages show them."""
        quantized = f", quantized {affine(self.scale, self.zero_point)}" if self.is_quantized else ""
        shape = ", ".join("?" if n < 0 else str(n) for n in self.signature)
        return f'"{self.name}" {self.type_name} [{shape}]{quantized}'

    def dequantize(self, values: Array) -> Array:
        """The real numbers that the values of this port stand for, float32; others as they are."""
        if not self.is_quantized:
            return values
        real: Array = np.float32(self.scale) * (values.astype(np.int64) - self.zero_point).astype(np.float32)
        return real

    def quantize(self, values: Array) -> Array:
        """The nearest integers of a quantized port for real numbers, saturated."""
        info = np.iinfo(self.dtype)
        scaled = np.rint(values.astype(np.float64) / self.scale) + self.zero_point
        integers: Array = np.clip(scaled, info.min, info.max).astype(self.dtype)
        return integers


def _aliases(model: Model) -> dict[int, list[str]]:
    # What signatures and metadata call the inputs and outputs of the first subgraph.
    names: dict[int, list[str]] = {}
    for signature in model.signature_defs:
        if signature.subgraph_index == 0:
            for entry in (*signature.inputs, *signature.outputs):
                names.setdefault(entry.tensor_index, []).append(entry.name)
    try:
        metadata = model_metadata(model)
    except ModelError:
        return names  # the run goes on without; `read_facts` says why
    if metadata is not None and metadata.subgraph_metadata:
        part, subgraph = metadata.subgraph_metadata[0], model.subgraphs[0]
        for indices, tensors in (
            (subgraph.inputs, part.input_tensor_metadata),
            (subgraph.outputs, part.output_tensor_metadata),
        ):
            for index, tensor in zip(indices, tensors, strict=False):
                if tensor.name:
                    names.setdefault(index, []).append(tensor.name)
    return names


def _port(position: int, name: str, aliases: Iterable[str], details: Mapping[str, Any]) -> Port:
    shape = tuple(int(n) for n in details["shape"])
    signature = tuple(int(n) for n in details["shape_signature"])
    scale, zero_point = details["quantization"]
    return Port(
        position=position,
        name=name or f"{position}",
        aliases=tuple(alias for alias in aliases if alias != name),
        index=int(details["index"]),
        dtype=np.dtype(details["dtype"]),
        shape=shape,
        signature=signature if len(signature) == len(shape) else shape,
        scale=float(scale),
        zero_point=int(zero_point),
    )


@record(frozen=True)
class Seconds:
    """What a `Session.call` has taken: to resize, allocate and set the inputs, for which machine code may have to be
    planned and compiled; and to run."""

    plan: float
    inference: float


class Session:
    """An interpreter of one model, called by its first subgraph or by one of its signatures.

    ``load``: seconds until that was there. ``took``: what the last `call` has taken.

    Raises `Failure` for a file or a signature that does not exist, and what `Interpreter` raises.
    """

    def __init__(
        self,
        path: str,
        signature: str | None = None,
        threads: int | None = None,
        reference: bool = False,
        allow_reduced_precision: bool = False,
    ) -> None:
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if reference else OpResolverType.AUTO
        self.path = existing_file(path, "model")
        self.signature = signature
        self.took = Seconds(0.0, 0.0)
        started = time.perf_counter()
        self.interpreter = Interpreter(
            path,
            num_threads=threads,
            experimental_op_resolver_type=resolver,
            allow_reduced_precision=allow_reduced_precision,
        )
        self.load = time.perf_counter() - started
        self.model = self.interpreter.model
        self.subgraph = 0
        self._runner: SignatureRunner | None = None
        self._ready = False
        self.timeout: float | None = None
        if signature is None:
            inputs, outputs = self.interpreter.get_input_details(), self.interpreter.get_output_details()
            aliases = _aliases(self.model)
            self.inputs = [_port(i, d["name"], aliases.get(d["index"], ()), d) for i, d in enumerate(inputs)]
            self.outputs = [_port(i, d["name"], aliases.get(d["index"], ()), d) for i, d in enumerate(outputs)]
            return
        keys = list(self.model.signatures)
        if signature not in keys:
            known = f"Its signatures are {', '.join(keys)}." if keys else "It has no signatures."
            raise Failure(f"{path}: there is no signature {signature!r}{did_you_mean(signature, keys)} {known}")
        self.subgraph = self.model.signatures[signature].subgraph_index
        self._runner = runner = self.interpreter.get_signature_runner(signature)
        self.inputs = [_port(i, n, [d["name"]], d) for i, (n, d) in enumerate(runner.get_input_details().items())]
        self.outputs = [_port(i, n, [d["name"]], d) for i, (n, d) in enumerate(runner.get_output_details().items())]

    def prepare(self, shapes: Sequence[Sequence[int]] | None = None) -> None:
        """Resize inputs to these shapes where they differ, and allocate. A signature does so at each `call`."""
        if self._runner is not None:
            return
        current = [tuple(d["shape"].tolist()) for d in self.interpreter.get_input_details()]
        for port, old, new in zip(self.inputs, current, shapes or current, strict=True):
            if tuple(new) != old:
                self.interpreter.resize_tensor_input(port.index, list(new))
                self._ready = False
        if not self._ready:
            self.interpreter.allocate_tensors()
            self._ready = True

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

    def reset(self) -> None:
        """Forget what variables hold, so that the next call does not depend on those before."""
        if self._ready:
            self.interpreter.reset_all_variables()
