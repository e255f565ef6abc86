"""What two models are given: samples of the first one's inputs, and the same for the second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.compare.difference import Form
from gossamer.errors import InputError
from gossamer.inputs.arrays import fit, position_of
from gossamer.inputs.port import Port, ports
from gossamer.inputs.random_values import random_input
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.quantize.parameters import LIMITS
from gossamer.runtime.interpreter import Interpreter

Array = NDArray[Any]


class Feed:
    """Gives samples of ``a`` as arrays of its inputs, and as those of ``b``; ``inputs``: see `Matching`."""

    def __init__(self, a: Model, b: Model, inputs: Sequence[int]) -> None:
        self._model = a
        self._ports, _ = ports(Interpreter(model_content=write_model(a)))
        self._a = [Form(a.subgraphs[0].tensors[index]) for index in a.subgraphs[0].inputs]
        self._b = [Form(b.subgraphs[0].tensors[index]) for index in b.subgraphs[0].inputs]
        self._inputs = inputs
        for position, form in zip(inputs, self._b, strict=True):
            one = self._a[position]
            if one != form and not (one.is_real and form.is_real):
                raise InputError(
                    f"input {self._ports[position].describe()} of A cannot be that of B, which is "
                    f"{form.dtype.name}{' quantized' if form.is_quantized else ''}"
                )
        quantized = {position: form for position, form in zip(inputs, _quantized(b), strict=True) if form is not None}
        self._bounds = {**dict(enumerate(_quantized(a))), **quantized}

    def random(self, runs: int, seed: int) -> Iterator[list[Array]]:
        """Samples without any given: in the real range of the integers, where one of the models has such for the input;
        else as TFLite's benchmark_model has them."""
        for run in range(runs):
            yield [self._random(port, (seed, run)) for port in self._ports]

    def _random(self, port: Port, seed: tuple[int, int]) -> Array:
        shape = tuple([1 if n < 0 else n for n in port.signature])
        form = self._bounds.get(port.position)
        if form is None or not self._a[port.position].is_real:
            return random_input(port, shape, seed=seed)
        low, high = form.real(np.array(LIMITS[form.type]))
        if self._a[port.position].is_quantized:
            real = np.random.default_rng([*seed, port.position]).uniform(low, high, shape)
            return self._a[port.position].stored(real)
        return random_input(port, shape, (float(low), float(high)), seed)

    def given(self, samples: Iterable[Any]) -> Iterator[list[Array]]:
        """The arrays of samples: lists in the order of the inputs, or mappings by their names, which the key of a
        signature may go before. Raises `InputError` for one that does not fit."""
        for number, sample in enumerate(samples):
            where = f"sample {number}"
            if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
                key, sample = sample
                if key in self._model.signatures and self._model.signatures[key].subgraph_index:
                    raise InputError(f"{where}: signature {key!r} does not run the main graph, which is compared")
            if isinstance(sample, Mapping):
                found = {position_of(name, self._ports, where): value for name, value in sample.items()}
                missing = [port.name for port in self._ports if port.position not in found]
                if missing:
                    raise InputError(f"{where}: there is no array for the inputs {', '.join(missing)}.")
                arrays: list[Any] = [found[port.position] for port in self._ports]
            else:
                arrays = [sample] if isinstance(sample, np.ndarray) else list(sample)
            if len(arrays) != len(self._ports):
                raise InputError(f"{where}: it has {len(arrays)} arrays, the model {len(self._ports)} inputs.")
            yield [fit(np.asarray(one), port, where) for one, port in zip(arrays, self._ports, strict=True)]

    def of_b(self, arrays: Sequence[Array]) -> list[Array]:
        """The inputs of the second model for arrays of the first one's."""
        return [self._a[at].converted(arrays[at], form) for at, form in zip(self._inputs, self._b, strict=True)]


def _quantized(model: Model) -> Iterator[Form | None]:
    """Of each input the form in which it is integers: its own, or that of the QUANTIZE that reads it."""
    subgraph = model.subgraphs[0]
    for index in subgraph.inputs:
        forms = [Form(subgraph.tensors[index])]
        for operator in subgraph.operators:
            if model.operator_name(operator) == "QUANTIZE" and index in operator.inputs:
                forms.append(Form(subgraph.tensors[operator.outputs[0]]))
        yield next((form for form in forms if form.is_quantized and not form.quantization.per_channel), None)
