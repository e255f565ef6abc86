"""Runs the ``CASES`` of every operator's test file on every backend.

A file only needs ``CASES`` and ::

    def test_case(case, backend):
        run_case(backend, op, case)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import gossamer


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = metafunc.module.CASES
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])
    if "backend" in metafunc.fixturenames:
        lowers = metafunc.module.op.lower_function is not None
        operands = [operand for case in getattr(metafunc.module, "CASES", ()) for operand in case.inputs]
        is_quantized = any(operand is not None and operand.quantization is not None for operand in operands)
        arrays = pytest.param("arrays", marks=[] if is_quantized else pytest.mark.slow)  # what matters is how it rounds
        peers = [pytest.param("litert", marks=pytest.mark.peer)]
        is_in_litert = any(version.since for version in metafunc.module.op.versions)  # the others are TFLite Micro's
        backends = ["reference", *["jit", arrays] * lowers, *peers * is_in_litert]
        metafunc.parametrize("backend", backends, indirect=True)


def _litert(**arguments: Any) -> Any:
    peer = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed (extra 'bench')")
    try:
        return peer.Interpreter(experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF, **arguments)
    except ValueError:  # the reference resolver lacks a few operators and versions
        resolver = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return peer.Interpreter(experimental_op_resolver_type=resolver, **arguments)


_REFERENCE = partial(
    gossamer.Interpreter, experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
)


@pytest.fixture
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes an interpreter: ours on the reference kernels, ours as users get it, where the operator has
    machine code, the same on a CPU that there is none for, and (marked ``peer``) LiteRT's."""
    if request.param == "arrays":
        monkeypatch.setenv("GOSSAMER_TARGET", "none")
    return {"reference": _REFERENCE, "litert": _litert}.get(request.param, gossamer.Interpreter)
