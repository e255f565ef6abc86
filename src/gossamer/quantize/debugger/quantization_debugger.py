"""`tf.lite.experimental.QuantizationDebugger`: statistics of what NumericVerify gives, in a model in debug mode."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.ops.op_def import TensorInfo
from gossamer.quantize.attributes import arguments
from gossamer.quantize.calibrated import calibrated
from gossamer.quantize.debugger.numeric_verify import NUMERIC_VERIFY, with_numeric_verify
from gossamer.quantize.quantizer import quantize
from gossamer.runtime.interpreter import Interpreter

Array = NDArray[Any]
LayerMetric = Callable[[Array], float]
"""A function of ``dequantized - float``."""
ModelMetric = Callable[[Sequence[Array], Sequence[Array]], float]
"""A function of the outputs of the float and of the quantized model."""
DirectMetric = Callable[[Array, Array, float, int], float]
"""A function of a float value, the integers in its place, their scale and zero point."""

LAYER_METRICS: Mapping[str, LayerMetric] = {
    "num_elements": lambda differences: differences.size,
    "stddev": lambda differences: float(np.std(differences)),
    "mean_error": lambda differences: float(np.average(differences)),
    "max_abs_error": lambda differences: float(np.max(np.abs(differences))),
    "mean_squared_error": lambda differences: float(np.average(differences**2)),
}
"""What is always measured of a layer, once for each sample; the statistic is the mean over the samples."""


class QuantizationDebugOptions:
    """What a `QuantizationDebugger` measures, and what it leaves float.

    ``layer_debug_metrics``, ``model_debug_metrics`` and ``layer_direct_compare_metrics``: functions by name, see
    `LayerMetric`, `ModelMetric` and `DirectMetric`. ``denylisted_ops``: builtin operators, and ``denylisted_nodes``:
    names of their outputs, that stay float. ``fully_quantize``: inputs and outputs are int8 too. Raises `ValueError`
    if two metrics have the same name.

    >>> options = gossamer.QuantizationDebugOptions(denylisted_ops=["SOFTMAX"])
    >>> options.denylisted_ops
    ['SOFTMAX']
    """

    def __init__(
        self,
        layer_debug_metrics: Mapping[str, LayerMetric] | None = None,
        model_debug_metrics: Mapping[str, ModelMetric] | None = None,
        layer_direct_compare_metrics: Mapping[str, DirectMetric] | None = None,
        denylisted_ops: list[str] | None = None,
        denylisted_nodes: list[str] | None = None,
        fully_quantize: bool = False,
    ) -> None:
        self.layer_debug_metrics = layer_debug_metrics
        self.model_debug_metrics = model_debug_metrics
        self.layer_direct_compare_metrics = layer_direct_compare_metrics
        names = [*(layer_debug_metrics or ()), *(model_debug_metrics or ()), *(layer_direct_compare_metrics or ())]
        if len(names) != len(set(names)):
            raise ValueError("Provided metrics have duplicate keys.")
        self.denylisted_ops = denylisted_ops
        self.denylisted_nodes = denylisted_nodes
        self.fully_quantize = fully_quantize


class _Check(NamedTuple):
    # A NumericVerify: the numbers of its tensors, the name of what it gives, and of who makes what it looks at.
    quantized: int
    reference: int
    difference: int
    name: str
    operator: str


class QuantizationDebugger:
    """Runs a model in debug mode on samples. Arguments and results are those of `tf.lite.experimental`'s.

    The model is a file or its bytes; ``float_model_path`` or ``float_model_content`` is needed for
    ``model_debug_metrics``. With a ``converter`` (`gossamer.TFLiteConverter`, set up for integers) the models are made
    by it. ``debug_dataset`` is a function that gives samples: lists of arrays in the order of the inputs.

    After `run`, ``layer_statistics`` is ``{layer: {metric: mean over the samples}}``, ``model_statistics``
    ``{metric: mean}``. Raises `ValueError` for a model without NumericVerify and a converter that is not set up.

    >>> debugger = gossamer.QuantizationDebugger("debug.tflite", debug_dataset=samples)  # doctest: +SKIP
    >>> debugger.run()  # doctest: +SKIP
    >>> debugger.layer_statistics  # doctest: +SKIP
    """

    def __init__(
        self,
        quant_debug_model_path: str | os.PathLike[str] | None = None,
        quant_debug_model_content: bytes | None = None,
        float_model_path: str | os.PathLike[str] | None = None,
        float_model_content: bytes | None = None,
        debug_dataset: Callable[[], Iterable[Sequence[Array]]] | None = None,
        debug_options: QuantizationDebugOptions | None = None,
        converter: Any = None,
    ) -> None:
        self._dataset = debug_dataset
        self._options = debug_options or QuantizationDebugOptions()
        self.converter = converter
        self.calibrated_model: bytes | None = None
        self.float_model: bytes | None = None
        self._float_interpreter: Interpreter | None = None
        self.layer_statistics: dict[str, dict[str, float]] | None = None
        self.model_statistics: dict[str, float] | None = None
        if converter is not None:
            if not converter.optimizations:
                raise ValueError("converter object must set optimizations to lite.Optimize.DEFAULT")
            if not converter.representative_dataset:
                raise ValueError("converter object must set representative_dataset")
            self.float_model = _float_model(converter)
            self.calibrated_model = calibrated(read_model(self.float_model), self._samples())
            self._start_from_converter()
        else:
            self._start(quant_debug_model_path, quant_debug_model_content)
            if self._options.model_debug_metrics:
                self._float_interpreter = Interpreter(float_model_path, float_model_content)

    @property
    def options(self) -> QuantizationDebugOptions:
        """The options. New ones, with a converter, make a new model."""
        return self._options

    @options.setter
    def options(self, options: QuantizationDebugOptions) -> None:
        self._options = options
        if self.converter is not None:
            self._start_from_converter()

    def get_nondebug_quantized_model(self) -> bytes:
        """The quantized model without NumericVerify. Raises `ValueError` without a converter."""
        model, samples = self._source()
        options, mode = self._options, _mode(self.converter)
        type = "int8" if options.fully_quantize else "float32"
        asked = arguments(vars(self.converter), mode)
        kept = [*asked.pop("keep"), *(options.denylisted_ops or ()), *(options.denylisted_nodes or ())]
        further = getattr(self.converter, "quantization", {})
        return quantize(model, mode, samples, keep=kept, input_type=type, output_type=type, **{**asked, **further})

    def get_debug_quantized_model(self) -> bytes:
        """The quantized model in debug mode, by layer. Raises `ValueError` without a converter."""
        return with_numeric_verify(self._source()[0], read_model(self.get_nondebug_quantized_model()))

    def run(self) -> None:
        """Runs the samples and fills the statistics. Raises `ValueError` if a sample does not fit, or there are no
        samples."""
        self.layer_statistics = self._layer_statistics()
        if self._options.model_debug_metrics:
            self.model_statistics = self._model_statistics(self._options.model_debug_metrics)

    def layer_statistics_dump(self, file: IO[str]) -> None:
        """Writes the statistics of the layers as CSV, with a line of names; only that before `run`."""
        fields = ["op_name", "tensor_idx", *self._metrics, *(self._options.layer_direct_compare_metrics or ())]
        writer = csv.DictWriter(file, [*fields, "scale", "zero_point", "tensor_name"])
        writer.writeheader()
        for name, statistics in (self.layer_statistics or {}).items():
            check = self._checks[name]
            scale, zero_point = self._parameters(check)
            writer.writerow(
                {
                    **statistics,
                    "op_name": check.operator,
                    "tensor_idx": check.quantized,
                    "scale": scale,
                    "zero_point": zero_point,
                    "tensor_name": _layer_name(name),
                }
            )

    # -- the models

    def _source(self) -> tuple[Model, Iterable[Any]]:
        if self.float_model is None:
            raise ValueError("No converter found, use this function with the converter option in the constructor.")
        return read_model(self.float_model), self._samples()

    def _samples(self) -> Iterable[Any]:
        dataset = self.converter.representative_dataset
        samples: Iterable[Any] = getattr(dataset, "input_gen", dataset)()
        return samples

    def _start_from_converter(self) -> None:
        self.quant_model = self.get_debug_quantized_model()
        self._start(None, self.quant_model)
        if self._options.model_debug_metrics:
            self._float_interpreter = Interpreter(model_content=self.float_model)

    def _start(self, path: str | os.PathLike[str] | None, content: bytes | None) -> None:
        self._interpreter = Interpreter(path, content)
        self._model = read_model(content or path or b"")
        self._checks = _checks(self._model)
        if not self._checks:
            raise ValueError("Please check if the quantized model is in debug mode")
        self._metrics = {**LAYER_METRICS, **(self._options.layer_debug_metrics or {})}
        self._values: dict[int, Array] = {}
        tensors = {index for check in self._checks.values() for index in check[:3]}
        self._interpreter.tap(self._keep, tensors)
        self.layer_statistics = self.model_statistics = None

    def _keep(self, tensor: TensorInfo, value: Array) -> None:
        self._values[tensor.index] = value

    def _parameters(self, check: _Check) -> tuple[Any, Any]:
        parameters = self._interpreter._get_tensor_details(check.quantized, 0)["quantization_parameters"]
        return parameters["scales"][0], parameters["zero_points"][0]

    # -- the statistics

    def _layer_statistics(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, list[float]]] = {name: {} for name in self._checks}
        for number, sample in enumerate(self._debug_samples()):
            _run(self._interpreter, sample, not number)
            for name, check in self._checks.items():
                for metric, function in self._metrics.items():
                    found[name].setdefault(metric, []).append(function(self._values[check.difference]))
                for metric, compare in (self._options.layer_direct_compare_metrics or {}).items():
                    values = self._values[check.reference], self._values[check.quantized]
                    scale, zero_point = self._parameters(check)
                    found[name].setdefault(metric, []).append(compare(*values, scale, zero_point))
        return {
            name: {metric: float(np.nanmean(values)) for metric, values in metrics.items()}
            for name, metrics in found.items()
        }

    def _model_statistics(self, metrics: Mapping[str, ModelMetric]) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for number, sample in enumerate(self._debug_samples()):
            results = [
                [] if interpreter is None else _run(interpreter, sample, not number)
                for interpreter in (self._float_interpreter, self._interpreter)
            ]
            for name, metric in metrics.items():
                found.setdefault(name, []).append(metric(*results))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def _debug_samples(self) -> Iterable[Sequence[Array]]:
        if self._dataset is None:
            raise ValueError("`debug_dataset` must be given: a function that gives samples")
        return self._dataset()


def _float_model(converter: Any) -> bytes:
    """What a converter makes when nothing is to be quantized. Its attributes are as before afterwards."""
    plain: dict[str, Any] = {"optimizations": [], "inference_input_type": None, "inference_output_type": None}
    kept = {name: getattr(converter, name) for name in plain}
    try:
        for name, value in plain.items():
            setattr(converter, name, value)
        content: bytes = converter.convert()
    finally:
        for name, value in kept.items():
            setattr(converter, name, value)
    return content


def _mode(converter: Any) -> str:
    mode = getattr(converter, "_mode", lambda: "int8")()
    return mode if mode.startswith("int16") else "int8"


def _checks(model: Model) -> dict[str, _Check]:
    """The NumericVerify of the main graph, by the name of what they give."""
    subgraph = model.subgraphs[0]
    makers = {index: model.operator_name(operator) for operator in subgraph.operators for index in operator.outputs}
    found = {}
    for operator in subgraph.operators:
        if model.operator_name(operator) == NUMERIC_VERIFY:
            (quantized, reference), (difference,) = operator.inputs[:2], operator.outputs
            name = subgraph.tensors[difference].name
            found[name] = _Check(quantized, reference, difference, name, makers.get(quantized, ""))
    return found


def _layer_name(name: str) -> str:
    """The name of the float tensor, from ``NumericVerify/{name}:{number}``: a digit at the end, by which names are made
    unique, is left out."""
    tensor = name.rpartition(":")[0].removeprefix(f"{NUMERIC_VERIFY}/")
    return tensor[:-1] if tensor[-1:].isdigit() else tensor


def _run(interpreter: Interpreter, sample: Sequence[Array], first: bool) -> list[Array]:
    """The outputs for a sample, as real numbers; the ``first`` one decides the shapes of the inputs."""
    details = interpreter.get_input_details()
    if len(details) != len(sample):
        raise ValueError(
            f"Number of inputs provided ({len(sample)}) does not match number of inputs to the model ({len(details)})"
        )
    if first:
        for detail, value in zip(details, sample, strict=True):
            interpreter.resize_tensor_input(detail["index"], np.shape(value))
        interpreter.allocate_tensors()
    for detail, value in zip(details, sample, strict=True):
        scale, zero_point = detail["quantization"]
        if value.dtype == np.float32 and detail["dtype"] != np.float32 and scale:
            limits = np.iinfo(detail["dtype"])
            value = np.clip(np.round(value / scale + zero_point), limits.min, limits.max).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    results = []
    for detail in interpreter.get_output_details():
        value = interpreter.get_tensor(detail["index"])
        scale, zero_point = detail["quantization"]
        if scale and value.dtype != np.float32:
            value = (value.astype(np.float32) - np.float32(zero_point)) * np.float32(scale)
        results.append(value)
    return results
