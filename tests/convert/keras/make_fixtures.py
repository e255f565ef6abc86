"""Write `fixtures.json.xz`: small models of every layer of Keras, what they are called with and what Keras answers.

    python tests/convert/keras/make_fixtures.py            (with TensorFlow 2.21 and Keras 3.15; a minute)

A case holds the model's ``config.json``, the arrays of ``model.weights.h5`` by their paths, for some cases the legacy
file's lists of names, inputs and outputs. Weights are random numbers in steps of 1/32, so that they are short. Cases
are listed by families in `FAMILIES`: name of the case, and a function that builds the model.
"""

from __future__ import annotations

import base64
import io
import json
import lzma
import os
import sys
import tempfile
import zipfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import h5py
import keras
import numpy as np
from keras import Input, Model, Sequential, layers, ops

HERE = Path(__file__).parent
BATCH = 2


def single(layer, *shape, dtype="float32", batch=None, **kwargs):
    """A model of one layer."""

    def build():
        x = Input(shape, dtype=dtype, batch_size=batch, name="x")
        made = layer() if not isinstance(layer, keras.Layer) else layer
        return Model(x, made(x, **kwargs))

    return build


def of(function, *shapes, dtypes=None):
    """A model of a function of several inputs."""

    def build():
        names = ["x", "y", "z"]
        given = dtypes or ["float32"] * len(shapes)
        xs = [Input(shape, dtype=dtype, name=name) for shape, dtype, name in zip(shapes, given, names, strict=False)]
        return Model(xs, function(*xs))

    return build


def core():
    L = layers
    yield "dense", single(lambda: L.Dense(3), 4)
    yield "dense_rank3", single(lambda: L.Dense(3, activation="relu", use_bias=False), 5, 4)
    yield "dense_rank4", single(lambda: L.Dense(3, activation="softmax"), 3, 5, 4)
    yield "dense_open", single(lambda: L.Dense(3), None, 4)
    yield "dense_int", single(lambda: L.Dense(3), 4, dtype="int32")
    yield "einsum_dense", single(lambda: L.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d"), 5, 4)
    yield "einsum_dense_heads", single(lambda: L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), 5, 4)
    yield (
        "einsum_dense_ellipsis",
        single(lambda: L.EinsumDense("...x,xy->...y", (5, 3), bias_axes="y", activation="relu"), 5, 4),
    )
    yield "einsum_dense_inner", single(lambda: L.EinsumDense("abc,bd->adc", (3, 4)), 5, 4)
    yield "embedding", single(lambda: L.Embedding(7, 3), 5, dtype="int32")
    yield "embedding_float", single(lambda: L.Embedding(7, 3), 5)
    yield (
        "embedding_mask",
        of(lambda x: L.GlobalAveragePooling1D()(L.Embedding(7, 3, mask_zero=True)(x)), (5,), dtypes=["int32"]),
    )
    yield (
        "reversible_embedding",
        of(
            lambda x: (lambda e: e(e(x), reverse=True))(L.ReversibleEmbedding(7, 3, logit_soft_cap=2.0)),
            (5,),
            dtypes=["int32"],
        ),
    )
    yield "masking", of(lambda x: L.GlobalAveragePooling1D()(L.Masking(0.0)(x)), (5, 3))
    yield "identity", single(lambda: L.Identity(), 4)
    for name in ("Dropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D", "AlphaDropout"):
        yield name.lower(), of(lambda x, n=name: L.Dense(2)(getattr(L, n)(0.3)(x)), (4, 3))
    yield "activity_regularization", of(lambda x: L.Dense(2)(L.ActivityRegularization(0.1)(x)), (4,))
    yield "spectral", single(lambda: L.SpectralNormalization(L.Dense(3)), 4)
    yield (
        "masked_dense_chain",
        of(lambda x: L.LSTM(3)(L.Dense(4, activation="relu")(L.Dropout(0.5)(L.Masking(0.0)(x)))), (5, 3)),
    )


def activations():
    from keras.src.activations import ALL_OBJECTS_DICT

    for name in sorted(ALL_OBJECTS_DICT):
        if name not in ("threshold",):
            yield f"activation_{name}", single(lambda n=name: layers.Activation(n), 6)
    yield "relu_all", single(lambda: layers.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.5), 6)
    yield "relu_max", single(lambda: layers.ReLU(max_value=1.0), 6)
    yield "relu_6", single(lambda: layers.ReLU(6.0), 6)
    yield "relu_slope", single(lambda: layers.ReLU(negative_slope=0.3), 6)
    yield "relu_threshold", single(lambda: layers.ReLU(threshold=0.7), 6)
    yield "relu_slope_max", single(lambda: layers.ReLU(max_value=1.0, negative_slope=0.2), 6)
    yield "leaky_relu", single(lambda: layers.LeakyReLU(negative_slope=0.2), 6)
    yield "elu_alpha", single(lambda: layers.ELU(alpha=0.5), 6)
    yield "prelu", single(lambda: layers.PReLU(), 4, 3)
    yield "prelu_shared", single(lambda: layers.PReLU(shared_axes=[1, 2]), 4, 3, 2)
    yield "softmax_axis", single(lambda: layers.Softmax(axis=1), 4, 3)
    yield "softmax_axes", single(lambda: layers.Softmax(axis=[1, 2]), 4, 3)
    yield "softmax_mask", of(lambda x, y: layers.Softmax()(x, mask=y), (4,), (4,), dtypes=["float32", "bool"])
    yield (
        "activation_layer_in_layer",
        single(lambda: layers.Dense(4, activation=layers.LeakyReLU(negative_slope=0.1)), 3),
    )


