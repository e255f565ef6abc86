"""Pictures into tensors: size, channels and numbers as the input of a model asks for them.

Numbers. A uint8 input takes the pixels as they are, an int8 input takes pixel - 128: whatever its scale says, the
converter chose it so that the range of the integers is the range of the pixels. A float input takes (pixel - mean) /
std with the mean and std of the model's metadata, else 127.5 and 127.5, which gives -1 to 1. Integer inputs are
quantized from such numbers when mean and std are given on the command line, when metadata give them for an int8 or
int16 input, and for quantized inputs of other types.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.port import Port
from gossamer.records import field, record

if TYPE_CHECKING:
    from PIL.Image import Image

RESAMPLERS = ("bicubic", "bilinear", "nearest", "lanczos", "box")
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")

Normalization = tuple[Sequence[float], Sequence[float]]
"""Mean and std: one value each, or one for each channel."""


@record(frozen=True)
class Options:
    """How a picture becomes a tensor. ``asked`` comes from the command line, ``stored``, by input, from the model."""

    letterbox: bool = False
    resample: str = "bicubic"
    asked: Normalization | None = None
    stored: Mapping[int, Normalization] = field(default_factory=dict)


@record(frozen=True)
class Layout:
    """Which pictures an input takes: its size in pixels (0: any), its channels, and the axes of the three."""

    height: int
    width: int
    channels: int
    axes: tuple[int, int, int | None]

    @staticmethod
    def of(port: Port) -> Layout | None:
        """The layout of an input [1, H, W, C], [1, C, H, W], [H, W, C], [C, H, W], [1, H, W] or [H, W], else ``None``.

        C is 1, 3 or 4; a leading 1 may be a free dimension.
        """
        sizes = [0 if known < 0 else size for size, known in zip(port.shape, port.signature, strict=True)]
        rank, batch = len(sizes), bool(sizes) and sizes[0] in (0, 1)
        if (rank == 3 and batch) or (rank == 2 and min(sizes) > 1):
            return Layout(sizes[-2], sizes[-1], 1, (rank - 2, rank - 1, None))
        if rank != 3 and not (rank == 4 and batch):
            return None
        first = rank - 3
        # Four channels are so rare that a 4 is rather the width or height of a tiny picture.
        for channels in ((1, 3), (4,)):
            if sizes[-1] in channels:
                return Layout(sizes[-3], sizes[-2], sizes[-1], (first, first + 1, first + 2))
            if sizes[first] in channels:
                return Layout(sizes[-2], sizes[-1], sizes[first], (first + 1, first + 2, first))
        return None

    def tensor(self, values: NDArray[Any], rank: int) -> NDArray[Any]:
        """Values [H, W, C] in the order and rank of the input."""
        rows, columns, channels = self.axes
        shape = [1] * rank
        shape[rows], shape[columns] = values.shape[:2]
        if channels is not None:
            shape[channels] = values.shape[2]
            if channels < rows:
                values = values.transpose(2, 0, 1)
        return np.ascontiguousarray(values).reshape(shape)


@record(frozen=True)
class Picture:
    """A picture and where it lies in the input of the model: a rectangle in the input's pixels."""

    path: str
    image: Image
    input_width: int
    input_height: int
    left: float
    top: float
    width: float
    height: float

    def to_pixels(self, x: float, y: float) -> tuple[float, float]:
        """From coordinates in the input, 0 to 1, to pixels of the picture."""
        return (
            (x * self.input_width - self.left) / self.width * self.image.width,
            (y * self.input_height - self.top) / self.height * self.image.height,
        )


