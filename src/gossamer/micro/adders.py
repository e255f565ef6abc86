"""The methods of TFLite Micro's MicroMutableOpResolver that add operators, and the C++ of a resolver for a model.

Source: micro_mutable_op_resolver.h. A method is named after its operator, in other capitals and without underscores:
``AddConv2D`` adds CONV_2D. Those of custom operators drop the prefix of the name, as ``AddFramer`` of SignalFramer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gossamer.schema.enums import BuiltinOperator

# Without "Add", by the alphabet.
_BUILTIN = """
    Abs Add AddN ArgMax ArgMin AssignVariable AveragePool2D BatchMatMul BatchToSpaceNd BroadcastArgs BroadcastTo
    CallOnce Cast Ceil Concatenation Conv2D Cos CumSum DepthToSpace DepthwiseConv2D Dequantize Div DynamicUpdateSlice
    Elu EmbeddingLookup Equal Exp ExpandDims Fill Floor FloorDiv FloorMod FullyConnected Gather GatherNd Greater
    GreaterEqual HardSwish If L2Normalization L2Pool2D LeakyRelu Less LessEqual Log LogSoftmax LogicalAnd LogicalNot
    LogicalOr Logistic MaxPool2D Maximum Mean Minimum MirrorPad Mul Neg NotEqual Pack Pad PadV2 Prelu Quantize
    ReadVariable ReduceAll ReduceMax ReduceMin Relu Relu6 Reshape ResizeBilinear ResizeNearestNeighbor ReverseV2 Round
    Rsqrt SelectV2 Shape Sin Slice Softmax SpaceToBatchNd SpaceToDepth Split SplitV Sqrt Square SquaredDifference
    Squeeze StridedSlice Sub Sum Svdf Tanh Transpose TransposeConv UnidirectionalSequenceLSTM Unpack VarHandle While
    ZerosLike
"""

_SIGNAL = """
    Delay Energy FftAutoScale FilterBank FilterBankLog FilterBankSpectralSubtraction FilterBankSquareRoot Framer Irfft
    OverlapAdd PCAN Rfft Stacker Window
"""

_CUSTOM = {
    "CIRCULAR_BUFFER": "CircularBuffer",
    "TFLM_DECODE": "Decode",
    "TFLite_Detection_PostProcess": "DetectionPostprocess",
    "ethos-u": "EthosU",
    **{f"Signal{name}": name for name in _SIGNAL.split()},
}

_LETTERS = {name.upper(): name for name in _BUILTIN.split()}
ADDERS = {
    code.name: f"Add{_LETTERS[code.name.replace('_', '')]}"
    for code in BuiltinOperator
    if code.name.replace("_", "") in _LETTERS
}
"""The methods for builtin operators, by the operator's name."""

CUSTOM_ADDERS = {name: f"Add{method}" for name, method in _CUSTOM.items()}
"""The methods for custom operators that TFLite Micro has, by the custom name."""


def adder(operator: str) -> str | None:
    """The method for a builtin operator or a custom name, ``None`` if TFLite Micro has none."""
    return ADDERS.get(operator) or CUSTOM_ADDERS.get(operator)


def cpp_resolver(operators: Sequence[str]) -> list[str]:
    """Lines of C++ that make a resolver with these operators: builtin ones, and custom names.

    A custom operator that TFLite Micro does not have is one of the application's, which names its registration. A
    builtin one that it does not have becomes a comment.
    """
    calls = [_call(name) for name in operators]
    count = sum(not call.startswith("//") for call in calls)
    return [f"tflite::MicroMutableOpResolver<{count}> resolver;", *calls]


def _call(name: str) -> str:
    method = adder(name)
    if method is not None:
        return f"resolver.{method}();"
    if name in BuiltinOperator.__members__:
        return f"// {name}: TFLite Micro does not have it."
    return f"resolver.AddCustom({json.dumps(name)}, Register_{_identifier(name)}());"


def _identifier(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).upper()