def convolutions():
    L = layers
    for padding in ("valid", "same", "causal"):
        yield f"conv1d_{padding}", single(lambda p=padding: L.Conv1D(3, 3, padding=p, strides=2), 9, 4)
    yield "conv1d_dilated", single(lambda: L.Conv1D(3, 3, padding="causal", dilation_rate=2, activation="relu"), 9, 4)
    yield "conv1d_groups", single(lambda: L.Conv1D(6, 3, groups=2), 9, 4)
    yield "conv1d_first", single(lambda: L.Conv1D(3, 3, data_format="channels_first"), 4, 9)
    yield "conv1d_open", single(lambda: L.Conv1D(3, 3, padding="same"), None, 4)
    yield "conv2d", single(lambda: L.Conv2D(3, (3, 2), strides=(2, 1), padding="same", activation="relu"), 7, 6, 2)
    yield "conv2d_dilated", single(lambda: L.Conv2D(3, 3, dilation_rate=(2, 1)), 7, 6, 2)
    yield "conv2d_groups", single(lambda: L.Conv2D(4, 3, groups=2, use_bias=False), 7, 6, 4)
    yield "conv2d_depthwise_groups", single(lambda: L.Conv2D(8, 3, groups=4), 7, 6, 4)
    yield (
        "conv2d_first",
        single(lambda: L.Conv2D(3, 3, data_format="channels_first", padding="same", activation="tanh"), 2, 7, 6),
    )
    yield "conv2d_open", single(lambda: L.Conv2D(3, 3, strides=2, padding="same"), None, None, 2)
    yield "conv3d", single(lambda: L.Conv3D(3, (2, 3, 2), strides=(1, 2, 1), padding="same"), 5, 6, 5, 2)
    yield "conv3d_valid", single(lambda: L.Conv3D(3, 2, use_bias=False), 5, 4, 5, 2)
    yield "conv3d_first", single(lambda: L.Conv3D(3, 2, data_format="channels_first"), 2, 5, 4, 5)
    yield "conv3d_groups", single(lambda: L.Conv3D(4, 2, groups=2), 5, 4, 5, 4)
    yield "depthwise1d", single(lambda: L.DepthwiseConv1D(3, strides=2, depth_multiplier=2, padding="same"), 9, 3)
    yield "depthwise2d", single(lambda: L.DepthwiseConv2D(3, strides=2, depth_multiplier=2, padding="same"), 7, 6, 2)
    yield "depthwise2d_dilated", single(lambda: L.DepthwiseConv2D(3, dilation_rate=2, use_bias=False), 9, 8, 2)
    yield "depthwise2d_first", single(lambda: L.DepthwiseConv2D(3, data_format="channels_first"), 2, 7, 6)
    yield "separable1d", single(lambda: L.SeparableConv1D(4, 3, padding="same", activation="relu"), 9, 3)
    yield "separable1d_causal", single(lambda: L.SeparableConv1D(4, 3, padding="causal"), 9, 3)
    yield "separable2d", single(lambda: L.SeparableConv2D(4, 3, strides=2, depth_multiplier=2), 7, 6, 2)
    for padding in ("valid", "same"):
        for stride in (1, 2, 3):
            yield (
                f"conv2d_transpose_{padding}_{stride}",
                single(lambda p=padding, s=stride: L.Conv2DTranspose(3, 3, s, p), 4, 5, 2),
            )
    yield "conv1d_transpose", single(lambda: L.Conv1DTranspose(3, 3, 2, padding="same"), 5, 2)
    yield "conv1d_transpose_valid", single(lambda: L.Conv1DTranspose(3, 2, 3, activation="relu"), 5, 2)
    yield (
        "conv2d_transpose_extra",
        single(lambda: L.Conv2DTranspose(3, 3, 2, padding="same", output_padding=1), 4, 5, 2),
    )
    yield "conv2d_transpose_extra_valid", single(lambda: L.Conv2DTranspose(3, 3, 2, output_padding=(1, 0)), 4, 5, 2)
    yield "conv2d_transpose_dilated", single(lambda: L.Conv2DTranspose(3, 3, dilation_rate=2), 4, 5, 2)
    yield "conv2d_transpose_first", single(lambda: L.Conv2DTranspose(3, 3, 2, data_format="channels_first"), 2, 4, 5)
    yield "conv2d_transpose_open", single(lambda: L.Conv2DTranspose(3, 3, 2, padding="same"), None, None, 2)
    yield "conv3d_transpose", single(lambda: L.Conv3DTranspose(3, 3, 2, padding="same"), 3, 4, 3, 2)
    yield "conv3d_transpose_valid", single(lambda: L.Conv3DTranspose(3, 2, 2, use_bias=False), 3, 2, 3, 2)


def pooling():
    L = layers
    for n, shape in ((1, (9, 3)), (2, (7, 6, 3)), (3, (5, 6, 5, 2))):
        for kind in ("MaxPooling", "AveragePooling"):
            layer = getattr(L, f"{kind}{n}D")
            yield f"{kind.lower()}{n}d", single(lambda c=layer: c(2), *shape)
            yield f"{kind.lower()}{n}d_same", single(lambda c=layer: c(3, strides=2, padding="same"), *shape)
            first = (shape[-1], *shape[:-1])
            yield f"{kind.lower()}{n}d_first", single(lambda c=layer: c(2, data_format="channels_first"), *first)
        for kind in ("GlobalMaxPooling", "GlobalAveragePooling"):
            layer = getattr(L, f"{kind}{n}D")
            yield f"{kind.lower()}{n}d", single(lambda c=layer: c(), *shape)
            yield f"{kind.lower()}{n}d_keepdims", single(lambda c=layer: c(keepdims=True), *shape)
        for kind in ("AdaptiveMaxPooling", "AdaptiveAveragePooling"):
            layer = getattr(L, f"{kind}{n}D", None)
            if layer is not None:
                yield f"{kind.lower()}{n}d", single(lambda c=layer: c(4), *shape)
                yield f"{kind.lower()}{n}d_even", single(lambda c=layer, size=9 if n == 1 else 3: c(size), *shape)
    yield "global_average_first", single(lambda: L.GlobalAveragePooling2D(data_format="channels_first"), 3, 5, 4)
    yield "average_open", single(lambda: L.AveragePooling2D(2, padding="same"), None, None, 3)
    yield "max_pooling3d_open", single(lambda: L.MaxPooling3D(2), None, 4, 4, 3)


def normalization():
    L = layers
    yield "batch_normalization", single(lambda: L.BatchNormalization(), 4, 5, 3)
    yield "batch_normalization_plain", single(lambda: L.BatchNormalization(scale=False, center=False), 4)
    yield "batch_normalization_axis", single(lambda: L.BatchNormalization(axis=1), 3, 4, 5)
    yield "batch_normalization_renorm", single(lambda: L.BatchNormalization(renorm=True), 3)
    yield "layer_normalization", single(lambda: L.LayerNormalization(), 4, 5)
    yield "layer_normalization_axes", single(lambda: L.LayerNormalization(axis=[1, 2]), 4, 5)
    yield "layer_normalization_axis1", single(lambda: L.LayerNormalization(axis=1, scale=False), 4, 5)
    yield "layer_normalization_rms", single(lambda: L.LayerNormalization(rms_scaling=True), 4, 5)
    yield "group_normalization", single(lambda: L.GroupNormalization(2), 4, 5, 6)
    yield "group_normalization_instance", single(lambda: L.GroupNormalization(-1, center=False), 4, 5, 6)
    yield "group_normalization_axis", single(lambda: L.GroupNormalization(2, axis=1), 6, 4, 5)
    yield "group_normalization_open", single(lambda: L.GroupNormalization(2), None, None, 6)
    yield "unit_normalization", single(lambda: L.UnitNormalization(), 4, 5)
    yield "unit_normalization_axes", single(lambda: L.UnitNormalization(axis=[1, 2]), 4, 5)
    yield "rms_normalization", single(lambda: L.RMSNormalization(), 4, 5)


