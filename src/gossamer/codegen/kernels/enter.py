"""`enter`: the code of a built-in function of CPython that calls the walker (gossamer/programs/entry.py)."""

from __future__ import annotations

from collections.abc import Iterator
from string import Template
from typing import get_args

from gossamer.codegen.kernels.walk import CONVENTIONS, Convention, load_words
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.entry import WORDS, WORDS_AT
from gossamer.records import record
from gossamer.targets import Target

_TEXT = Template("""\
define $convention ptr @k(ptr %self, ptr %ignored) nounwind {
entry:
  %words = getelementptr i8, ptr %self, i64 $words_at
  $load_words
  %thread = call $convention ptr %release()
  %ticket = call $convention i64 %walker(ptr %call)
  call $convention void %acquire(ptr %thread)
  call $convention void %refer(ptr %none)
  ret ptr %none
}
""")


@record(frozen=True)
class EnterSpec(KernelSpec):
    """``PyObject *k(PyObject *self, PyObject *)``: calls the walker as the contents of ``self`` say, and returns None.
    Other Python threads run meanwhile."""

    convention: Convention = ""

    @property
    def parts(self) -> tuple[str, ...]:
        return ("enter",)

    @property
    def variant(self) -> str:
        return self.convention

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        conventions = get_args(Convention) if target.triple.startswith("x86_64") else ("",)
        yield from (cls(target.name, convention) for convention in conventions)

    def emit(self, target: Target) -> str:
        return _TEXT.substitute(
            convention=CONVENTIONS[self.convention], words_at=WORDS_AT, load_words=load_words("words", WORDS)
        )
