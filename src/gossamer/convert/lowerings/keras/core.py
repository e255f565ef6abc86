"""Dense layers, embeddings, masking, and what does nothing when nothing is trained."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers
from gossamer.convert.lowerings.keras.activations import activation
from gossamer.schema.enums import TensorType


def activated(call: Call, x: Value, key: str = "activation") -> Value:
    """The activation that the config of a layer names."""
    return activation(call.graph, x, call.layer.config.get(key), call.version)


def dense_product(graph: Graph, x: Value, kernel: Value, bias: Value | None = None) -> Value:
    """Rows of x times a constant kernel [depth, units]."""
    weights = shapes.transpose(graph, kernel, (1, 0))
    return graph.add("FULLY_CONNECTED", x, weights, bias, keep_num_dims=x.rank > 2)


@lowers("Dense")
def dense(call: Call) -> Masked:
    kernel, bias = call.weight("kernel"), call.array("bias")
    given = None if bias is None else call.constant(bias, "bias")
    product = dense_product(call.graph, floating(call.graph, call.x), call.constant(kernel, "kernel"), given)
    return call.keeping_mask(activated(call, product))


@lowers("EinsumDense")
def einsum_dense(call: Call) -> Value:
    kernel = call.constant(call.weight("kernel"), "kernel")
    result = einsum(call.graph, _equation(call, call.x.rank), floating(call.graph, call.x), kernel)
    bias = call.array("bias")
    if bias is not None:
        result = call.graph.add("ADD", result, call.constant(bias, "bias"))
    return activated(call, result)


def _equation(call: Call, rank: int) -> str:
    equation = call.layer.config.get("equation")
    return equation if isinstance(equation, str) else refuse("has no equation")


@lowers("Embedding", "ReversibleEmbedding")
def embedding(call: Call) -> Value | Masked:
    graph, x = call.graph, call.x
    table = call.constant(call.weight("embeddings"), "embeddings")
    if call.argument(1, "reverse", False):
        return _logits(call, floating(graph, x), table)
    if x.type not in (TensorType.INT32, TensorType.INT64):
        x = shapes.cast(graph, x, TensorType.INT32)
    result = graph.add("GATHER", table, x)
    if not call.config("mask_zero"):
        return result
    return Masked(result, graph.add("NOT_EQUAL", x, np.zeros((), x.dtype)))


def _logits(call: Call, x: Value, table: Value) -> Value:
    """How well each row of the table fits."""
    graph = call.graph
    untied = call.array("reverse_embeddings")
    if untied is not None:
        logits = dense_product(graph, x, call.constant(untied, "reverse_embeddings"))
    else:
        logits = graph.add("FULLY_CONNECTED", x, table, keep_num_dims=x.rank > 2)
    cap = call.config("logit_soft_cap")
    if cap is None:
        return logits
    return graph.add("MUL", graph.add("TANH", graph.add("MUL", logits, 1 / cap)), float(cap))


@lowers("Masking")
def masking(call: Call) -> Masked:
    graph, x = call.graph, floating(call.graph, call.x)
    differs = graph.add("NOT_EQUAL", x, np.array(call.config("mask_value", 0.0), np.float32))
    counts = reduce(graph, "REDUCE_ANY", differs, [-1], keepdims=True)
    mask = reduce(graph, "REDUCE_ANY", differs, [-1])
    return Masked(graph.add("MUL", x, floating(graph, counts)), mask)


_TRAINING_ONLY = (
    "ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "Identity",
    "StochasticDepth",
    "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D",
)  # fmt: skip


@lowers(*_TRAINING_ONLY)
def nothing(call: Call) -> Masked:
    return call.keeping_mask(call.args[0] if call.args else call.x)


@lowers("LayerScale")
def layer_scale(call: Call) -> Value:
    """A factor for each channel: a layer of ConvNeXt in `keras.applications`."""
    return call.graph.add("MUL", floating(call.graph, call.x), call.constant(call.weight("variable"), "gamma"))


_AUGMENTATIONS = (
    "AugMix", "CutMix", "MixUp", "RandAugment", "RandomBrightness",
    "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomElasticTransform", "RandomErasing",
    "RandomFlip", "RandomGaussianBlur", "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPerspective",
    "RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear", "RandomTranslation",
    "RandomZoom", "Solarization",
)  # fmt: skip


@lowers(*_AUGMENTATIONS)
def augmentation(call: Call) -> Value:
    """Pictures are only changed while a model is trained."""
    return floating(call.graph, call.x)


@lowers("InputLayer")
def input_layer(call: Call) -> Value:
    refuse("an input that is called")


@lowers("Lambda")
def lambda_layer(call: Call) -> Value:
    refuse("is Python code; replace it by layers of Keras or keras.ops, or export the model as a SavedModel")


@lowers("Pipeline")
def pipeline(call: Call) -> Masked:
    result = Masked(call.args[0] if call.args else call.x, call.handed_mask)
    for part in call.layer.parts.values():
        result = call.lower(part, (result.result,), {}, ((result.mask,), {}))
    return result


@lowers("SpectralNormalization")
def wrapped(call: Call) -> Masked:
    """The layer in it: its kernel is normalized while it is trained, and stored so."""
    return call.lower(call.layer.parts["layer"], call.args, call.kwargs, call.masks)