def merging():
    L = layers
    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
        yield f"merge_{name.lower()}", of(lambda x, y, n=name: getattr(L, n)()([x, y]), (4, 3), (4, 3))
    yield "merge_add_three", of(lambda x, y, z: L.Add()([x, y, z]), (4,), (4,), (4,))
    yield "merge_broadcast", of(lambda x, y: L.Multiply()([x, y]), (4, 3), (3,))
    yield "merge_integers", of(lambda x, y: L.Add()([x, y]), (4,), (4,), dtypes=["int32", "int32"])
    yield "concatenate", of(lambda x, y: L.Concatenate()([x, y]), (4, 3), (4, 2))
    yield "concatenate_axis", of(lambda x, y: L.Concatenate(axis=1)([x, y]), (4, 3), (2, 3))
    yield "dot", of(lambda x, y: L.Dot(axes=1)([x, y]), (4,), (4,))
    yield "dot_normalized", of(lambda x, y: L.Dot(axes=-1, normalize=True)([x, y]), (4,), (4,))
    yield "dot_axes", of(lambda x, y: L.Dot(axes=(2, 1))([x, y]), (5, 4), (4, 3))
    yield "dot_mixed", of(lambda x, y: L.Dot(axes=(2, 1))([x, y]), (5, 4), (4,))
    yield "dot_rank4", of(lambda x, y: L.Dot(axes=(3, 2))([x, y]), (2, 5, 4), (3, 4))
    yield "masks_merged", of(lambda x, y: L.LSTM(3)(L.Add()([L.Masking()(x), L.Masking()(y)])), (5, 2), (5, 2))
    yield "masks_joined", of(lambda x, y: L.LSTM(3)(L.Concatenate()([L.Masking()(x), y])), (5, 2), (5, 3))
    yield (
        "masks_joined_time",
        of(lambda x, y: L.LSTM(3)(L.Concatenate(axis=1)([L.Masking()(x), L.Masking()(y)])), (5, 2), (3, 2)),
    )


def reshaping():
    L = layers
    yield "reshape", single(lambda: L.Reshape((2, 6)), 4, 3)
    yield "reshape_minus", single(lambda: L.Reshape((-1, 2)), 4, 3)
    yield "reshape_open", single(lambda: L.Reshape((-1, 6)), None, 3, 2)
    yield "flatten", single(lambda: L.Flatten(), 4, 3, 2)
    yield "flatten_first", single(lambda: L.Flatten(data_format="channels_first"), 4, 3, 2)
    yield "permute", single(lambda: L.Permute((3, 1, 2)), 4, 3, 2)
    yield "repeat_vector", single(lambda: L.RepeatVector(3), 4)
    yield "cropping1d", single(lambda: L.Cropping1D((1, 2)), 7, 2)
    yield "cropping2d", single(lambda: L.Cropping2D(((1, 0), (2, 1))), 6, 7, 2)
    yield "cropping2d_first", single(lambda: L.Cropping2D(1, data_format="channels_first"), 2, 6, 7)
    yield "cropping3d", single(lambda: L.Cropping3D((1, 2, 1)), 5, 6, 5, 2)
    yield "zero_padding1d", single(lambda: L.ZeroPadding1D((1, 2)), 4, 2)
    yield "zero_padding2d", single(lambda: L.ZeroPadding2D(((1, 0), (2, 1))), 4, 3, 2)
    yield "zero_padding2d_first", single(lambda: L.ZeroPadding2D((1, 2), data_format="channels_first"), 2, 4, 3)
    yield "zero_padding3d", single(lambda: L.ZeroPadding3D(1), 3, 2, 3, 2)
    yield "up_sampling1d", single(lambda: L.UpSampling1D(3), 4, 2)
    for how in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
        yield f"up_sampling2d_{how}", single(lambda h=how: L.UpSampling2D((2, 3), interpolation=h), 4, 5, 2)
    yield "up_sampling2d_first", single(lambda: L.UpSampling2D(2, data_format="channels_first"), 2, 4, 5)
    yield "up_sampling2d_open", single(lambda: L.UpSampling2D(2, interpolation="bilinear"), None, None, 2)
    yield "up_sampling3d", single(lambda: L.UpSampling3D(2), 3, 2, 3, 2)


def attention():
    L = layers
    yield "attention", of(lambda x, y: L.Attention()([x, y]), (4, 3), (5, 3))
    yield "attention_key", of(lambda x, y, z: L.Attention(use_scale=True)([x, y, z]), (4, 3), (5, 2), (5, 3))
    yield "attention_concat", of(lambda x, y: L.Attention(score_mode="concat", use_scale=True)([x, y]), (4, 3), (5, 3))
    yield "attention_causal", of(lambda x: L.Attention()([x, x], use_causal_mask=True), (4, 3))
    yield "attention_scores", of(lambda x, y: L.Attention()([x, y], return_attention_scores=True), (4, 3), (5, 3))
    yield "attention_masks", of(lambda x, y: L.Attention()([L.Masking()(x), L.Masking()(y)]), (4, 3), (5, 3))
    yield "additive_attention", of(lambda x, y: L.AdditiveAttention()([x, y]), (4, 3), (5, 3))
    yield "mha", of(lambda x: L.MultiHeadAttention(2, 3)(x, x), (4, 5))
    yield "mha_cross", of(lambda x, y: L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False)(x, y), (4, 5), (6, 3))
    yield "mha_key", of(lambda x, y, z: L.MultiHeadAttention(2, 3)(x, y, key=z), (4, 5), (6, 3), (6, 2))
    yield "mha_open", of(lambda x: L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True), (None, 5))
    yield "mha_causal", of(lambda x: L.MultiHeadAttention(2, 3, dropout=0.1)(x, x, use_causal_mask=True), (4, 5))
    yield (
        "mha_mask",
        of(lambda x, y: L.MultiHeadAttention(2, 3)(x, x, attention_mask=y), (4, 5), (4, 4), dtypes=["float32", "bool"]),
    )
    yield (
        "mha_keras_mask",
        of(
            lambda x: L.GlobalAveragePooling1D()(
                (lambda e: L.MultiHeadAttention(2, 3)(e, e))(L.Embedding(5, 4, mask_zero=True)(x))
            ),
            (6,),
            dtypes=["int32"],
        ),
    )
    yield "mha_axes", of(lambda x: L.MultiHeadAttention(2, 3, attention_axes=(2,))(x, x), (3, 4, 5))
    yield "mha_two_axes", of(lambda x: L.MultiHeadAttention(2, 3, attention_axes=(1, 2))(x, x), (3, 4, 5))
    yield "mha_output_shape", of(lambda x: L.MultiHeadAttention(2, 3, output_shape=7)(x, x), (4, 5))
    yield "mha_scores", of(lambda x: L.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True), (4, 5))
    yield "mha_window", of(lambda x: L.MultiHeadAttention(2, 3, sliding_window=2)(x, x), (5, 4))
    yield "mha_gate", of(lambda x: L.MultiHeadAttention(2, 3, use_gate=True)(x, x), (5, 4))
    yield "gqa", of(lambda x: L.GroupQueryAttention(3, 4, 2)(x, x), (5, 6))
    yield "gqa_causal", of(lambda x, y: L.GroupQueryAttention(3, 4, 2)(x, y, use_causal_mask=True), (5, 6), (5, 6))


