"""Functions of TensorFlow in models of Keras 2, as operations of ``keras.ops``: their first argument is a tensor or a
list, the others are named as in TensorFlow."""

from __future__ import annotations

from typing import Any

from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, lowers
from gossamer.records import replace

_ALIASES = {"__operators__.add": "math.add", "math.divide": "math.truediv", "nn.swish": "nn.silu"}

_PAIRS = {
    "add": "Add", "subtract": "Subtract", "multiply": "Multiply", "truediv": "TrueDivide", "maximum": "Maximum",
    "minimum": "Minimum", "pow": "Power", "floordiv": "FloorDivide", "floormod": "Mod", "mod": "Mod", "equal": "Equal",
    "not_equal": "NotEqual", "greater": "Greater", "greater_equal": "GreaterEqual", "less": "Less",
    "less_equal": "LessEqual", "logical_and": "LogicalAnd", "logical_or": "LogicalOr", "divide_no_nan": "DivideNoNan",
    "atan2": "Arctan2",
}  # fmt: skip
"""``math.add(x, y)`` and its kin."""

_UNARY = {
    "abs": "Absolute", "exp": "Exp", "log": "Log", "log1p": "Log1p", "expm1": "Expm1", "sqrt": "Sqrt",
    "rsqrt": "Rsqrt", "square": "Square", "negative": "Negative", "sign": "Sign", "floor": "Floor", "ceil": "Ceil",
    "round": "Round", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf",
    "relu": "Relu", "relu6": "Relu6", "silu": "Silu", "selu": "Selu", "elu": "Elu", "softplus": "Softplus",
    "softsign": "Softsign", "logical_not": "LogicalNot", "stop_gradient": "StopGradient", "identity": "Copy",
    "ones_like": "OnesLike", "zeros_like": "ZerosLike",
}  # fmt: skip
"""Functions of one tensor, in whatever module they are."""

_NAMED: dict[str, tuple[str, dict[str, str]]] = {
    **{f"reduce_{name}": (name.capitalize(), {"axis": "axis", "keepdims": "keepdims"})
       for name in ("sum", "mean", "max", "min", "prod", "any", "all")},
    "reduce_logsumexp": ("Logsumexp", {"axis": "axis", "keepdims": "keepdims"}),
    "argmax": ("Argmax", {"axis": "axis"}), "argmin": ("Argmin", {"axis": "axis"}),
    "softmax": ("Softmax", {"axis": "axis"}), "log_softmax": ("LogSoftmax", {"axis": "axis"}),
    "leaky_relu": ("LeakyRelu", {"alpha": "negative_slope"}), "gelu": ("Gelu", {"approximate": "approximate"}),
    "reshape": ("Reshape", {"shape": "newshape"}), "transpose": ("Transpose", {"perm": "axes"}),
    "concat": ("Concatenate", {"axis": "axis"}), "stack": ("Stack", {"axis": "axis"}),
    "unstack": ("Unstack", {"axis": "axis"}),
    "split": ("Split", {"num_or_size_splits": "indices_or_sections", "axis": "axis"}),
    "expand_dims": ("ExpandDims", {"axis": "axis"}), "squeeze": ("Squeeze", {"axis": "axis"}),
    "cast": ("Cast", {"dtype": "dtype"}), "tile": ("Tile", {"multiples": "repeats"}),
    "clip_by_value": ("Clip", {"clip_value_min": "x_min", "clip_value_max": "x_max"}),
    "one_hot": ("OneHot", {"depth": "num_classes"}), "reverse": ("Flip", {"axis": "axis"}),
    "l2_normalize": ("Normalize", {"axis": "axis", "epsilon": "epsilon"}), "pad": ("Pad", {"paddings": "pad_width"}),
    "depth_to_space": ("DepthToSpace", {"block_size": "block_size"}),
    "space_to_depth": ("SpaceToDepth", {"block_size": "block_size"}),
    "resize": ("Resize", {"size": "size", "method": "interpolation"}),
    "cumsum": ("Cumsum", {"axis": "axis"}), "broadcast_to": ("BroadcastTo", {"shape": "shape"}),
}  # fmt: skip
"""Functions with arguments: the operation, and what it calls them; `_DEFAULTS` has those that are left out."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "softmax": {"axis": -1}, "log_softmax": {"axis": -1}, "concat": {"axis": 0}, "stack": {"axis": 0},
    "unstack": {"axis": 0}, "split": {"axis": 0}, "argmax": {"axis": 0}, "argmin": {"axis": 0},
    "leaky_relu": {"alpha": 0.2}, "l2_normalize": {"epsilon": 1e-12}, "cumsum": {"axis": 0},
}  # fmt: skip


@lowers("TFOpLambda")
def function(call: Call) -> Masked:
    """The function that the config names."""
    name = str(call.config("function", ""))
    name = _ALIASES.get(name, name).rpartition(".")[2]
    first = call.argument(0, "x", call.kwargs.get("values", call.kwargs.get("input")))
    if name in _PAIRS:
        return _operation(call, _PAIRS[name], {}, first, call.argument(1, "y"))
    if name in ("matmul", "where"):
        return _operation(call, "Matmul" if name == "matmul" else "Where", {}, *_operands(call, first, name))
    if name in _UNARY:
        return _operation(call, _UNARY[name], {}, first)
    if name not in _NAMED:
        refuse(f"the function tf.{call.config('function')} in a model of Keras 2; save the model with a newer Keras")
    operation, names = _NAMED[name]
    given = {**_DEFAULTS.get(name, {}), **{key: value for key, value in call.kwargs.items() if value is not None}}
    if any(isinstance(given.get(key), Value) for key in names):
        refuse(f"tf.{call.config('function')} with arguments that are computed")
    if name == "split" and isinstance(given.get("num_or_size_splits"), list):
        sizes = [int(size) for size in given["num_or_size_splits"]]
        given["num_or_size_splits"] = [sum(sizes[: n + 1]) for n in range(len(sizes) - 1)]
    return _operation(call, operation, {own: given.get(key) for key, own in names.items() if key in given}, first)


def _operands(call: Call, first: Any, name: str) -> list[Any]:
    if name == "where":
        return [call.argument(0, "condition", first), call.kwargs.get("x"), call.kwargs.get("y")]
    if any(call.kwargs.get(key) for key in ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b")):
        refuse("a product of transposed matrices in a model of Keras 2")
    return [call.argument(0, "a", first), call.argument(1, "b")]


@lowers("SlicingOpLambda")
def item(call: Call) -> Masked:
    """``x[...]``."""
    keys = call.argument(1, "slice_spec")
    return _operation(call, "GetItem", {}, call.x, [_key(key) for key in keys] if isinstance(keys, list) else keys)


def _key(key: Any) -> Any:
    if not isinstance(key, dict):
        return ... if key == "..." else key
    return ... if key.get("class_name") == "__ellipsis__" else slice(key.get("start"), key.get("stop"), key.get("step"))


def _operation(call: Call, class_name: str, config: dict[str, Any], *args: Any) -> Masked:
    layer = replace(call.layer, class_name=class_name, config=config, is_operation=True)
    return call.lower(layer, args)