def read_picture(path: str, port: Port, options: Options, content: bytes | None = None) -> tuple[Picture, NDArray[Any]]:
    """The picture in a file and the tensor made of it; ``content``: what the file would hold, which ``path`` then
    only names. Raises `InputError` if it is no picture or fits no input."""
    layout = Layout.of(port)
    if layout is None:
        raise InputError(f"{path}: a picture does not fit the input {port.describe()}; give a .npy file of that shape.")
    # Read at once: Pillow would read in many small pieces.
    image = _open(path, _content(path) if content is None else content)
    source = _in_mode(image, {1: "L", 4: "RGBA"}.get(layout.channels, "RGB"))
    width, height = layout.width or image.width, layout.height or image.height
    shown_width, shown_height = width, height
    if options.letterbox:
        factor = min(width / image.width, height / image.height)
        shown_width, shown_height = max(1, round(image.width * factor)), max(1, round(image.height * factor))
    left, top = (width - shown_width) // 2, (height - shown_height) // 2
    pixels = _resized(source, shown_width, shown_height, options.resample)
    if pixels.shape[:2] != (height, width):
        margins = (top, height - top - shown_height), (left, width - left - shown_width), (0, 0)
        pixels = np.pad(pixels, margins)
    values = layout.tensor(to_numbers(pixels, port, options), len(port.shape))
    picture = Picture(path, _in_mode(image, "RGB"), width, height, left, top, shown_width, shown_height)
    return picture, values


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _in_mode(image: Image, mode: str) -> Image:
    return image if image.mode == mode else image.convert(mode)


def _open(path: str, content: bytes) -> Image:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise InputError(f"{path}: pictures need Pillow; install gossamer[image].") from None
    try:
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
    except UnidentifiedImageError:
        raise InputError(f"{path}: not a picture that Pillow can read.") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: damaged picture ({error}).") from None
    if image.mode.startswith("I"):
        # 16 bits a pixel: Pillow would clip where the upper byte is meant.
        return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if "A" in image.mode or "transparency" in image.info:
        page = Image.new("RGBA", image.size, "white")
        page.alpha_composite(image.convert("RGBA"))
        return page
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _resized(image: Image, width: int, height: int, resample: str) -> NDArray[np.uint8]:
    from PIL import Image

    if resample == "nearest":
        # As TFLite's RESIZE_NEAREST_NEIGHBOR: the pixel at floor(y * height / new height).
        pixels = np.asarray(image)
        rows, columns = np.arange(height) * image.height // height, np.arange(width) * image.width // width
        pixels = pixels[rows][:, columns]
    else:
        pixels = np.asarray(image.resize((width, height), Image.Resampling[resample.upper()]))
    return pixels.reshape(height, width, -1)


def to_numbers(pixels: NDArray[np.uint8], port: Port, options: Options) -> NDArray[Any]:
    """Pixels [H, W, C] in the numbers of an input, by the rules above."""
    dtype = port.dtype
    if dtype.kind == "b":
        return pixels >= 128
    stored = options.stored.get(port.position)
    if port.is_float:
        return _normalized(pixels, options.asked or stored or ([127.5], [127.5])).astype(dtype)
    if dtype.kind not in "iu":
        raise InputError(f"a picture cannot fill the input {port.describe()}: it must be a number type.")
    normalization = options.asked or (stored if dtype.kind == "i" else None)
    if port.is_quantized and (normalization or dtype.itemsize > 1):
        return _quantized(pixels, port, normalization or ([127.5], [127.5]))
    if dtype == np.int8:
        return (pixels ^ 128).view(np.int8)  # the same bits as pixel - 128
    return pixels.astype(dtype)


def _quantized(pixels: NDArray[np.uint8], port: Port, normalization: Normalization) -> NDArray[Any]:
    """A pixel has one of 256 values: what becomes of these is looked up, for each channel."""
    channels = range(pixels.shape[-1])
    levels = np.stack([np.arange(256, dtype=np.uint8) for _ in channels], -1)
    table = port.quantize(_normalized(levels, normalization))
    return np.stack([table[:, channel].take(pixels[..., channel]) for channel in channels], -1)


def _normalized(pixels: NDArray[np.uint8], normalization: Normalization) -> NDArray[np.float32]:
    channels = pixels.shape[-1]
    for what, values in zip(("mean", "std"), normalization, strict=True):
        if len(values) not in (1, channels):
            raise InputError(f"{what} has {len(values)} values; the input has {channels} channels, so 1 or {channels}.")
    mean, std = (np.asarray(values, np.float32) for values in normalization)
    return (pixels.astype(np.float32) - mean) / std