def recurrent():
    L = layers
    for name in ("LSTM", "GRU", "SimpleRNN"):
        layer = getattr(L, name)
        low = name.lower()
        yield f"{low}", single(lambda c=layer: c(3), 9, 2)
        yield f"{low}_short", single(lambda c=layer: c(3, return_sequences=True), 4, 2)
        yield f"{low}_sequences", single(lambda c=layer: c(3, return_sequences=True), 9, 2)
        yield f"{low}_states", single(lambda c=layer: c(3, return_state=True, go_backwards=True, use_bias=False), 9, 2)
        yield f"{low}_open", single(lambda c=layer: c(3, return_sequences=True), None, 2)
        yield f"{low}_unrolled", single(lambda c=layer: c(3, unroll=True, return_sequences=True), 9, 2)
        yield f"{low}_mask", of(lambda x, c=layer: c(3)(L.Masking()(x)), (9, 2))
        yield (
            f"{low}_mask_sequences",
            of(lambda x, c=layer: c(3, return_sequences=True, go_backwards=True)(L.Masking()(x)), (9, 2)),
        )
        yield f"{low}_activations", single(lambda c=layer: c(3, activation="relu"), 9, 2)
    yield "lstm_hard", single(lambda: L.LSTM(3, recurrent_activation="hard_sigmoid", activation="softsign"), 9, 2)
    yield "gru_before", single(lambda: L.GRU(3, reset_after=False, return_sequences=True), 9, 2)
    yield "lstm_initial", of(lambda x, y, z: L.LSTM(3)(x, initial_state=[y, z]), (9, 2), (3,), (3,))
    yield "gru_initial", of(lambda x, y: L.GRU(3, return_state=True)(x, initial_state=y), (9, 2), (3,))
    yield "lstm_stack", of(lambda x: L.LSTM(2)(L.LSTM(3, return_sequences=True)(L.Masking()(x))), (9, 2))
    for mode in ("concat", "sum", "mul", "ave", None):
        yield (
            f"bidirectional_{mode}",
            single(lambda m=mode: L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode=m), 9, 2),
        )
    yield "bidirectional_last", single(lambda: L.Bidirectional(L.GRU(3)), 9, 2)
    yield "bidirectional_states", single(lambda: L.Bidirectional(L.LSTM(3, return_state=True)), 9, 2)
    yield "bidirectional_mask", of(lambda x: L.Bidirectional(L.LSTM(3, return_sequences=True))(L.Masking()(x)), (9, 2))
    yield (
        "bidirectional_other",
        single(lambda: L.Bidirectional(L.LSTM(3), backward_layer=L.GRU(3, go_backwards=True)), 9, 2),
    )
    yield "rnn_cell", single(lambda: L.RNN(L.GRUCell(3), return_sequences=True), 9, 2)
    yield (
        "rnn_stacked",
        single(lambda: L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(4), L.SimpleRNNCell(2)])), 9, 2),
    )
    yield "rnn_list", single(lambda: L.RNN([L.LSTMCell(3), L.LSTMCell(4)], return_sequences=True), 9, 2)
    yield "rnn_stacked_mask", of(lambda x: L.RNN([L.LSTMCell(3), L.GRUCell(4)])(L.Masking()(x)), (9, 2))
    yield "time_distributed_dense", single(lambda: L.TimeDistributed(L.Dense(3)), 9, 2)
    yield "time_distributed_conv", single(lambda: L.TimeDistributed(L.Conv2D(3, 3, padding="same")), 4, 5, 6, 2)
    yield "time_distributed_open", single(lambda: L.TimeDistributed(L.Conv1D(3, 3)), None, 5, 2)
    yield (
        "time_distributed_model",
        single(lambda: L.TimeDistributed(Sequential([Input((4,)), L.Dense(3), L.Dense(2)])), 5, 4),
    )
    yield "conv_lstm1d", single(lambda: L.ConvLSTM1D(3, 3), 9, 6, 2)
    yield "conv_lstm2d", single(lambda: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), 4, 5, 6, 2)
    yield "conv_lstm2d_states", single(lambda: L.ConvLSTM2D(2, 2, strides=2, return_state=True), 9, 6, 5, 2)
    yield "conv_lstm3d", single(lambda: L.ConvLSTM3D(2, 2), 3, 4, 3, 4, 2)
    yield "conv_lstm2d_first", single(lambda: L.ConvLSTM2D(2, 2, data_format="channels_first"), 9, 2, 5, 4)


