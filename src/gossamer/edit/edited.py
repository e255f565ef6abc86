"""What every edit begins and ends with: a model that makes sense, and one that still does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gossamer.edit.references import scales_of
from gossamer.errors import EditError, ModelError
from gossamer.model.metadata import min_runtime_version
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.verifier import Fault, verify_model
from gossamer.versions import update_op_versions, with_minimum_runtime_version

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Source = Model | str | os.PathLike[str] | Buffer
else:
    Source = Any


def opened(source: Source) -> Model:
    """The model, or what a file or bytes hold. Raises `ModelError` for one that no run could use as it says."""
    model = source if isinstance(source, Model) else read_model(source)
    _refuse_faults(model, verify_model(model))
    for number, subgraph in enumerate(model.subgraphs):
        named = {*subgraph.inputs, *subgraph.outputs, *[n for tensor in subgraph.tensors for n in scales_of(tensor)]}
        strange = [n for n in named if not 0 <= n < len(subgraph.tensors)]
        if strange:
            raise ModelError(f"the model contradicts itself: subgraphs[{number}] has no tensor {strange[0]}")
    return model


def _refuse_faults(model: Model, faults: tuple[Fault, ...]) -> None:
    grave = [fault for fault in faults if fault.subgraph is not None or fault.place.startswith("signature_defs")]
    if grave:
        raise ModelError(f"the model contradicts itself, so it is not changed: {grave[0]}")


def finished(old: Model, new: Model) -> Model:
    """The result of an edit: with versions of operators that do what it asks for, the release that has them all where
    the model names one, and sound; the old model itself if nothing is another.

    Raises `EditError` if it is not sound.
    """
    if new == old and new.appended in (None, old.appended):
        return old
    new = update_op_versions(new)
    if min_runtime_version(new) is not None:
        new = with_minimum_runtime_version(new)
    try:
        _refuse_faults(new, verify_model(new))
    except ModelError as error:
        raise EditError(f"this edit would give no sound model: {error}") from error
    return new
