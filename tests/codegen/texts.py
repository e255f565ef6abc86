"""Kernels that are nothing but a text, and objects made of them."""

from __future__ import annotations

from dataclasses import dataclass

from gossamer.codegen.compiler import _llvm, _parse
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import Target


@dataclass(frozen=True)
class Text(KernelSpec):
    """A kernel with this text."""

    title: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        return ("text", self.title)

    def emit(self, target: Target) -> str:
        return self.text


def object_of(text: str, target: Target) -> bytes:
    """The object file that LLVM makes of a text."""
    with _llvm() as llvm:
        module, machine = _parse(llvm, text, "x", target)
        return bytes(machine.emit_object(module))
