"""The short way from Python into a program: a built-in function, as extension modules have them.

ctypes takes 0.16 us for a call of the walker, this 0.08, which models of some microseconds feel. CPython's stable
interface makes such a function of an object and of machine code (codegen/kernels/enter.py). The object is ``bytes``, in
which lie the addresses that the code needs.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal

from gossamer.programs.host import address_of

WORDS: Mapping[str, Literal["ptr"]] = {
    "walker": "ptr",
    "call": "ptr",
    "release": "ptr",
    "acquire": "ptr",
    "refer": "ptr",
    "none": "ptr",
}
"""What lies in the bytes, with LLVM types: the walker and its argument, the functions that let other Python threads run
and end that, the one that counts a reference, and the result."""

WORDS_AT = 32
"""Where the contents of ``bytes`` begin, behind the address of the object, in bytes."""

IS_POSSIBLE = sys.implementation.name == "cpython" and bytes.__basicsize__ - 1 == WORDS_AT
"""Whether this Python has such functions, and ``bytes`` (the size counts the 0 at their end) as the code expects."""

_NO_ARGUMENTS = 0x4  # METH_NOARGS


class _Definition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def entry(code: int, walker: int, call: int) -> Callable[[], None]:
    """A function that calls the walker with a `gossamer.programs.team.Call`, and lets other Python threads run
    meanwhile. All are given by their addresses, ``code`` is the kernel ``enter``. Only where it `IS_POSSIBLE`.

    Who calls the function keeps what lies at the addresses.
    """
    api = ctypes.pythonapi
    functions = [address_of(function) for function in (api.PyEval_SaveThread, api.PyEval_RestoreThread, api.Py_IncRef)]
    words = struct.pack(f"{len(WORDS)}P", walker, call, *functions, id(None))
    make = api.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[[], None] = make(ctypes.addressof(_definition(code)), words, None)
    return function


@cache
def _definition(code: int) -> _Definition:
    # The functions that are made of it refer to it for as long as they live.
    return _Definition(b"run", code, _NO_ARGUMENTS, None)
