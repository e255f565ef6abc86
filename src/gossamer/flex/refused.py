"""Why some operators of TensorFlow have no kernel, and what to do instead."""

from __future__ import annotations

import re

_REASONS = (
    (
        r".*Dataset(V2)?|.*DatasetVariant|Optional.*",
        "input pipelines are no part of a model here: read the data in Python and set the model's inputs",
    ),
    (
        r"(Ref)?(Enter|Exit|Merge|NextIteration|Switch)|LoopCond|RefSelect|RefIdentity|_SwitchN",
        "it is control flow of TensorFlow 1: convert the model with functional control flow "
        "(tf.compat.v1.enable_control_flow_v2), which becomes WHILE and IF",
    ),
    (
        r"Read.*|WriteFile|Save.*|Restore.*|Sharded.*|MergeV2Checkpoints|.*FromTextFile.*",
        "of files, models read and write checkpoints and vocabularies here, where GOSSAMER_FLEX_FILES lets them: give "
        "and take other contents as strings",
    ),
    (
        r"Quantized.*|Dequantize|Quantize.*|Requantiz.*",
        "it is of TensorFlow's quantized types, which no .tflite model has: convert with the converter's quantization",
    ),
    (
        r"_?(Host|Device)?(Send|Recv|Arg|Retval)|_Host.*|_Device.*|RemoteCall|_.*",
        "it belongs to TensorFlow's own runtime, between devices and functions, and not into a model",
    ),
    (
        r".*Session.*|.*TemporaryVariable|SymbolicGradient|FakeQueue",
        "it needs a session of TensorFlow 1, which an interpreter has not",
    ),
    (
        r"Py(Func|FuncStateless)|EagerPyFunc|NumpyFunction",
        "the Python function that it calls is not in the model",
    ),
    (
        r"Sentencepiece.*|TFText>.*|.*Wordpiece.*|.*UTF8.*|.*Whitespace.*|UnicodeScriptTokenize.*|Regex.*|RougeL|.*Token.*",
        "it is of TensorFlow Text, which has kernels of its own",
    ),
    (
        r"(Sparse)?Apply.*|Assign.*|Scatter.*|Variable(V2)?|IsVariable.*|StridedSliceAssign",
        "it takes a variable of TensorFlow 1 by reference: convert the model with resource variables",
    ),
    (
        r".*HashTable.*|InitializeTable|LookupTable.*|(PaddingFIFO|FIFO)?Queue.*|Stack.*|TensorArray.*",
        "it takes its object by reference, as TensorFlow 1 had it: its newer form has a kernel",
    ),
)


def refusal(op: str) -> str:
    """Why there is no kernel of this operator, and how to make one."""
    found = [reason for names, reason in _REASONS if re.fullmatch(names, op)]
    why = f": {found[0]}" if found else ""
    return f"there is no kernel of TensorFlow's {op} here{why}; gossamer.flex_op({op!r}) makes one"
