from __future__ import annotations

import numpy as np
import pytest

from gossamer import EditError, edit
from tests.edit.models import picture_net, reread, run, weights


def test_inputs_and_outputs_have_their_new_names_in_signatures_too() -> None:
    model = picture_net()
    renamed = reread(edit.rename(model, {"x": "picture", "scores": "classes", "sum": "block"}))
    (signature,) = renamed.signature_defs
    assert ([one.name for one in signature.inputs], [one.name for one in signature.outputs]) == (
        ["picture"],
        ["classes"],
    )
    assert "block" in [tensor.name for tensor in renamed.subgraphs[0].tensors]
    x = weights(1, 8, 8, 3)
    assert np.array_equal(run(renamed, x)[0], run(model, x)[0])


def test_two_may_change_places() -> None:
    model = picture_net()
    swapped = edit.rename(model, {"first": "second", "second": "first"})
    assert bytes(edit.rename(reread(swapped), {"first": "second", "second": "first"})) == bytes(model.replace())


def test_the_same_names_leave_the_file_as_it_is() -> None:
    model = picture_net()
    assert edit.rename(model, {"x": "x", "sum": "sum"}) is model
    assert bytes(edit.rename(model, {})) == bytes(model)


def test_names_that_others_have() -> None:
    with pytest.raises(EditError, match=r"tensor \d+ is called 'sum' already"):
        edit.rename(picture_net(), {"first": "sum"})
    with pytest.raises(EditError, match="there is no tensor 'frist'; near it: 'first'"):
        edit.rename(picture_net(), {"frist": "a"})
