"""Products of bytes whose image is widened to 16 bits before, where that suits (`gossamer.codegen.kernels.widen`).

Where bytes are multiplied in pairs of 16 bits, rows of pixels are widened before their products. A convolution with few
filters does little else: neighbouring pixels have most of their bytes in common, and each would widen its own.
"""

from __future__ import annotations

from gossamer.codegen.commands.byte_products import ByteContraction
from gossamer.codegen.dots import crosses
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_contract import STEP
from gossamer.codegen.kernels.widen import Widen
from gossamer.codegen.tiles import Tile, widened_rows
from gossamer.programs.program import Address
from gossamer.sizes import computed, settled

MOST_BYTES = 512 << 10
"""Of the image: it is written once more, with twice the bytes."""


def suits(product: ByteContraction) -> bool:
    """Whether a product is quicker so: all channels are a vector, and every byte belongs to two pixels or more.

    With two vectors, half of the multiplications (`inner_products`) save as much as rows cost that are widened.
    """
    weights = product.weights
    if not crosses(product.build.dots) or product.output is not Requantized or product.weight_zero:
        return False
    if weights.image or not weights.is_constant or product.depth < STEP or len(product.offsets) == 1:
        return False
    bytes = span(product)
    if weights.channels > product.build.dots.lanes() or bytes > MOST_BYTES:
        return False
    return 2 * bytes <= product.images * product.rows * product.columns * weights.depth


def span(product: ByteContraction) -> int:
    """Bytes from the first that a product reads to the last."""
    counts = (product.images, product.rows, product.columns)
    steps = sum((count - 1) * step for count, step in zip(counts, product.a_steps, strict=True))
    return steps + product.offsets[-1] + product.depth


class WidenedProducts(ByteContraction):
    """The same product of an image that is widened before."""

    is_widened = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bytes, self._narrow = span(self), self.a.start
        self.a = self.a._replace(start=self.build.passing(2 * self._bytes))
        self.a_steps = tuple(2 * step for step in self.a_steps)
        self.table = [2 * offset for offset in self.table]

    def _tile(self) -> tuple[Tile, bool]:
        return (settled(computed(widened_rows, self.columns)), 1), True

    @property
    def is_at_hand(self) -> bool:
        """Whether its kernels are."""
        return self.build.has(self._widen, *self._kernels(((self.mr, self.nv), self._may_stream)))

    @property
    def _widen(self) -> Widen:
        return Widen(self.build.dots.name, self.type)

    @property
    def _by_sign(self) -> bool:
        return False

    def multiply(self, place: Address | None = None, barrier: bool = True) -> None:
        """Two commands."""
        self.build.command(self._widen, x=self._narrow, y=self.a.start, count=self._bytes)
        super().multiply(place, barrier)
