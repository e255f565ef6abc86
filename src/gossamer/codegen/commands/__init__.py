"""From kernels of the graph to commands of a program: one module per kind, with a function ``commands``."""

from __future__ import annotations

import marshal
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain
from math import prod
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.kernels.repeat import Repeat
from gossamer.codegen.layout import Border, Layout, Place, is_bordered, item_bytes
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.codegen.split import split
from gossamer.errors import CompileError
from gossamer.programs.program import (
    ARENA,
    BLOCKS,
    COMPUTED,
    CONSTANTS,
    FAULT,
    KERNELS,
    MODEL,
    SCRATCH,
    WEIGHTS,
    Address,
    ProgramBuilder,
    ProgramPlan,
    Word,
)
from gossamer.programs.team import Jump
from gossamer.sizes import computed
from gossamer.targets import Target
from gossamer.views import Buffer, View, dense_strides, is_derived

AtHand = Callable[[str], bool]
"""Whether a kernel of this name is there."""

T = TypeVar("T")

MANY = 64
"""Tasks into which a command is cut if it can be, so that any number of threads finds its share."""

_ALIGNMENT = 64

SMALL = 4096
"""Bytes of a task below which starting it takes longer."""

KNOWN = frozenset({MODEL, CONSTANTS, WEIGHTS, SCRATCH, KERNELS, BLOCKS})
"""The bases of what is there before the first run."""


class Step(NamedTuple):
    """A command, for people: its kernel, those that this one calls, and the kernel of the graph that it is for.

    What draws the border of an image is for none; its ``node`` is of the kind ``border``, the border its settings. A
    jump has no kernel; its ``node`` is of the kind ``jump``, a `Jump` its settings, and the flag its operand, if it has
    one.
    """

    kernel: str
    calls: tuple[str, ...]
    node: Kernel


