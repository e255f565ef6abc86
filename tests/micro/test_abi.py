"""Sizes and alignments as compilers have them; TFLite Micro itself was asked for those of its structures."""

from __future__ import annotations

import pytest

from gossamer.micro import structs
from gossamer.micro.abi import (
    ARM,
    X86_64,
    Array,
    CType,
    Struct,
    abi,
    align_down,
    align_up,
    boolean,
    enumeration,
    float64,
    int8,
    int32,
    pointer,
)


def test_a_structure_is_padded_within_and_behind() -> None:
    struct = Struct(flag=boolean, number=float64, small=int8)
    assert (struct.size(ARM), struct.alignment(ARM)) == (24, 8)


def test_enumerations_are_small_on_arm() -> None:
    struct = Struct(one=enumeration, two=enumeration, flag=boolean)
    assert (struct.size(ARM), struct.alignment(ARM)) == (3, 1)
    assert (struct.size(X86_64), struct.alignment(X86_64)) == (12, 4)


def test_arrays_and_structures_nest() -> None:
    inner = Struct(p=pointer, n=int32)
    assert Struct(flag=boolean, many=Array(inner, 3)).size(X86_64) == 8 + 3 * 16
    assert Struct().size(ARM) == 0


@pytest.mark.parametrize(
    ("struct", "sizes"),
    [
        (structs.TENSOR, (32, 64)),
        (structs.EVAL_TENSOR, (12, 24)),
        (structs.AFFINE_QUANTIZATION, (12, 24)),
        (structs.NODE, (28, 56)),
        (structs.NODE_AND_REGISTRATION, (32, 64)),
        (structs.MICRO_ALLOCATOR, (36, 72)),
        (structs.SINGLE_ARENA_BUFFER_ALLOCATOR, (36, 72)),
        (structs.RECORDING_SINGLE_ARENA_BUFFER_ALLOCATOR, (52, 104)),
        (structs.RECORDING_MICRO_ALLOCATOR, (124, 248)),
        (structs.GREEDY_MEMORY_PLANNER, (44, 72)),
        (structs.SCRATCH_BUFFER_REQUEST, (12, 16)),
        (structs.ALLOCATION_INFO, (24, 32)),
        (structs.int_array(3), (16, 16)),
    ],
)
def test_tflite_micro_s_structures(struct: CType, sizes: tuple[int, int]) -> None:
    assert (struct.size(ARM), struct.size(X86_64)) == sizes


def test_the_abi_of_a_pointer_size() -> None:
    assert (abi(4), abi(8)) == (ARM, X86_64)
    with pytest.raises(ValueError, match="pointer_size must be 4 or 8, got 2"):
        abi(2)


def test_aligning() -> None:
    assert (align_up(17, 16), align_up(16, 16), align_down(17, 16), align_down(-1, 16)) == (32, 16, 16, -16)
