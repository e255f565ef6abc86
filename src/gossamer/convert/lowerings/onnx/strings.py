"""Strings, of which TFLite has no operators: what is made of constants is made now."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Refused, Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.schema.enums import TensorType as T


def _known(call: Call, position: int) -> NDArray[Any]:
    data = call.value(position).data
    if data is None:
        raise Refused("works on strings, which TFLite has no operator for; do it before the model")
    return data


def _texts(call: Call, array: NDArray[Any]) -> Value:
    return call.graph.constant(array.astype(object), T.STRING)


@lowers("StringConcat")
def string_concat(call: Call) -> Value:
    return _texts(call, np.asarray(_known(call, 0) + _known(call, 1), object))


@lowers("RegexFullMatch")
def regex_full_match(call: Call) -> Value:
    data = _known(call, 0)
    pattern = re.compile(call.string("pattern").encode())
    found = [pattern.fullmatch(bytes(one)) is not None for one in data.reshape(-1)]
    return call.graph.constant(np.array(found, bool).reshape(data.shape))


@lowers("StringSplit", "StringNormalizer", "TfIdfVectorizer", "ImageDecoder")
def refused(call: Call) -> Value:
    raise Refused("works on strings or files, which TFLite has no operator for; do it before the model")
