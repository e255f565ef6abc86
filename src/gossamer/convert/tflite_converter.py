"""The names of `tf.lite` for converting: a script that used them changes its import.

What a live object is saved to, and by what, is said at each constructor: nothing is installed for it, its owner's own
packages write it into a temporary folder, and that is read as any file is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from gossamer.convert.converter import STORED, Converted, convert_source, format_of
from gossamer.convert.report import Entry
from gossamer.convert.request import BUILTINS, SELECT, Request
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.quantize.attributes import arguments, mode_of, type_name_of
from gossamer.quantize.calibrated import calibrated
from gossamer.quantize.quantizer import quantize
from gossamer.records import field, record


class OpsSet(Enum):
    """Which operators a model may have. The values are those of `tf.lite.OpsSet`.

    >>> gossamer.OpsSet.TFLITE_BUILTINS.value
    'TFLITE_BUILTINS'
    """

    TFLITE_BUILTINS = BUILTINS
    SELECT_TF_OPS = SELECT
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )
    EXPERIMENTAL_STABLEHLO_OPS = "EXPERIMENTAL_STABLEHLO_OPS"

    def __str__(self) -> str:
        return self.value


class Optimize(Enum):
    """What a model is optimized for. The values are those of `tf.lite.Optimize`.

    >>> gossamer.Optimize.DEFAULT.value
    'DEFAULT'
    """

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"

    def __str__(self) -> str:
        return self.value


class RepresentativeDataset:
    """Samples of inputs. ``input_gen`` is a function that gives an iterator of lists of arrays.

    >>> samples = gossamer.RepresentativeDataset(lambda: ([np.zeros((1, 8, 8, 1), np.float32)] for _ in range(10)))
    >>> len(list(samples.input_gen()))
    10
    """

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        self.input_gen = input_gen


@record
class TargetSpec:
    """What the model is to run on.

    >>> target = gossamer.TargetSpec(supported_ops=[gossamer.OpsSet.TFLITE_BUILTINS_INT8])
    """

    supported_ops: Iterable[OpsSet] = field(default_factory=lambda: {OpsSet.TFLITE_BUILTINS})
    supported_types: Iterable[Any] = field(default_factory=set)
    experimental_select_user_tf_ops: Iterable[str] = field(default_factory=set)
    experimental_supported_backends: Iterable[str] | None = None


class TFLiteConverter:
    """A conversion, to be made by a class method, set up by attributes, and carried out by `convert`.

    Attributes of quantization (``optimizations``, ``representative_dataset``, ``target_spec``,
    ``inference_input_type``, ``inference_output_type``, and those that begin with ``_experimental_``) are read as
    `tf.lite` reads them. ``denylisted_ops`` and ``denylisted_nodes`` are those of its debugger: operators, and names of
    outputs, that stay float. ``quantization``: further arguments of `gossamer.quantize.quantize`, such as ``methods``.
    ``shapes`` and ``batch`` fix sizes that the source leaves open. ``report`` has what became of each operator of the
    source, after `convert`.

    >>> converter = gossamer.TFLiteConverter.from_saved_model("folder")  # doctest: +SKIP
    >>> converter.optimizations = [gossamer.Optimize.DEFAULT]  # doctest: +SKIP
    >>> content = converter.convert()  # doctest: +SKIP
    """

    def __init__(self, source: Any, format: str, request: Request | None = None) -> None:
        self._source = source
        self._format = format
        self._request = request or Request()
        self.optimizations: Sequence[Optimize] = []
        self.representative_dataset: Any = None
        self.target_spec = TargetSpec()
        self.inference_input_type: Any = None
        self.inference_output_type: Any = None
        self.allow_custom_ops = False
        self.exclude_conversion_metadata = False
        self.experimental_enable_resource_variables = True
        self.experimental_new_converter = True
        self.experimental_new_quantizer = True
        self._experimental_calibrate_only = False
        self._experimental_disable_per_channel = False
        self._experimental_disable_per_channel_quantization_for_dense_layers = False
        self._experimental_full_integer_quantization_bias_type: Any = None
        self.denylisted_ops: Sequence[str] = ()
        self.denylisted_nodes: Sequence[str] = ()
        self.quantization: Mapping[str, Any] = {}
        self.shapes: Mapping[str, Sequence[int | None]] = {}
        self.batch: int | None = None
        self.report: list[Entry] = []

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        signature_keys: Sequence[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> TFLiteConverter:
        """A SavedModel's folder; all of its signatures unless some are named. TensorFlow is not needed."""
        options = {} if tags is None else {"tags": tuple(tags)}
        return cls(saved_model_dir, "saved_model", Request(signature_keys=signature_keys, options=options))

    @classmethod
    def from_frozen_graph(
        cls,
        graph_def_file: str | os.PathLike[str],
        input_arrays: Sequence[str] | None = None,
        output_arrays: Sequence[str] | None = None,
        input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    ) -> TFLiteConverter:
        """A frozen GraphDef. TensorFlow is not needed."""
        request = Request(inputs=input_arrays, outputs=output_arrays, shapes=input_shapes or {})
        return cls(graph_def_file, "graph_def", request)

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverter:
        """A ``.keras`` or ``.h5`` file, which needs h5py, or a live model of any backend, which is saved to one."""
        if isinstance(model, (str, os.PathLike)):
            return cls(model, format_of(model))
        return cls._saved(".keras", model.save)

    @classmethod
    def from_keras_model_file(cls, model_file: str | os.PathLike[str]) -> TFLiteConverter:
        """A ``.keras`` or ``.h5`` file, as TensorFlow 1 had it."""
        return cls.from_keras_model(model_file)

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> TFLiteConverter:
        """Functions of a running TensorFlow, which saves them with the object that has their variables."""
        tensorflow = _running("tensorflow", "concrete functions")
        root = tensorflow.Module() if trackable_obj is None else trackable_obj
        keys = ["serving_default"] if len(funcs) == 1 else [function.name for function in funcs]

        def save(path: str) -> None:
            tensorflow.saved_model.save(root, path, signatures=dict(zip(keys, funcs, strict=True)))

        return cls._saved("", save)

    @classmethod
    def experimental_from_jax(cls, serving_funcs: Sequence[Any], inputs: Sequence[Any]) -> TFLiteConverter:
        """One function of JAX, and its example inputs: a list of pairs of names and arrays."""
        if len(serving_funcs) != 1 or len(inputs) != 1:
            raise ConvertError(f"one function with its inputs is converted, got {len(serving_funcs)}")
        names = [name for name, _ in inputs[0]]
        return cls.from_jax(serving_funcs[0], *[example for _, example in inputs[0]], names=names)

    @classmethod
    def from_jax(
        cls,
        function: Callable[..., Any],
        *examples: Any,
        names: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> TFLiteConverter:
        """A function of JAX, which traces it with example arguments: arrays, or ``jax.ShapeDtypeStruct``, of which
        sizes that are symbols (``jax.export.symbolic_shape``) stay open; also in lists, tuples and dictionaries.

        ``names`` are those of the inputs, one for each array among the arguments, else the function's parameters give
        them; ``outputs`` those of the results, else ``output_0`` …, and in a dictionary its keys.
        """
        from gossamer.convert.importers.jax import Function

        return cls(Function(function, examples, names, outputs), "jax")

    @classmethod
    def from_onnx(cls, model: Any) -> TFLiteConverter:
        """An ``.onnx`` file, or a live ``onnx.ModelProto``."""
        if isinstance(model, (str, os.PathLike)):
            return cls(model, "onnx")

        def save(path: str) -> None:
            with open(path, "wb") as file:
                file.write(model.SerializeToString())

        return cls._saved(".onnx", save)

    @classmethod
    def from_tflite(cls, model: Any) -> TFLiteConverter:
        """A float ``.tflite`` file, as a path or as bytes, or a `Model`, that is only to be quantized."""
        return cls(model if isinstance(model, Model) else read_model(model), STORED)

    @classmethod
    def from_torch(cls, program: Any, args: Sequence[Any] | None = None) -> TFLiteConverter:
        """A ``.pt2`` file, a live ``torch.export.ExportedProgram``, or a module and its example arguments, which torch
        exports first."""
        if isinstance(program, (str, os.PathLike)):
            return cls(program, "torch_export")
        torch = _running("torch", "programs of PyTorch")
        if args is not None:
            program = torch.export.export(program, tuple(args))
        return cls._saved(".pt2", lambda path: torch.export.save(program, path))

    @classmethod
    def _saved(cls, suffix: str, save: Callable[[str], object]) -> TFLiteConverter:
        """A converter of what ``save`` writes, which goes when the converter does."""
        folder = tempfile.mkdtemp(prefix="gossamer-")
        path = os.path.join(folder, f"model{suffix}")
        try:
            save(path)
            converter = cls(path, format_of(path))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(converter, shutil.rmtree, folder, ignore_errors=True)
        return converter

    def convert(self) -> bytes:
        """The bytes of the .tflite file. Raises `ConvertError`, which says all that cannot be converted."""
        mode = self._mode()
        converted = self.converted()
        types = [type_name_of(type) for type in (self.inference_input_type, self.inference_output_type)]
        if mode == "float32":
            if set(types) != {"float32"}:
                raise ConvertError(f"a float model has no {' or '.join(types)} interface; set `optimizations`")
            return converted.to_bytes()
        dataset = self.representative_dataset
        samples = dataset.input_gen if isinstance(dataset, RepresentativeDataset) else dataset
        if self._experimental_calibrate_only and samples is not None:
            return calibrated(converted.model, samples())
        asked = {"input_type": types[0], "output_type": types[1], **arguments(vars(self), mode)}
        return quantize(converted.model, mode, samples, **{**asked, **self.quantization})

    def converted(self) -> Converted:
        """The float model with its report. Raises `ConvertError`."""
        allowed = [op.value for op in self._ops() if op in (OpsSet.TFLITE_BUILTINS, OpsSet.SELECT_TF_OPS)]
        request = self._request
        request.target_ops = tuple(allowed) or (BUILTINS,)
        request.allow_custom_ops = self.allow_custom_ops
        request.shapes = {**request.shapes, **self.shapes}
        request.batch = self.batch
        converted = convert_source(self._source, self._format, request)
        self.report = converted.report.entries
        return converted

    def _ops(self) -> list[OpsSet]:
        return [OpsSet(op) if isinstance(op, str) else op for op in self.target_spec.supported_ops]

    def _mode(self) -> str:
        """What the attributes ask for, as `tf.lite` reads them."""
        optimize = set(map(str, self.optimizations)) - {str(Optimize.EXPERIMENTAL_SPARSITY)}
        types = [type_name_of(type) for type in self.target_spec.supported_types]
        return mode_of(bool(optimize), list(map(str, self._ops())), types, self.representative_dataset is not None)


def _running(package: str, what: str) -> Any:
    """A package that the owner of a live object has imported."""
    if package not in sys.modules:
        raise ConvertError(f"{what} need {package}, which this process has not imported")
    return sys.modules[package]
