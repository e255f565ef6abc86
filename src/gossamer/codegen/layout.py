"""Where buffers lie: strides in bytes, borders of images, offsets in the arena."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from gossamer.codegen import aims
from gossamer.codegen.graph import LOOP, KernelGraph
from gossamer.dtypes import element_bits
from gossamer.programs.program import ARENA, Address
from gossamer.records import record
from gossamer.views import Buffer, Shape, View, dense_strides

ALIGNMENT = 64

Border = tuple[int, int, int, int]
"""Elements of padding that are stored around an NHWC image: top, bottom, left, right."""

NO_BORDER: Border = (0, 0, 0, 0)


@record(eq=False, slots=True)
class Place:
    """A buffer in memory: a base and an offset in bytes of its first element, strides in bytes, its border."""

    base: str
    offset: int
    strides: Shape
    bytes: int
    border: Border = NO_BORDER
    spread: bool = False
    """There is something between its elements: a border, or a gap behind each pixel."""
    fill: int = 0
    """The byte that the border consists of."""

    @property
    def inside(self) -> int:
        """Bytes from where the border begins to the image."""
        top, _, left, _ = self.border
        return top * self.strides[1] + left * self.strides[2] if is_bordered(self.border) else 0


def is_bordered(border: Border) -> bool:
    """Whether there is one: how much of it is on which side often depends on sizes, this hardly ever."""
    return sum(border) > 0


class Layout:
    """The places of all buffers of a graph that is not changed any more. ``known``: see `KernelGraph.known`."""

    def __init__(self, known: set[int]) -> None:
        self.known = known
        self.places: dict[Buffer, Place] = {}
        self.arena_bytes = 0
        self.aimed: Collection[Buffer] = ()
        """Those that a command tells in every turn where they lie (`gossamer.codegen.aims`)."""

    def border(self, view: View) -> Border:
        """What is stored around a view of a whole image."""
        return self.places[view.buffer].border

    def address(self, view: View) -> Address:
        """Where the first element of a view is."""
        place = self.places[view.buffer]
        if view.offset == 0:
            return Address(place.base, place.offset)
        offset, rest = place.offset, view.offset
        for dense, stride in zip(dense_strides(view.buffer.shape), place.strides, strict=True):
            steps, rest = divmod(rest, dense)
            offset += steps * stride
        return Address(place.base, offset)

    def strides(self, view: View) -> Shape:
        """Bytes between elements along each dimension of a view."""
        place = self.places[view.buffer]
        if not place.spread:
            size = item_bytes(view.buffer)
            return tuple([stride * size for stride in view.strides])
        # A buffer that is spread out is only seen in its own dimensions. Beside a single element there is its border.
        return place.strides


def item_bytes(buffer: Buffer) -> int:
    """Bytes of an element."""
    return element_bits(buffer.type) >> 3


def is_box(view: View) -> bool:
    """Whether a view takes a run of elements along each dimension of its buffer: what a border does not disturb."""
    shape = view.buffer.shape
    if len(view.shape) != len(shape):
        return False
    strides = dense_strides(shape)
    # Strides come first: axes of the same length are hardly ever as far apart, whatever open sizes become.
    if view.strides == strides and view.shape == shape:
        return True
    if any(size > 1 and stride != dense for size, stride, dense in zip(view.shape, view.strides, strides, strict=True)):
        return False
    rest = view.offset
    for size, extent, dense in zip(view.shape, shape, strides, strict=True):
        start, rest = divmod(rest, dense)
        # As (1, 1, 56, 3), an (8, 7, 3) image has the same strides.
        if start + size > extent:
            return False
    return True


def lay_out(
    graph: KernelGraph,
    borders: dict[Buffer, Border],
    gaps: Collection[Buffer] = (),
    fills: Mapping[Buffer, int] | None = None,
) -> Layout:
    """Places for every buffer that kernels write, and for those of the boundary. Constants get theirs as they are met,
    and so does what is computed of them alone.

    ``gaps`` are images whose pixels are kept a little apart (`gossamer.codegen.passes.gaps`); ``fills`` are bytes that
    borders consist of where these are not 0.

    Buffers that are never alive together share memory: the largest first, each as low as it can.
    """
    layout, lives = spread_out(graph, borders, gaps, fills)
    offsets, layout.arena_bytes = pack([(layout.places[buffer].bytes, first, last) for buffer, first, last in lives])
    for (buffer, _, _), offset in zip(lives, offsets, strict=True):
        place = layout.places[buffer]
        place.offset = offset
        place.offset += place.inside
    return layout


def spread_out(
    graph: KernelGraph,
    borders: dict[Buffer, Border],
    gaps: Collection[Buffer] = (),
    fills: Mapping[Buffer, int] | None = None,
) -> tuple[Layout, list[tuple[Buffer, int, int]]]:
    """The same before there are offsets: the buffers that share memory, with the first and last command of each."""
    # Where constants lie there are no borders.
    layout = Layout(known=set[int]().union(*(part.known(but=borders) for part in graph.parts())))
    inner: list[tuple[Buffer, int, int]] = []
    for buffer, (first, last) in _lives(graph, layout.known).items():
        border = borders.get(buffer, NO_BORDER)
        place = layout.places[buffer] = _place(buffer, border, ALIGNMENT if buffer in gaps else 0)
        place.fill = (fills or {}).get(buffer, 0)
        if buffer.tensor >= 0:
            place.base = boundary(buffer.tensor)
        else:
            inner.append((buffer, first, last))
    layout.aimed = aims.run(graph, layout.known, {buffer for buffer, place in layout.places.items() if place.spread})
    return layout, [life for life in inner if life[0] not in layout.aimed]


def _lives(graph: KernelGraph, known: set[int]) -> dict[Buffer, list[int]]:
    """By buffer, the first and the last command that has to do with it.

    What a loop writes is alive in all of it: of several turns, each may write a part. A loop reads what is outside
    until its last turn ends: it is among the loop's own operands, which follow what is
    inside. The flag of a loop is alive in all of a turn, and that of a loop or a branch in the command behind it: one
    thread may already be there while another has yet to look where it goes on.
    """
    lives: dict[Buffer, list[int]] = {}
    commands = count()

    def touch(views: Iterable[View]) -> None:
        number = next(commands)
        for view in views:
            if id(view.buffer) not in known:
                lives.setdefault(view.buffer, [number, number])[1] = number

    def visit(part: KernelGraph) -> list[View]:
        """The flags that may be read after the part."""
        late: list[View] = []
        for kernel in part.kernels:
            if id(kernel.y.buffer) in known:
                continue  # no run has a command for it
            flag = kernel.operands[:1] if kernel.regions else []
            touch((*flag, *kernel.results) if kernel.kind == LOOP else flag)
            inside = [view for region in kernel.regions for view in visit(region)]
            touch((*kernel.operands, *kernel.results, *late, *inside))
            late = [*flag, *inside]
        return late

    visit(graph)
    return lives


def boundary(tensor: int) -> str:
    """The base of a tensor of the graph."""
    return f"tensor{tensor}"


def _place(buffer: Buffer, border: Border, gap: int) -> Place:
    size = item_bytes(buffer)
    shape = list(buffer.shape)
    if gap:
        shape[3] += gap // size
    if is_bordered(border):
        shape[1] += border[0] + border[1]
        shape[2] += border[2] + border[3]
    strides = tuple([stride * size for stride in dense_strides(tuple(shape))])
    count = size
    for extent in shape:
        count *= extent
    return Place(ARENA, 0, strides, count, border, bool(gap) or is_bordered(border))


def pack(lives: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets for buffers of which bytes and the first and last command are told, and where the last of them ends."""
    offsets, end_of_all = [0] * len(lives), 0
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last; by offset
    for at in sorted(range(len(lives)), key=lambda at: -lives[at][0]):
        bytes, first, last = lives[at]
        size = -(-bytes // ALIGNMENT) * ALIGNMENT
        offset = 0
        for start, end, begins, ends in placed:
            if ends < first or begins > last:
                continue
            if offset + size <= start:
                break
            if end > offset:
                offset = end
        offsets[at] = offset
        insort(placed, (offset, offset + size, first, last))
        end_of_all = max(end_of_all, offset + size)
    return offsets, end_of_all


def merged(shapes: Shape, *strides: Shape) -> list[tuple[int, ...]]:
    """Dimensions as (size, stride of each view): no size 1, and neighbours joined wherever all views allow it."""
    result: list[tuple[int, ...]] = []
    for dimension in zip(shapes, *strides, strict=True):
        if dimension[0] == 1:
            continue
        if result:
            outer = result[-1]
            if all(o == dimension[0] * s for o, s in zip(outer[1:], dimension[1:], strict=True)):
                result[-1] = (outer[0] * dimension[0], *dimension[1:])
                continue
        result.append(dimension)
    return result