def preprocessing():
    L = layers
    yield "rescaling", single(lambda: L.Rescaling(1 / 127.5, offset=-1), 4, 3)
    yield "rescaling_channels", single(lambda: L.Rescaling([0.5, 0.25, 2.0], offset=[1.0, 2.0, 3.0]), 4, 5, 3)
    yield "rescaling_uint8", single(lambda: L.Rescaling(1 / 255), 4, 3, dtype="uint8")
    yield "normalization", single(lambda: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), 3)
    yield "normalization_scalar", single(lambda: L.Normalization(axis=None, mean=1.0, variance=2.0), 4, 3)
    yield (
        "normalization_invert",
        single(lambda: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0], invert=True), 3),
    )

    def adapted():
        layer = L.Normalization(axis=-1)
        layer.adapt(np.random.default_rng(0).normal(size=(20, 3)).astype("float32"))
        x = Input((3,), name="x")
        return Model(x, layer(x))

    yield "normalization_adapted", adapted
    yield "center_crop", single(lambda: L.CenterCrop(4, 3), 7, 6, 2)
    yield "center_crop_resize", single(lambda: L.CenterCrop(8, 6), 4, 6, 2)
    yield "resizing", single(lambda: L.Resizing(5, 7), 4, 6, 2)
    yield "resizing_nearest", single(lambda: L.Resizing(5, 7, interpolation="nearest"), 4, 6, 2)
    yield "resizing_crop", single(lambda: L.Resizing(5, 7, crop_to_aspect_ratio=True), 8, 6, 2)
    yield "resizing_pad", single(lambda: L.Resizing(5, 7, pad_to_aspect_ratio=True), 8, 6, 2)
    yield "resizing_bicubic", single(lambda: L.Resizing(5, 7, interpolation="bicubic"), 8, 6, 2)
    yield "discretization", single(lambda: L.Discretization(bin_boundaries=[-0.5, 0.0, 0.5]), 4)
    yield (
        "discretization_one_hot",
        single(lambda: L.Discretization(bin_boundaries=[-0.5, 0.0, 0.5], output_mode="one_hot"), 1),
    )
    yield (
        "discretization_multi_hot",
        single(lambda: L.Discretization(bin_boundaries=[-0.5, 0.0, 0.5], output_mode="multi_hot"), 4),
    )
    yield (
        "discretization_count",
        single(lambda: L.Discretization(bin_boundaries=[-0.5, 0.0, 0.5], output_mode="count"), 4),
    )
    for mode in ("one_hot", "multi_hot", "count"):
        yield (
            f"category_encoding_{mode}",
            single(lambda m=mode: L.CategoryEncoding(5, output_mode=m), 1 if mode == "one_hot" else 3, dtype="int32"),
        )
    yield "integer_lookup", single(lambda: L.IntegerLookup(vocabulary=[2, 4, 1]), 4, dtype="int64")
    yield (
        "integer_lookup_one_hot",
        single(lambda: L.IntegerLookup(vocabulary=[2, 4, 1], output_mode="multi_hot"), 4, dtype="int64"),
    )
    for name in (
        "RandomFlip",
        "RandomRotation",
        "RandomZoom",
        "RandomContrast",
        "RandomBrightness",
        "RandomTranslation",
    ):
        arguments = {"RandomFlip": (), "RandomTranslation": (0.1, 0.1)}.get(name, (0.2,))
        yield name.lower(), of(lambda x, n=name, a=arguments: L.Conv2D(2, 1)(getattr(L, n)(*a)(x)), (5, 4, 2))


def within_domain(name, function):
    """A function of any number, by one of those that it is defined for."""
    if name == "arccosh":
        return lambda x: function(x * x + 1.5)
    if name in ("log", "log10", "log2", "log1p", "rsqrt", "sqrt", "reciprocal", "cbrt"):
        return lambda x: function(x * x + 0.5)
    if name in ("arcsin", "arccos", "arctanh"):
        return lambda x: function(ops.tanh(x) * 0.9)
    if name == "logical_not":
        return lambda x: ops.cast(function(x > 0), "float32")
    if name in ("isfinite", "isinf", "isnan"):
        return lambda x: function(ops.log(x))
    return function


UNARY = """
absolute arccosh arcsinh arctan arctanh cbrt ceil cos cosh deg2rad rad2deg exp exp2 expm1 floor isfinite isinf isnan
log log10 log1p log2 negative ones_like zeros_like reciprocal round rsqrt sign sin sinc sinh sqrt square tan tanh
trunc erf relu relu6 sigmoid softplus softsign silu hard_sigmoid gelu selu elu leaky_relu log_sigmoid hard_silu
hard_tanh celu squareplus soft_shrink hard_shrink tanh_shrink sparse_plus sparse_sigmoid arcsin arccos logical_not
erfc nan_to_num real copy ravel stop_gradient
"""
BINARY = """
add subtract multiply maximum minimum arctan2 floor_divide mod equal not_equal greater greater_equal less less_equal
logaddexp hypot logical_and logical_or logical_xor divide true_divide divide_no_nan fmod
"""
REDUCTIONS = """
sum mean max min prod std var amax amin logsumexp count_nonzero median average
"""