class NotAtHand(CompileError):
    """No kernel that would do is at hand, and none can be compiled. ``kind``: that of the kernel of the graph."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not at hand.")
        self.name = name
        self.kind = ""


class Build:
    """Commands in the making. Everything that a module of this package needs to know of target and memory.

    ``at_hand`` tells of a kernel's name whether it is there; without it, all are, as they can be compiled. Then kernels
    that are not give way to more general ones (`KernelSpec.general`), and kernels of the graph to their parts
    (`gossamer.codegen.split`).
    """

    def __init__(
        self, target: Target, layout: Layout, model: tuple[int, int] | None, at_hand: AtHand | None = None
    ) -> None:
        self._at_hand = at_hand
        self._chosen: dict[KernelSpec, KernelSpec | None] = {}
        self.target = target.plain
        self.dots = target.exact.without_tiles
        """What kernels are made for that have dot products or permutations of bytes; ``target`` is it for all others.
        """
        self.extended = target.exact
        """With all that it has: what kernels are made for that have tiles of bytes, if it has them."""
        self.bf16 = target if target.bf16 and at_hand is None else None
        """What kernels are made for that multiply bfloat16 in the place of float32, if that is allowed; none ship."""
        self.layout = layout
        self.specs: dict[str, KernelSpec] = {}
        self.steps: list[Step] = []
        self.pieces: list[tuple[int, NDArray[Any]]] = []
        self.constant_bytes = 0
        self.by_channel: set[Buffer] = set()
        """Images of which threads have written some channels each, not some rows. What one thread writes another should
        not read if it need not: a line that another has read takes 8 to 35 ns to write again (Zen 4), else 0.6."""

        self.is_alone = False
        """Whether commands are those of one thread, for which others wait."""

        self.is_repeated = False
        """Whether commands are those of a loop."""

        self.goes_back: bool | None = None
        """Whether weights are read from the last panel to the first; ``None``: nobody has asked in this loop."""

        self._model = model
        self._builder = ProgramBuilder()
        self._weights = 0
        self._computed = 0
        self._scratch = 0
        self._passing = 0
        self._held = 0
        """Bytes of passing memory that lie between the parts of a kernel of the graph."""
        self._blocks: dict[tuple[Word, ...], Address] = {}
        """Of the kernel of the graph whose commands are made: what one is told does not depend on others."""
        self._tables: dict[int, tuple[Word, ...]] = {}
        self._packing: list[tuple[str, Address]] = []
        self._kept: dict[bytes, Address] = {}
        self._node: Kernel | None = None
        self._called: list[str] = []
        self._packed: dict[Any, Address] = {}
        self._alike: dict[Any, Any] = {}
        self._may_fault = False
        self._is_known = ""
        """The base that the commands of what is known fill; empty for all others."""

    def address(self, view: View) -> Address:
        """Where the first element of a view is."""
        self.place(view.buffer)
        return self.layout.address(view)

    def place(self, buffer: Buffer) -> Place:
        """Where a buffer is. Constants get their place when somebody asks."""
        place = self.layout.places.get(buffer)
        if place is None:
            place = self.layout.places[buffer] = self._constant(buffer)
        return place

    def aligned(self, view: View) -> Address:
        """Where a small constant is, at the start of a line: a copy if the file has it elsewhere.

        Vectors that lie across two lines cost a depthwise kernel 10 to 15 %.
        """
        address = self.address(view)
        return self.at_line(address, view.buffer) if view.is_whole else address

    def at_line(self, address: Address, buffer: Buffer) -> Address:
        """The same of a buffer that lies at this address."""
        if address.base != MODEL or self._model is None or (self._model[0] + address.offset) % _ALIGNMENT == 0:
            return address
        return address if buffer.array is None else self.constant(buffer.array)

    def strides(self, view: View) -> tuple[int, ...]:
        """Bytes between elements along each dimension."""
        self.place(view.buffer)
        return self.layout.strides(view)

    def planned_strides(self, view: View) -> tuple[int, ...]:
        """The same, also of a buffer that has no place yet, where it will be dense."""
        if view.buffer in self.layout.places:
            return self.layout.strides(view)
        size = item_bytes(view.buffer)
        return tuple([stride * size for stride in view.strides])

    def border(self, view: View) -> Border:
        """What is stored around a view of a whole image."""
        return self.layout.border(view)

    def kernel(self, spec: KernelSpec) -> Address:
        """A kernel whose address the kernel of the next command is given."""
        name = self._use(spec)
        self._called.append(name)
        return self._builder.kernel(name)

    def block(self, layout: ArgumentBlock, /, **arguments: Word) -> Address:
        """An argument block, or a row of a table; equal ones of a kernel of the graph are one."""
        return self.table(layout.filled(arguments))

    def table(self, words: Sequence[Word]) -> Address:
        """Words that a kernel reads."""
        words = tuple(words)
        known = self._blocks.get(words)
        if known is None:
            known = self._blocks[words] = self._builder.block(words)
            self._tables[known.offset] = words
        return known

    def table_of(self, make: Callable[..., Sequence[Word]], *parts: Any) -> Address:
        """The words that a function makes of these, of which sizes may decide how many there are."""
        return self.table(make(*parts))

    def command(self, spec: KernelSpec, /, *, barrier: bool = True, **arguments: Word) -> None:
        """Run a kernel in every run. Without a barrier, the next may begin while threads are still at this one."""
        name, block = self._use(spec), self.table(spec.arguments.filled(arguments))
        if self._is_known:
            if self._is_known == COMPUTED:
                self._builder.compute(name, block)
            else:
                self._builder.pack(name, block, barrier=True)
                self._packing.append((name, block))
            self._called.clear()
            return
        self._builder.command(name, block, barrier=barrier)
        if self._node is not None:
            self.steps.append(Step(name, tuple(dict.fromkeys(self._called)), self._node))
        self._called.clear()

    def repeat(
        self,
        spec: KernelSpec,
        over: Sequence[tuple[int, ...]],
        pointers: Sequence[str],
        /,
        *,
        barrier: bool = True,
        **arguments: Word,
    ) -> None:
        """Run a kernel for each index of outer dimensions: (size, bytes by which each of the pointers moves) each."""
        if not over:
            self.command(spec, barrier=barrier, **arguments)
            return
        names = [argument.name for argument in spec.arguments]
        self.command(
            Repeat(self.target.name),
            barrier=barrier,
            kernel=self.kernel(spec),
            block=self.block(spec.arguments, **arguments),
            words=len(spec.arguments),
            turns=prod(size for size, *_ in over),
            dimensions=len(over),
            table=self.table([word for dimension in reversed(over) for word in dimension]),
            pointers=len(pointers),
            positions=self.table([names.index(name) for name in pointers]),
        )

    def pack(self, spec: KernelSpec, /, reads: int = 0, **arguments: Word) -> None:
        """Run a kernel once, before the first run. ``reads``: bytes from ``source`` on that nobody reads again, if that
        is in the model file. Raises `CompileError` for an address of what only a run computes, or is given."""
        self._pack(spec, arguments, reads, waits=False)

    def repack(self, spec: KernelSpec, /, **arguments: Word) -> None:
        """The same, when threads have packed what is packed before, which the kernel reads."""
        self._pack(spec, arguments, 0, waits=True)

    def _pack(self, spec: KernelSpec, arguments: Mapping[str, Word], reads: int, *, waits: bool) -> None:
        for name, word in arguments.items():
            if isinstance(word, Address) and word.base not in KNOWN:
                raise CompileError(f"{spec.name} packs, but {name} is in {word.base}, which is only known in a run.")
        source = arguments.get("source")
        gone = (source, reads) if isinstance(source, Address) and source.base == MODEL and reads else None
        name, block = self._use(spec), self.table(spec.arguments.filled(arguments))
        self._builder.pack(name, block, reads=gone, waits=waits)
        self._packing.append((name, block))
        if any(isinstance(word, Address) and word.base == KERNELS for word in arguments.values()):
            self._called.clear()

    def packed(self, key: Any) -> Address | None:
        """What has been packed under this key."""
        return self._packed.get(key)

    def weights(self, bytes: int, key: Any = None) -> Address:
        """Memory that is filled once, by ``pack``; others find it under ``key``."""
        address = Address(WEIGHTS, self._weights)
        self._weights += -(-bytes // _ALIGNMENT) * _ALIGNMENT
        if key is not None:
            self._packed[key] = address
        return address

    def computed(self, bytes: int) -> Address:
        """Memory that is filled once, by commands of what is known."""
        address = Address(COMPUTED, self._computed)
        self._computed += -(-bytes // _ALIGNMENT) * _ALIGNMENT
        return address

    def passing(self, bytes: int) -> Address:
        """Memory for what one command writes and the next reads; the commands after that may overwrite it."""
        self._passing = max(self._passing, self._held + bytes)
        return Address(ARENA, self.layout.arena_bytes + self._held)

    def scratch(self, bytes: int) -> int:
        """Reserve memory that every thread has for itself during a command; where it lies behind another's."""
        self._scratch = max(self._scratch, -(-bytes // _ALIGNMENT) * _ALIGNMENT)
        return self._scratch

    def constant(self, value: NDArray[Any]) -> Address:
        """A value that kernels read; equal ones are one."""
        return self.kept(value.tobytes(), value)

    def kept(self, content: bytes, value: NDArray[Any]) -> Address:
        """The same of a value whose bytes are these."""
        known = self._kept.get(content)
        if known is None:
            known = self._kept[content] = Address(CONSTANTS, self.constant_bytes)
            self.pieces.append((self.constant_bytes, np.ascontiguousarray(value)))
            self.constant_bytes += -(-max(len(content), 1) // _ALIGNMENT) * _ALIGNMENT
        return known

    def fault(self) -> Address:
        """The word that a kernel sets which meets an index out of range, or a divisor of 0."""
        self._may_fault = True
        return Address(FAULT)

    def aimed(self, buffer: Buffer, of: Address) -> Address:
        """Let a buffer lie where the next command tells, from ``of`` on; the table of who has to be told."""
        base = self.layout.places[buffer].base = f"aimed{self.next_command}"
        return self._builder.aimed(base, of)

    def alike(self, key: Any, make: Callable[[], T]) -> T:
        """What is the same for all kernels of the graph of which ``key`` is, wherever anything lies."""
        if key not in self._alike:
            before = len(self._called)
            made = make()
            self._alike[key] = made, self._called[before:]
            return made
        known: T
        known, called = self._alike[key]
        self._called += called
        return known

    def number(self, value: float) -> Address:
        """A float that kernels read."""
        return self.constant(np.array(value, np.float32))

    @property
    def next_command(self) -> int:
        """The number of the next command."""
        return self._builder.next_command

    def jump(self, kind: Jump, flag: View | None = None, *, target: int = -1, cost: int = 0) -> int:
        """See `ProgramBuilder.jump`."""
        node = self._node
        if node is not None:
            y, operands = node.y, [] if flag is None else [flag]
            self.steps.append(Step("", (), Kernel("jump", operands, y, kind, origin=node.origin)))
        place = None if flag is None else self.address(flag)
        return self._builder.jump(kind, place, target=target, cost=cost)

    def land(self, jump: int) -> None:
        """See `ProgramBuilder.land`."""
        self._builder.land(jump)

    def emit(self, graph: KernelGraph) -> ProgramPlan:
        """The plan of all kernels in order."""
        self.region(graph)
        return self.planned()

    def planned(self) -> ProgramPlan:
        """The plan of all commands that have been made."""
        return self._builder.plan(self._checksum_of_packing(), **self.sizes())

    def sizes(self) -> dict[str, int]:
        """Bytes of each memory that the program owns."""
        sizes = {ARENA: self.layout.arena_bytes + self._passing, WEIGHTS: self._weights}
        if self._computed:
            sizes[COMPUTED] = self._computed
        if self._scratch:
            sizes[SCRATCH] = self._scratch
        if self._may_fault:
            sizes[FAULT] = 8
        return sizes

    def _checksum_of_packing(self) -> int:
        """Of the kernels that fill ``weights`` and all that they read, less the model: see `ProgramPlan.packs`."""
        starts = [offset for offset, _ in self.pieces]
        kernels = tuple(self._builder.kernels)

        def meant(word: Word) -> Any:
            if not isinstance(word, Address):
                return word
            if word.base == BLOCKS:
                return [meant(inner) for inner in self._tables[word.offset]]
            if word.base == KERNELS:
                return kernels[word.offset]
            if word.base == CONSTANTS:
                start, value = self.pieces[bisect(starts, word.offset) - 1]
                return [word.offset - start, crc32(value.tobytes())]
            return tuple(word)

        return crc32(marshal.dumps([(name, meant(block)) for name, block in self._packing], 2))

    def region(self, graph: KernelGraph) -> None:
        """The commands of a graph, or of a part of it."""
        around = self._node
        drawn: set[int] = set()
        for node in graph.kernels:
            buffer = node.y.buffer
            self._is_known = base_of_known(node, self.layout) if id(buffer) in self.layout.known else ""
            if self._is_known and buffer in self.layout.places:
                continue  # computed for the turn before
            if self._is_known:
                size = item_bytes(buffer) * prod(buffer.shape)
                self.layout.places[buffer] = Place(*self.of_known(size), dense_bytes(buffer), size)
            elif id(buffer) not in drawn:
                drawn.add(id(buffer))
                place = self.layout.places[buffer]
                if is_bordered(place.border):
                    self._node = Kernel("border", [], buffer.view(), place.border, origin=node.origin)
                    self._draw_border(buffer, place)
            self._blocks.clear()
            self.run(node)
        self._node, self._is_known = around, ""

    def of_known(self, bytes: int) -> Address:
        """Memory for what the kernel computes that runs once."""
        return self.computed(bytes) if self._is_known == COMPUTED else self.weights(bytes)

    def run(self, node: Kernel) -> None:
        """The commands of a kernel; of its parts, if it has kernels that are not at hand."""
        self._node = node
        mark = self._mark() if self._at_hand is not None else None
        try:
            import_module(f"gossamer.codegen.commands.{node.kind}").commands(node, self)
        except NotAtHand as missing:
            parts = split(node, self._has_kernel_of)
            if not parts or mark is None:
                missing.kind = missing.kind or node.kind
                raise
            self._reset(mark)
            self._run_parts(parts)

    def _has_kernel_of(self, map: Kernel) -> bool:
        """Whether there is a kernel for a map, between tensors of which some have no place yet."""
        return self.has(import_module("gossamer.codegen.commands.map").spec_of(map, self))

    def _run_parts(self, parts: Iterable[Kernel]) -> None:
        """The commands of the parts of a kernel, with places for what is between them."""
        held = self._held
        for part in parts:
            buffer = part.y.buffer
            if buffer not in self.layout.places:
                bytes = item_bytes(buffer) * prod(buffer.shape)
                self.layout.places[buffer] = Place(*self.held(bytes), dense_bytes(buffer), bytes)
            self.run(part)
        self._held = held

    def held(self, bytes: int) -> Address:
        """Memory for what is between the parts of a kernel."""
        if self._is_known:
            return self.of_known(bytes)
        address = self.passing(bytes)
        self._held += -(-bytes // _ALIGNMENT) * _ALIGNMENT
        return address

    def _mark(self) -> tuple[Any, ...]:
        """Where things stand, for `_reset`."""
        grown = (*self._dictionaries(), self.steps, self.pieces, self._packing)
        numbers = (
            *(self.constant_bytes, self._weights, self._computed),
            *(self._scratch, self._passing, self._held, self._may_fault),
        )
        return self._builder.mark(), [len(one) for one in grown], numbers

    def _dictionaries(self) -> tuple[dict[Any, Any], ...]:
        return (self._tables, self._packed, self._kept, self._alike, self.specs, self.layout.places)

    def _reset(self, mark: tuple[Any, ...]) -> None:
        """Forget what has come since."""
        of_builder, sizes, numbers = mark
        self._builder.reset(of_builder)
        *of_dictionaries, steps, pieces, packing = sizes
        for one, size in zip(self._dictionaries(), of_dictionaries, strict=True):
            while len(one) > size:
                one.popitem()
        del self.steps[steps:], self.pieces[pieces:], self._packing[packing:]
        self.constant_bytes, self._weights, self._computed, *others = numbers
        self._scratch, self._passing, self._held, self._may_fault = others
        self._called.clear()
        self._blocks.clear()

    def constants(self) -> NDArray[np.uint8]:
        """The bytes behind the base ``constants``."""
        memory = np.zeros(self.constant_bytes, np.uint8)
        for offset, value in self.pieces:
            memory[offset : offset + value.nbytes] = value.reshape(-1).view(np.uint8)
        return memory

    def has(self, *specs: KernelSpec) -> bool:
        """Whether kernels that do what these do are at hand, or can be compiled."""
        return self._at_hand is None or all(self._choose(spec) is not None for spec in specs)

    def first(self, choices: Iterable[T], kernels: Callable[[T], Iterable[KernelSpec]]) -> T:
        """The first choice whose kernels are at hand; if there is none, the first of all."""
        rest = iter(choices)
        best = next(rest)
        if self._at_hand is None:  # and no others are looked for
            return best
        return next((choice for choice in chain([best], rest) if self.has(*kernels(choice))), best)

    def _choose(self, spec: KernelSpec) -> KernelSpec | None:
        if self._at_hand is None:
            return spec
        if spec not in self._chosen:
            candidates = (spec, *spec.general())
            self._chosen[spec] = next((one for one in candidates if self._at_hand(one.name)), None)
        return self._chosen[spec]

    def _use(self, spec: KernelSpec) -> str:
        chosen = self._choose(spec)
        if chosen is None:
            raise NotAtHand(spec.name)
        name = chosen.name
        self.specs[name] = chosen
        return name

    def _constant(self, buffer: Buffer) -> Place:
        array = buffer.memory
        if array is None:
            raise ValueError(f"a buffer {list(buffer.shape)} that no kernel writes")
        place = self.stored(buffer)
        if place is not None:
            return place
        address = self.constant(np.asarray(buffer.array))
        return Place(address.base, address.offset, dense_bytes(buffer), array.nbytes)

    def stored(self, buffer: Buffer) -> Place | None:
        """Where a constant is in the model file; ``None`` if kernels cannot read it there."""
        array, size = buffer.memory, item_bytes(buffer)
        if array is not None and self._model is not None and array.flags.c_contiguous and array.nbytes:
            start = array.ctypes.data
            if self._model[0] <= start and start + array.nbytes <= self._model[1] and start % size == 0:
                return Place(MODEL, start - self._model[0], dense_bytes(buffer), array.nbytes)
        return None

    def _draw_border(self, buffer: Buffer, place: Place) -> None:
        from gossamer.codegen.kernels.move import Border as DrawBorder

        top, bottom, left, right = place.border
        image, row, column = place.strides[:3]
        self.command(
            DrawBorder(self.target.name),
            barrier=False,
            y=Address(place.base, place.offset - top * row - left * column),
            images=buffer.shape[0],
            image=image,
            rows=buffer.shape[1],
            row=row,
            top=top * row,
            bottom=bottom * row,
            left=left * column,
            right=right * column,
            value=place.fill,
        )


def base_of_known(node: Kernel, layout: Layout) -> str:
    """Where what a kernel makes of constants is kept: among the weights, which all shapes share, if it does not depend
    on these."""
    return COMPUTED if any(is_of_shape(view.buffer, layout) for view in node.operands) else WEIGHTS


def is_of_shape(buffer: Buffer, layout: Layout) -> bool:
    """Whether what is known of a buffer may depend on shapes."""
    place = layout.places.get(buffer)
    return is_derived(buffer) or (place is not None and place.base == COMPUTED)


def dense_bytes(buffer: Buffer) -> tuple[int, ...]:
    """The strides of a buffer that lies dense."""
    size = item_bytes(buffer)
    return tuple([stride * size for stride in dense_strides(buffer.shape)])


def blocks_of(count: int, others: int, multiple: int = 64) -> tuple[int, int]:
    """Elements of a block, and blocks, when ``others`` x blocks tasks are shared: more blocks if there are few others.

    Depends on the shape alone, so that results do not depend on the number of threads.
    """
    if others >= MANY or count <= multiple:
        return max(count, 1), 1 if count else 0
    wanted = -(-MANY // max(others, 1))
    block = max(multiple, -(-count // wanted))
    block = -(-block // multiple) * multiple
    return block, -(-count // block)


def columns_of(count: int, size: int) -> int:
    """How many of ``count`` runs of ``size`` bytes, which are a single dimension, a task has: one of its divisors.

    Tasks are worth their start, which takes as long as four short runs, and there are enough for any number of threads.
    """
    return computed(_columns, count, size)


def _columns(count: int, size: int) -> int:
    most = max(1, count // MANY, SMALL // max(size, 1))
    return next(divisor for divisor in range(min(most, count), 0, -1) if count % divisor == 0)
