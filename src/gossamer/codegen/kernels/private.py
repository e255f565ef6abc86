"""`private`: a driver for what every thread has for itself, in its scratch memory."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import I64, PTR, Module
from gossamer.codegen.kernels.repeat import MAX_WORDS
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Private(KernelSpec):
    """Calls ``kernel`` with its ``block`` of ``words`` words, at most `MAX_WORDS`, of which one, in ``position``, is a
    pointer into the scratch memory of thread 0: that of the others is ``scratch_thread`` bytes apart.

    Threads share what the kernel shares, or, if ``alone`` is 1, every thread does all of it.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*kernel *block words position scratch_thread alone")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("private",)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        _, tid, threads = f.parameters
        copy = f.stack(I64, MAX_WORDS)
        with f.loop(0, a.words) as words:
            f.store(f.load(I64, f.at(a.block, words.index, "i64")), f.at(copy, words.index, "i64"))
        word = f.at(copy, a.position, "i64")
        f.store(f.offset(f.load(PTR, word), tid * a.scratch_thread), word)
        alone = f.compare("ne", a.alone, 0)
        f.call(a.kernel, copy, f.select(alone, f.integer(0), tid), f.select(alone, f.integer(1), threads))
        return module.text()