def operations():
    shape = (4, 3)
    for name in UNARY.split():
        function = getattr(ops, name, None)
        if function is None:
            continue
        yield f"ops_{name}", of(within_domain(name, function), shape)
    for name in BINARY.split():
        function = getattr(ops, name, None)
        if function is None:
            continue
        if name in ("divide", "true_divide", "mod", "fmod", "floor_divide"):
            yield f"ops_{name}", of(lambda x, y, f=function: f(x, y + 0.01), shape, shape)
        elif name.startswith("logical"):
            yield f"ops_{name}", of(lambda x, y, f=function: f(x > 0, y > 0), shape, shape)
        else:
            yield f"ops_{name}", of(lambda x, y, f=function: f(x, y), shape, shape)
    yield "ops_power", of(lambda x, y: ops.power(ops.abs(x) + 0.5, y), shape, shape)
    yield "ops_scalar", of(lambda x: (1.0 - x) * 2.0 / 4.0 + x**2 - (-x), shape)
    yield "ops_int", of(lambda x, y: (x + y) * 2 - x // 3, (4,), (4,), dtypes=["int32", "int32"])
    yield "ops_compare", of(lambda x: ops.where(x > 0.5, x, -x), shape)
    yield "ops_where_scalar", of(lambda x: ops.where(x > 0.5, 1.0, 0.0), shape)
    for name in REDUCTIONS.split():
        function = getattr(ops, name)
        yield f"ops_{name}", of(lambda x, f=function: f(x, axis=-1), shape)
        if name not in ("average", "median"):
            yield f"ops_{name}_all", of(lambda x, f=function: f(x, axis=[1, 2]), (4, 3))
        if name not in ("count_nonzero", "average"):
            yield f"ops_{name}_keepdims", of(lambda x, f=function: f(x, axis=1, keepdims=True), shape)
    yield "ops_all", of(lambda x: ops.all(x > -1, axis=1), shape)
    yield "ops_any", of(lambda x: ops.any(x > 1, axis=1), shape)
    yield "ops_argmax", of(lambda x: ops.argmax(x, axis=-1), shape)
    yield "ops_argmin", of(lambda x: ops.argmin(x, axis=1, keepdims=True), shape)
    yield "ops_argsort", of(lambda x: ops.argsort(x, axis=-1), shape)
    yield "ops_sort", of(lambda x: ops.sort(x, axis=1), shape)
    yield "ops_top_k", of(lambda x: ops.top_k(x, 2), shape)
    yield "ops_reshape", of(lambda x: ops.reshape(x, (-1, 6, 2)), shape)
    yield "ops_transpose", of(lambda x: ops.transpose(x, (0, 2, 1)), shape)
    yield "ops_transpose_default", of(lambda x: ops.transpose(ops.transpose(x)), shape)
    yield "ops_concatenate", of(lambda x, y: ops.concatenate([x, y], axis=1), shape, shape)
    yield "ops_stack", of(lambda x, y: ops.stack([x, y], axis=1), shape, shape)
    yield "ops_split", of(lambda x: ops.split(x, 2, axis=1), shape)
    yield "ops_split_points", of(lambda x: ops.split(x, [1, 3], axis=1), shape)
    yield "ops_unstack", of(lambda x: ops.unstack(x, axis=1), shape)
    yield "ops_squeeze", of(lambda x: ops.squeeze(x, 2), (4, 1))
    yield "ops_expand_dims", of(lambda x: ops.expand_dims(x, [1, 3]), shape)
    yield "ops_flip", of(lambda x: ops.flip(x, axis=1), shape)
    yield "ops_roll", of(lambda x: ops.roll(x, 1, axis=1), shape)
    yield "ops_tile", of(lambda x: ops.tile(x, (1, 2, 3)), shape)
    yield "ops_repeat", of(lambda x: ops.repeat(x, 2, axis=1), shape)
    yield "ops_pad", of(lambda x: ops.pad(x, ((0, 0), (1, 2), (0, 1))), shape)
    yield "ops_pad_reflect", of(lambda x: ops.pad(x, ((0, 0), (1, 2), (0, 1)), mode="reflect"), shape)
    yield "ops_pad_constant", of(lambda x: ops.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=2.0), shape)
    yield "ops_swapaxes", of(lambda x: ops.swapaxes(x, 1, 2), shape)
    yield "ops_moveaxis", of(lambda x: ops.moveaxis(x, 3, 1), (4, 3, 2))
    yield "ops_broadcast_to", of(lambda x: ops.broadcast_to(x, (2, 4, 3)), shape)
    yield "ops_take", of(lambda x: ops.take(x, [0, 2], axis=1), shape)
    yield "ops_take_tensor", of(lambda x, y: ops.take(x, y, axis=0), (4,), (2,), dtypes=["float32", "int32"])
    yield (
        "ops_take_along_axis",
        of(lambda x, y: ops.take_along_axis(x, y, axis=1), (4,), (4,), dtypes=["float32", "int32"]),
    )
    yield "ops_get_item", of(lambda x: x[:, 1:3, ::2], shape)
    yield "ops_get_item_index", of(lambda x: x[:, 0], shape)
    yield "ops_get_item_ellipsis", of(lambda x: x[..., -1, None], shape)
    yield "ops_get_item_negative", of(lambda x: x[:, ::-1], shape)
    yield "ops_slice", of(lambda x: ops.slice(x, [0, 1, 0], [2, 2, 3]), shape)
    yield "ops_matmul", of(lambda x, y: ops.matmul(x, y), (4, 3), (3, 5))
    yield "ops_matmul_operator", of(lambda x, y: x @ y, (2, 4, 3), (2, 3, 5))
    yield "ops_dot", of(lambda x, y: ops.dot(x, ops.transpose(y)), (3,), (3,))
    yield "ops_einsum", of(lambda x, y: ops.einsum("bij,bjk->bik", x, y), (4, 3), (3, 5))
    yield "ops_tensordot", of(lambda x, y: ops.tensordot(x, y, axes=[[0, 1], [0, 1]]), (4, 3), (4, 5))
    yield "ops_outer", of(lambda x, y: ops.outer(x[0, :], y[0, :]), (3,), (4,))
    yield "ops_cumsum", of(lambda x: ops.cumsum(x, axis=1), shape)
    yield "ops_cumprod", of(lambda x: ops.cumprod(x, axis=1), shape)
    yield "ops_diff", of(lambda x: ops.diff(x, axis=1), shape)
    yield "ops_clip", of(lambda x: ops.clip(x, -0.5, 0.7), shape)
    yield "ops_clip_6", of(lambda x: ops.clip(x * 5, 0.0, 6.0), shape)
    yield "ops_cast", of(lambda x: ops.cast(x, "int32"), shape)
    yield "ops_one_hot", of(lambda x: ops.one_hot(x, 5), (4,), dtypes=["int32"])
    yield "ops_softmax", of(lambda x: ops.softmax(x, axis=1), shape)
    yield "ops_softmax_all", of(lambda x: ops.softmax(x, axis=None), shape)
    yield "ops_log_softmax", of(lambda x: ops.log_softmax(x), shape)
    yield "ops_normalize", of(lambda x: ops.normalize(x, axis=-1), shape)
    yield "ops_normalize_1", of(lambda x: ops.normalize(x, axis=1, order=1), shape)
    yield "ops_moments", of(lambda x: ops.moments(x, axes=[1]), shape)
    yield "ops_norm", of(lambda x: ops.norm(x, axis=-1), shape)
    yield "ops_max_pool", of(lambda x: ops.max_pool(x, 2), (6, 5, 2))
    yield "ops_average_pool", of(lambda x: ops.average_pool(x, 3, strides=2, padding="same"), (6, 5, 2))
    yield "ops_conv", of(lambda x, y: ops.conv(x, np.ones((2, 2, 2, 3), "float32"), padding="same"), (6, 5, 2), (1,))
    yield "ops_depth_to_space", of(lambda x: ops.depth_to_space(x, 2), (3, 4, 8))
    yield "ops_space_to_depth", of(lambda x: ops.space_to_depth(x, 2), (4, 6, 2))
    yield "ops_resize", of(lambda x: ops.image.resize(x, (5, 7)), (4, 6, 2))
    yield "ops_grayscale", of(lambda x: ops.image.rgb_to_grayscale(x), (4, 6, 3))
    yield "ops_tril", of(lambda x: ops.tril(x), (4, 4))
    yield "ops_triu", of(lambda x: ops.triu(x, k=1), (4, 4))
    yield "ops_attention", of(lambda x, y: ops.dot_product_attention(x, y, y), (4, 2, 3), (5, 2, 3))
    yield "ops_layer_norm", of(lambda x: ops.rms_normalization(x), shape)
    yield "ops_vectorized", of(lambda x: ops.full_like(x, 2.0) + ops.zeros_like(x), shape)
    yield "ops_linspace", of(lambda x: x + ops.arange(3, dtype="float32"), shape)
    yield "ops_meshgrid", of(lambda x: ops.cross(x, x + 1.0), (3,))
    yield "ops_heaviside", of(lambda x: ops.heaviside(x, x * 0.5), shape)
    yield "ops_logaddexp2", of(lambda x, y: ops.logaddexp2(x, y), shape, shape)
    yield "ops_quantile", of(lambda x: ops.quantile(x, 0.3, axis=1), shape)
    yield "ops_trace", of(lambda x: ops.trace(x, axis1=1, axis2=2), (4, 4))
    yield "ops_diagonal", of(lambda x: ops.diagonal(x, axis1=1, axis2=2), (4, 4))
    yield "ops_append", of(lambda x, y: ops.append(x, y, axis=1), shape, shape)
    yield "ops_array_split", of(lambda x: ops.array_split(x, 3, axis=1), (4, 2))
    yield "ops_inner", of(lambda x, y: ops.inner(x, y), (3,), (3,))
    yield "ops_vdot", of(lambda x, y: ops.vdot(x[0], y[0]), (3,), (3,))
    yield "ops_depthwise_conv", of(lambda x: ops.depthwise_conv(x, np.ones((2, 2, 2, 1), "float32"), 1), (4, 5, 2))
    yield "ops_adaptive", of(lambda x: ops.adaptive_average_pool(x, (2, 3)), (5, 4, 2))
    yield "ops_attention_causal", of(lambda x: ops.dot_product_attention(x, x, x, is_causal=True), (4, 2, 3))
    yield "ops_flip_all", of(lambda x: ops.flip(x[0]), shape)
    yield "ops_dstack", of(lambda x, y: ops.dstack([x, y]), shape, shape)
    yield "ops_take_negative", of(lambda x: ops.take(x, -1, axis=1), shape)
    yield "ops_average_weights", of(lambda x: ops.average(x, axis=1, weights=np.arange(4, dtype="float32")), shape)
    yield "ops_max_initial", of(lambda x: ops.max(x, axis=1), shape)
    yield "ops_in_top_k", of(lambda x, y: ops.in_top_k(x, y, 2), (), (5,), dtypes=["int32", "float32"])
    yield "ops_leaky", of(lambda x: ops.leaky_relu(x, 0.3), shape)
    yield "ops_threshold", of(lambda x: ops.threshold(x, 0.2, -1.0), shape)
    yield "ops_glu", of(lambda x: ops.glu(x, axis=1), shape)
    yield "ops_conv_same_open", of(lambda x: ops.average_pool(x, 2, padding="same"), (None, None, 2))
    yield "ops_tile_low", of(lambda x: ops.tile(x, 2), shape)
    yield "ops_cast_bool", of(lambda x: ops.cast(ops.cast(x, "bool"), "int32"), shape)
    yield "ops_squeeze_all", of(lambda x: ops.squeeze(x), (4, 1))
    yield "ops_bool_arithmetic", of(lambda x: ops.sum(ops.cast(x > 0, "float32") * x, axis=1), shape)
    yield "ops_int_mean", of(lambda x: ops.mean(x, axis=1), (4,), dtypes=["int32"])
    yield "ops_int_divide", of(lambda x: x / 3, (4,), dtypes=["int32"])
    yield "ops_int_floor_divide", of(lambda x: (x - 2) // 2 + (x - 2) % 3, (4,), dtypes=["int32"])
    yield "ops_uint8", of(lambda x: ops.cast(x, "float32") / 255.0 - 0.5, (4, 3), dtypes=["uint8"])
    yield "ops_hstack", of(lambda x, y: ops.hstack([x, y]), shape, shape)
    yield "ops_vstack", of(lambda x, y: ops.vstack([x, y]), shape, shape)


def further():
    """Cases that showed something."""
    L = layers
    yield "masked_softmax", of(lambda x: L.Softmax()(L.Masking()(x)[:, :, 0] * 2.0), (5, 3))
    yield "mask_through_norm", of(lambda x: L.GRU(3)(L.LayerNormalization()(L.Masking()(x))), (5, 3))
    yield "mask_time_distributed", of(lambda x: L.LSTM(3)(L.TimeDistributed(L.Dense(2))(L.Masking()(x))), (5, 3))
    yield (
        "mask_bidirectional_twice",
        of(
            lambda x: L.Bidirectional(L.GRU(2))(L.Bidirectional(L.LSTM(2, return_sequences=True))(L.Masking()(x))),
            (5, 3),
        ),
    )
    yield "mask_conv", of(lambda x: L.LSTM(3)(L.Conv1D(2, 3, padding="same")(L.Masking()(x))), (5, 3))
    yield (
        "mask_attention_seq2seq",
        of(
            lambda x, y: L.Dense(2)(L.Attention()([L.LSTM(3, return_sequences=True)(L.Masking()(x)), L.Dense(3)(y)])),
            (4, 2),
            (5, 2),
        ),
    )
    yield "embedding_open", single(lambda: L.Embedding(7, 3), None, dtype="int32")
    yield "encoder_decoder", encoder_decoder
    yield "separable_same_valid", single(lambda: L.SeparableConv2D(3, (3, 1), dilation_rate=2), 9, 8, 2)
    yield "pooling_strides", single(lambda: L.MaxPooling2D((3, 2), strides=(2, 1)), 7, 6, 2)
    yield "conv1d_transpose_same_odd", single(lambda: L.Conv1DTranspose(2, 5, 3, padding="same"), 4, 2)
    yield "conv2d_transpose_stride_over", single(lambda: L.Conv2DTranspose(2, 2, 3, padding="same"), 3, 3, 2)
    yield "dense_on_pictures", single(lambda: L.Dense(3), None, None, 2)
    yield "lstm_backwards", single(lambda: L.LSTM(3, go_backwards=True, return_sequences=True), 9, 2)
    yield "rnn_open_states", single(lambda: L.GRU(3, return_state=True, return_sequences=True), None, 2)
    yield (
        "mha_masks_both",
        of(
            lambda x, y: L.MultiHeadAttention(2, 3)(L.Masking()(x), L.Masking()(y), use_causal_mask=True),
            (4, 5),
            (4, 5),
        ),
    )
    yield "upsampling_odd", single(lambda: L.UpSampling2D((3, 1), interpolation="bilinear"), 3, 4, 2)
    yield "zero_padding_conv", of(lambda x: L.Conv2D(2, 3, strides=2)(L.ZeroPadding2D(((0, 1), (0, 1)))(x)), (8, 8, 2))
    yield "concatenate_integers", of(lambda x, y: L.Concatenate()([x, y]), (3,), (2,), dtypes=["int32", "int32"])


def encoder_decoder():
    source, target = Input((None, 2), name="source"), Input((None, 3), name="target")
    _, h, c = layers.LSTM(4, return_state=True)(source)
    decoded = layers.LSTM(4, return_sequences=True)(target, initial_state=[h, c])
    return Model([source, target], layers.Dense(2)(decoded))


def models():
    L = layers

    def nested():
        inner = Sequential([Input((4,)), L.Dense(3, activation="relu"), L.BatchNormalization()], name="inner")
        x = Input((4,), name="x")
        return Model(x, L.Add()([inner(x), inner(x * 2.0)]))

    yield "nested", nested

    def shared():
        dense = L.Dense(4)
        x = Input((4,), name="x")
        return Model(x, dense(dense(x)))

    yield "shared", shared

    def dictionary():
        a, b = Input((4,), name="a"), Input((3,), name="b")
        return Model({"a": a, "b": b}, {"sum": L.Dense(2)(a), "product": L.Dense(3)(b)})

    yield "dictionary", dictionary

    def several():
        b, a = Input((4,), name="second"), Input((4,), name="first")
        return Model([b, a], [b - a, a, L.Dense(2)(b)])

    yield "several", several

    def functional_in_functional():
        i1, i2 = Input((4,)), Input((4,))
        inner = Model([i1, i2], [i1 + i2, L.Dense(3)(i1)])
        x, y = Input((4,), name="x"), Input((4,), name="y")
        s, d = inner([x, y])
        s2, d2 = inner([s, x])
        return Model([x, y], [s2, d, d2])

    yield "functional_in_functional", functional_in_functional
    yield (
        "sequential",
        lambda: Sequential([Input((6, 5, 2), name="x"), L.Conv2D(3, 3), L.ReLU(), L.Flatten(), L.Dense(2)]),
    )
    yield (
        "masked_nested",
        lambda: (lambda x: Model(x, Sequential([L.LSTM(3), L.Dense(2)])(L.Embedding(5, 4, mask_zero=True)(x))))(
            Input((6,), dtype="int32", name="x")
        ),
    )
    yield (
        "nested_mask_out",
        lambda: (lambda x, inner: Model(x, L.LSTM(3)(inner(x))))(
            Input((6,), dtype="int32", name="x"),
            Sequential([Input((6,), dtype="int32"), L.Embedding(5, 4, mask_zero=True), L.Dense(3)]),
        ),
    )
    yield "float16", single(lambda: L.Dense(3, dtype="mixed_float16"), 4)
    yield "batch_size", single(lambda: L.LSTM(3, return_sequences=True), 9, 2, batch=2)


FAMILIES = (
    core,
    activations,
    convolutions,
    pooling,
    normalization,
    merging,
    reshaping,
    attention,
    recurrent,
    preprocessing,
    operations,
    models,
    further,
)
LEGACY = (
    "dense",
    "conv2d",
    "separable2d",
    "lstm",
    "gru",
    "bidirectional_concat",
    "mha",
    "batch_normalization",
    "nested",
    "shared",
    "several",
    "functional_in_functional",
    "sequential",
    "layer_normalization",
    "rnn_stacked",
    "time_distributed_dense",
    "masked_dense_chain",
    "ops_scalar",
    "embedding_mask",
    "conv_lstm2d",
    "attention_key",
    "prelu",
    "normalization_adapted",
)


def packed(array):
    array = np.asarray(array, order="C")
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}


