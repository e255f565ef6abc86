from __future__ import annotations

import numpy as np

from gossamer import edit
from gossamer.model.metadata import file_names
from gossamer.model.writer import write_model
from gossamer.schema import Buffer, BuiltinOperator, OperatorCode, Tensor
from tests.edit.models import integer_net, loop_net, picture_net, reread, run, weights

X = weights(1, 8, 8, 3)


def test_what_no_run_needs_goes() -> None:
    model = edit.describe(picture_net(), name="Net", labels=["a"] * 10, entries={"theirs": b"1"})
    small = reread(edit.strip(model))
    assert [entry.name for entry in small.metadata] == ["theirs"]
    assert (file_names(small), small.description) == ((), "")
    assert list(small.signatures) == ["serving_default"]
    assert np.array_equal(run(small, X)[0], run(model, X)[0])
    assert edit.strip(small) is small
    assert bytes(edit.strip(small)) == bytes(small)


def test_unused_tensors_constants_and_codes() -> None:
    model = picture_net()
    main = model.subgraphs[0]
    tensors = (Tensor(name="idle", buffer=len(model.buffers)), *main.tensors)
    moved = {"inputs": (1,), "outputs": (main.outputs[0] + 1,)}
    operators = tuple(
        one.replace(inputs=tuple(n + 1 for n in one.inputs), outputs=tuple(n + 1 for n in one.outputs))
        for one in main.operators
    )
    full = model.replace(
        subgraphs=(main.replace(tensors=tensors, operators=operators, **moved),),
        buffers=(*model.buffers, Buffer(data=np.zeros(99, np.uint8))),
        operator_codes=(*model.operator_codes, OperatorCode(builtin_code=BuiltinOperator.COS)),
        signature_defs=(),
    )
    small = edit.strip(full, metadata=False, description=False)
    assert len(small.subgraphs[0].tensors) == len(main.tensors)
    assert (len(small.buffers), len(small.operator_codes)) == (len(model.buffers), len(model.operator_codes))
    assert write_model(small) == write_model(model.replace(signature_defs=()))
    assert edit.strip(full, unused=False, metadata=False, description=False) is full


def test_names_and_signatures_if_asked() -> None:
    for model, inputs in ((loop_net(), (np.float32([1, 2]), np.int32(0))), (integer_net(), (weights(1, 4),))):
        bare = reread(edit.strip(model, names=True, signatures=True))
        assert not bare.signature_defs
        assert {tensor.name for tensor in bare.subgraphs[0].tensors} <= {"", "x", "i", "y"}
        assert len(bytes(bare)) < len(bytes(edit.strip(model)))
        assert np.array_equal(run(bare, *inputs)[0], run(model, *inputs)[0])
