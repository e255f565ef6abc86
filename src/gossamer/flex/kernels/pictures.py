"""PNG, JPEG, GIF and BMP files, decoded and encoded."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, number, require_rank
from gossamer.flex.kernels._jpeg import rgb_of
from gossamer.flex.kernels._pillow import pillow
from gossamer.flex.kernels._png import deep_png
from gossamer.flex.objects import strings

MOST_PIXELS = 1 << 28

_PNG, _JPEG, _GIF, _BMP = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM"
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, LookupError, struct.error, zlib.error)
"""What Pillow raises for files that are damaged."""

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _content(call: Call, contents: Array) -> bytes:
    call.require(contents.size == 1, f"contents must be one string, got shape {list(contents.shape)}")
    found: bytes = contents.reshape(-1)[0]
    return found


def _opened(call: Call, content: bytes, *formats: str) -> Any:
    image = pillow(call)
    try:
        opened = image.open(io.BytesIO(content), formats=formats)
    except (*_DAMAGED, image.DecompressionBombError) as error:
        call.fail(f"the content is no {' or '.join(formats)} file ({error})")
    call.require(opened.width * opened.height <= MOST_PIXELS, f"{opened.width} x {opened.height} pixels are too many")
    return opened


def _pixels(call: Call, opened: Any, mode: str | None = None) -> Array:
    """[height, width, channels]."""
    try:
        found = np.asarray(opened.convert(mode) if mode and opened.mode != mode else opened)
    except _DAMAGED as error:
        call.fail(f"the picture cannot be decoded ({error})")
    return found.reshape(opened.height, opened.width, -1)


def _png(call: Call, content: bytes, channels: int, dtype: np.dtype[Any]) -> Array:
    call.require(channels in (0, 1, 3, 4), f"channels of a PNG must be 0, 1, 3 or 4, got {channels}")
    if content.startswith(_PNG) and content[24:25] == b"\x10":
        pixels = _with_channels(deep_png(call, content), channels)
        return pixels if dtype == np.uint16 else pixels >> 8
    opened = _opened(call, content, "PNG")
    has_alpha = "A" in opened.mode or "transparency" in opened.info
    if not channels:
        palette = 4 if "transparency" in opened.info else 3
        channels = {"P": palette, "L": 1, "1": 1, "LA": 2, "RGB": 3, "RGBA": 4}.get(opened.mode, 1)
    if channels < 3 and opened.mode in ("RGB", "RGBA", "P"):
        coloured = _pixels(call, opened, "RGBA" if has_alpha else "RGB")
        found = _luma(coloured[..., :3])
        if channels == 2:
            found = np.concatenate([found, coloured[..., 3:] if has_alpha else np.full_like(found, 255)], -1)
    else:
        if has_alpha and channels % 2:  # the colours as they are, not blended
            opened = opened.convert("RGBA" if channels == 3 else "LA")
        found = _pixels(call, opened, _MODES[channels if channels % 2 == 0 or not has_alpha else channels + 1])
        found = found[..., :channels]
        if channels == 4 and opened.mode == "1":
            found = np.concatenate([found[..., :3], np.full_like(found[..., :1], 1)], -1)  # of 1 bit, as in libpng
    return found.astype(np.uint16) * 257 if dtype == np.uint16 else found


def _with_channels(pixels: Array, channels: int) -> Array:
    """Gray, with or without alpha, or colours made from any of these; 0 ``channels`` change nothing."""
    found = pixels.shape[-1]
    if channels in (0, found):
        return pixels
    colours, alpha = (pixels[..., :-1], pixels[..., -1:]) if found % 2 == 0 else (pixels, None)
    if channels < 3 <= found:
        colours = _luma(colours)
    elif found < 3 <= channels:
        colours = np.repeat(colours, 3, -1)
    if channels % 2:
        return colours
    opaque = np.full_like(colours[..., :1], np.iinfo(pixels.dtype).max) if alpha is None else alpha
    return np.concatenate([colours, opaque], -1)


def _luma(rgb: Array) -> Array:
    """Gray of colours as libpng computes it: 0.299 of red and 0.587 of green, in units of 1 / 32768."""
    red, green = 32768 * 299 // 1000, 32768 * 587 // 1000
    wide = rgb.astype(np.int64)
    gray = red * wide[..., :1] + green * wide[..., 1:2] + (32768 - red - green) * wide[..., 2:]
    gray = (gray + (16384 if rgb.dtype == np.uint16 else 0)) >> 15
    return np.where(np.ptp(wide, -1, keepdims=True) == 0, wide[..., :1], gray).astype(rgb.dtype)


@kernel("DecodePng")
def decode_png(call: Call, contents: Array) -> Array:
    """The pixels of a PNG file, uint8 or uint16; 0 ``channels`` stand for those that it has."""
    return _png(call, _content(call, contents), call.attributes.int("channels"), call.dtype("dtype"))


def _jpeg(call: Call, content: bytes, channels: int, ratio: int = 1, fancy: bool = True, fast: bool = True) -> Array:
    """Pillow has the accurate transform with fancy upsampling, and in its draft the fast one (libjpeg's IFAST, which is
    TensorFlow's choice) without: fast and fancy is the draft with chroma upsampled here."""
    call.require(channels in (0, 1, 3), f"channels of a JPEG must be 0, 1 or 3, got {channels}")
    call.require(ratio in (1, 2, 4, 8), f"ratio must be 1, 2, 4 or 8, got {ratio}")
    opened = _opened(call, content, "JPEG")
    if not channels:
        channels = 1 if opened.mode == "L" else 3
    size = [max(length // ratio, 1) for length in opened.size]
    reduced = tuple([-(-length // ratio) for length in opened.size])
    factors = _chroma_factors(opened, ratio) if channels == 3 else (1, 1)
    if fast and fancy and factors in ((2, 2), (2, 1)) and ratio < 8:
        opened.draft("YCbCr", size)
        opened.decoderconfig = (opened.decoderconfig[0], 1)
        _require_size(call, opened, reduced)
        return rgb_of(_pixels(call, opened), factors)
    opened.draft(_MODES[channels], size)
    if fast and not (fancy and factors != (1, 1)):
        opened.decoderconfig = (opened.decoderconfig[0], 1)
    _require_size(call, opened, reduced)
    return _pixels(call, opened, _MODES[channels])


def _require_size(call: Call, opened: Any, size: tuple[int, ...]) -> None:
    call.require(opened.size == size, f"{opened.width} x {opened.height} pixels are too few to leave some out")


def _chroma_factors(opened: Any, ratio: int) -> tuple[int, int]:
    """How many columns and rows share their chroma; a smaller picture is made of less luma first."""
    layers = [layer[1:3] for layer in opened.layer]
    if len(layers) != 3 or layers[1] != layers[2]:
        return 1, 1
    across, down = [luma // max(chroma, 1) for luma, chroma in zip(layers[0], layers[1], strict=True)]
    return (1, 1) if ratio > 1 and across == down == 2 else (across, down)


@kernel("DecodeJpeg")
def decode_jpeg(call: Call, contents: Array) -> Array:
    """The pixels of a JPEG file, of every ``ratio``-th row and column."""
    attributes = call.attributes
    fancy, fast = attributes.bool("fancy_upscaling"), attributes.text("dct_method") != "INTEGER_ACCURATE"
    return _jpeg(call, _content(call, contents), attributes.int("channels"), attributes.int("ratio"), fancy, fast)


@kernel("DecodeAndCropJpeg")
def decode_and_crop_jpeg(call: Call, contents: Array, crop_window: Array) -> Array:
    """A window (y, x, height, width) of `decode_jpeg`."""
    call.require(crop_window.shape == (4,), f"crop_window must have 4 elements, got {crop_window.tolist()}")
    pixels = decode_jpeg(call, contents)
    y, x, height, width = crop_window.tolist()
    inside = y >= 0 and x >= 0 and height > 0 and width > 0
    call.require(
        inside and y + height <= pixels.shape[0] and x + width <= pixels.shape[1],
        f"crop_window {crop_window.tolist()} is not within {pixels.shape[0]} x {pixels.shape[1]} pixels",
    )
    return pixels[y : y + height, x : x + width]


def _bmp(call: Call, content: bytes, channels: int) -> Array:
    """Windows bitmaps of 8 (gray), 24 and 32 bits without compression; what palettes say is not looked at."""
    call.require(channels in (0, 3, 4), f"channels of a BMP must be 0, 3 or 4, got {channels}")
    call.require(len(content) >= 32 and content[:2] == _BMP, "the content is no BMP file")
    start, _, width, height, _, bits = struct.unpack_from("<IIiiHH", content, 10)
    found = bits // 8
    call.require(bits in (8, 24, 32), f"a BMP must have 8, 24 or 32 bits for a pixel, got {bits}")
    call.require(width > 0 and height != 0, f"a BMP of {width} x {height} pixels")
    row = -(-width * found // 4) * 4
    needed = row * (abs(height) - 1) + width * found
    call.require(
        len(content) - start >= needed, f"{max(len(content) - start, 0)} bytes are no {width} x {height} pixels"
    )
    data = np.frombuffer(content[start : start + row * abs(height)].ljust(row * abs(height), b"\0"), np.uint8)
    pixels = data.reshape(abs(height), row)[:, : width * found].reshape(abs(height), width, found)
    pixels = pixels[::-1] if height > 0 else pixels
    if found == 1:
        return _with_channels(pixels, channels)
    return _with_channels(pixels[..., [2, 1, 0, 3][:found]], channels)


@kernel("DecodeBmp")
def decode_bmp(call: Call, contents: Array) -> Array:
    """The pixels of a BMP file."""
    return _bmp(call, _content(call, contents), call.attributes.int("channels"))


def _gif(call: Call, content: bytes, all_frames: bool = True) -> Array:
    opened = _opened(call, content, "GIF")
    try:
        count = opened.n_frames if all_frames else 1
        checked_shape(call, [count, opened.height, opened.width, 3])
        return np.stack([_frame(call, opened, frame) for frame in range(count)])
    except _DAMAGED as error:
        call.fail(f"the picture cannot be decoded ({error})")


def _frame(call: Call, opened: Any, number: int) -> Array:
    """A whole picture of an animation; what shows nothing is black."""
    call.poll()
    opened.seek(number)
    rgba = _pixels(call, opened, "RGBA")
    return np.where(rgba[..., 3:] != 0, rgba[..., :3], np.uint8(0))


@kernel("DecodeGif")
def decode_gif(call: Call, contents: Array) -> Array:
    """[frames, height, width, 3] of a GIF file."""
    return _gif(call, _content(call, contents))


@kernel("DecodeImage")
def decode_image(call: Call, contents: Array) -> Array:
    """The pixels of a file of any of the four kinds, the frames of a GIF as a fourth dimension unless
    ``expand_animations`` is false; float32 in [0, 1]."""
    content, channels, dtype = _content(call, contents), call.attributes.int("channels"), call.dtype("dtype")
    if content.startswith(_PNG):
        pixels = _png(call, content, channels, np.dtype(np.uint8 if dtype == np.uint8 else np.uint16))
    elif content.startswith(_JPEG):
        pixels = _jpeg(call, content, channels)
    elif content.startswith(_GIF):
        call.require(channels in (0, 3), f"channels of a GIF must be 0 or 3, got {channels}")
        animated = call.attributes.bool("expand_animations")
        pixels = _gif(call, content, animated)
        pixels = pixels if animated else pixels[0]
    elif content.startswith(_BMP):
        pixels = _bmp(call, content, channels)
    else:
        call.fail("the content is no PNG, JPEG, GIF or BMP file")
    most = np.iinfo(pixels.dtype).max
    if dtype == np.float32:
        return pixels * (np.float32(1) / np.float32(most))
    return pixels.astype(np.uint16) * 256 if dtype == np.uint16 and pixels.dtype == np.uint8 else pixels


@kernel("EncodePng")
def encode_png(call: Call, image: Array) -> Array:
    """A PNG file of every [height, width, channels]."""
    call.require(image.ndim >= 3, f"image must have 3 dimensions or more, got shape {list(image.shape)}")
    height, width, channels = image.shape[-3:]
    call.require(channels in (1, 2, 3, 4), f"image must have 1 to 4 channels, got {channels}")
    call.require(height > 0 and width > 0, f"image must not be empty, got shape {list(image.shape)}")
    level = call.attributes.int("compression")
    call.require(-1 <= level <= 9, f"compression must be in [-1, 9], got {level}")
    batch = image.shape[:-3]
    return strings([_encoded_png(one, level) for one in image.reshape(-1, height, width, channels)], batch)


def _encoded_png(image: Array, level: int) -> bytes:
    """Rows without filters (PNG specification, second edition, 2003)."""
    height, width, channels = image.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = image.astype(image.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    data = zlib.compress(np.pad(rows, ((0, 0), (1, 0))).tobytes(), level)
    header = struct.pack(">IIBBBBB", width, height, 8 * image.dtype.itemsize, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    return _PNG + b"".join([_chunk(kind, content) for kind, content in chunks])


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@kernel("EncodeJpeg", shape=lambda node, shapes: [()])
def encode_jpeg(call: Call, image: Array) -> Array:
    """A JPEG file of the image."""
    attributes = call.attributes
    require_rank(call, "image", image, 3)
    wanted = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[attributes.text("format")]
    call.require(image.shape[2] in wanted, f"image must have {' or '.join(map(str, wanted))} channels")
    options = {
        "progressive": attributes.bool("progressive"),
        "optimize": attributes.bool("optimize_size"),
        "subsampling": 2 if attributes.bool("chroma_downsampling") else 0,
        "dpi": _dots_per_inch(call),
    }
    metadata = attributes.bytes("xmp_metadata")
    return _encoded_jpeg(call, image, attributes.int("quality"), {**options, **({"xmp": metadata} if metadata else {})})


def _dots_per_inch(call: Call) -> tuple[int, int]:
    factor = 2.54 if call.attributes.text("density_unit") == "cm" else 1
    x, y = [round(call.attributes.int(f"{axis}_density") * factor) for axis in "xy"]
    return x, y


@kernel("EncodeJpegVariableQuality", shape=lambda node, shapes: [()])
def encode_jpeg_variable_quality(call: Call, image: Array, quality: Array) -> Array:
    """A JPEG file of the image, with the quality as an operand."""
    require_rank(call, "images", image, 3)
    call.require(image.shape[2] in (1, 3), f"images must have 1 or 3 channels, got {image.shape[2]}")
    return _encoded_jpeg(call, image, number(call, "quality", quality), {"subsampling": 2})


def _encoded_jpeg(call: Call, image: Array, quality: int, options: dict[str, Any]) -> Array:
    call.require(0 <= quality <= 100, f"quality must be in [0, 100], got {quality}")
    call.require(min(image.shape) > 0, f"image must not be empty, got shape {list(image.shape)}")
    picture = pillow(call).fromarray(image[..., 0] if image.shape[2] == 1 else image)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=max(quality, 1), **options)
    return strings([file.getvalue()], ())