def randomized(model, rng):
    for variable in model.variables:
        if "float" not in variable.dtype or "seed" in variable.path or "count" in variable.path:
            continue
        value = np.round(rng.normal(size=variable.shape) * 16) / 32
        if any(word in variable.path for word in ("variance", "stddev")):
            value = np.abs(value) + 0.5
        if "normalization" in variable.path and "adapted" in model.name:
            continue
        variable.assign(value.astype(variable.dtype))


def inputs_of(model, rng):
    found = {}
    for tensor in model.inputs:
        shape = [
            BATCH if axis == 0 and size is None else 5 if size is None else size
            for axis, size in enumerate(tensor.shape)
        ]
        if "int" in tensor.dtype:
            value = rng.integers(
                0, 5 if tensor.dtype != "int32" or len(shape) < 1 else 2 if "take" in model.name else 4, shape
            )
        elif tensor.dtype == "bool":
            value = rng.random(shape) < 0.7
            value[..., 0] = True
        elif "embedding" in model.name:
            value = rng.integers(0, 7, shape)
        else:
            value = np.round(rng.normal(size=shape) * 32) / 32
            if len(shape) == 3 and "masks" in model.name:
                value[rng.random(shape[:2]) < 0.4] = 0
        found[tensor.name] = value.astype(tensor.dtype)
    return found


