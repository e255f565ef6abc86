"""Which operators a firmware has."""

from __future__ import annotations

import pytest

from gossamer.errors import UnsupportedOpError
from gossamer.micro import MicroMutableOpResolver, MicroOpResolver, all_ops, needed_ops
from gossamer.micro.adders import ADDERS, CUSTOM_ADDERS
from gossamer.micro.kernels import find_kernel
from gossamer.micro.kernels.options import OPTIONS
from gossamer.model import read_model
from gossamer.schema import BuiltinOperator
from tests.micro.models import chooser

MISSING = {"ethos-u"}
"""An operator of TFLite Micro without a kernel here: it is a device."""


def test_every_builtin_operator_of_tflite_micro_has_a_kernel() -> None:
    assert set(all_ops()) == {*ADDERS, *CUSTOM_ADDERS} - MISSING
    assert len(ADDERS) == 100


def test_options_are_those_of_known_operators() -> None:
    assert set(OPTIONS) <= set(ADDERS)
    kernel = find_kernel("CONV_2D")
    assert kernel is not None
    assert kernel.options is OPTIONS["CONV_2D"]


def test_a_second_registration() -> None:
    resolver = MicroMutableOpResolver(2, ["ADD"])
    with pytest.raises(UnsupportedOpError, match="ADD is registered already"):
        resolver.add("ADD")


def test_one_more_than_there_is_room_for() -> None:
    resolver = MicroMutableOpResolver(1, ["ADD"])
    with pytest.raises(UnsupportedOpError, match=r"Couldn't register MUL, resolver size is too small \(1\)"):
        resolver.add("MUL")
    assert len(resolver) == 1


def test_an_operator_that_tflite_micro_does_not_have() -> None:
    with pytest.raises(UnsupportedOpError, match="no operator 'CONV_3D'"):
        MicroMutableOpResolver(1, ["CONV_3D"])


def test_only_what_is_registered_is_found() -> None:
    resolver = MicroMutableOpResolver(2, ["ADD", "CIRCULAR_BUFFER"])
    assert resolver.find_builtin(BuiltinOperator.ADD) is find_kernel("ADD")
    assert resolver.find_custom("CIRCULAR_BUFFER") is find_kernel("CIRCULAR_BUFFER", custom=True)
    assert resolver.find_builtin(BuiltinOperator.MUL) is resolver.find_custom("ADD") is None
    assert MicroOpResolver().find_builtin(BuiltinOperator.MUL) is find_kernel("MUL")
    assert MicroOpResolver().find_builtin(9999) is None


def test_what_a_model_needs() -> None:
    assert needed_ops(read_model(chooser())) == ("IF", "FULLY_CONNECTED")
