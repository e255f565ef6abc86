"""Kernels that are nothing but a text, and objects made of them."""

from __future__ import annotations

from gossamer.codegen.compiler import _llvm, _parse
from gossamer.codegen.spec import KernelSpec
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
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