def case_of(name, build, number):
    rng = np.random.default_rng(number)
    keras.utils.set_random_seed(number)
    keras.backend.clear_session()
    model = build()
    model.name = f"{name}_masks" if "mask" in name else name
    randomized(model, rng)
    given = inputs_of(model, rng)
    struct = (
        {n: given[n] for n in given}
        if isinstance(getattr(model, "_inputs_struct", None), dict)
        else list(given.values())
    )
    answer = model(struct if len(given) > 1 or isinstance(struct, dict) else struct[0], training=False)
    if isinstance(answer, dict):
        outputs = {key: np.asarray(value) for key, value in sorted(answer.items())}
    else:
        outputs = {f"output_{n}": np.asarray(value) for n, value in enumerate(keras.tree.flatten(answer))}
    case = {"name": name}
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/m.keras"
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            case["config"] = slim(json.loads(archive.read("config.json")))
            case["metadata"] = {"keras_version": json.loads(archive.read("metadata.json"))["keras_version"]}
            case["weights"] = {}
            with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
                file.visititems(
                    lambda path, item: (
                        case["weights"].update({path: packed(item[()])})
                        if isinstance(item, h5py.Dataset) and "seed" not in path
                        else None
                    )
                )
        if name in LEGACY:
            model.save(f"{place}/m.h5")
            with h5py.File(f"{place}/m.h5") as file:
                group = file["model_weights"]
                case["legacy"] = {
                    "config": slim(json.loads(file.attrs["model_config"])),
                    "weights": {
                        layer: {str(n): packed(group[layer][n][()]) for n in group[layer].attrs["weight_names"]}
                        for layer in group
                    },
                }
    case["inputs"] = {key: packed(value) for key, value in given.items()}
    case["outputs"] = {key: packed(value) for key, value in outputs.items()}
    if name.startswith("float16"):
        case["tolerance"] = 2e-3
    return case


def slim(config):
    """A config without what only training needs."""
    if isinstance(config, dict):
        dropped = ("initializer", "regularizer", "constraint", "compile_config", "autocast", "seed")
        return {key: slim(value) for key, value in config.items() if not key.endswith(dropped)}
    return [slim(value) for value in config] if isinstance(config, list) else config


def main():
    only = sys.argv[1:]
    cases, number = [], 0
    for family in FAMILIES:
        for name, build in family():
            number += 1
            if only and not any(word in name for word in only):
                continue
            try:
                case = case_of(name, build, number)
            except Exception as error:
                sys.stderr.write(f"{name}: {type(error).__name__}: {str(error)[:300]}\n")
                continue
            case["family"] = family.__name__
            cases.append(case)
    target = HERE / "fixtures.json.xz" if not only else Path("/tmp/fixtures.json.xz")
    target.write_bytes(lzma.compress(json.dumps(cases).encode(), preset=9))
    sys.stdout.write(f"{len(cases)} cases, {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
