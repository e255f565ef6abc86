"""A model as the source of a constant array, for firmware without a file system."""

from __future__ import annotations

import re
from pathlib import PurePath

from gossamer.micro.arena import ALIGNMENT

SUFFIXES = (".cc", ".cpp", ".c", ".h")

_BYTES_A_LINE = 16
_HEX = [f"0x{value:02x}" for value in range(256)]


def identifier(path: str) -> str:
    """``g_`` and the name of a file without its last suffix, where all that C has no letter for is an underscore."""
    return "g_" + re.sub(r"[^0-9A-Za-z_]", "_", PurePath(path).stem)


def c_array(content: bytes, path: str, origin: str) -> str:
    """The source of a file of this name: an array of bytes, aligned to 16, and its length, both named after the file.

    A ``.h`` has an include guard and holds the array itself, one for each source that includes it; in ``.c`` and
    ``.cc`` others can refer to it. ``origin`` is the name of the model, for a comment. Raises `ValueError` for a name
    that does not end so.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name of a C array should end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    name = identifier(path)
    length, array = f"const unsigned int {name}_len", f"const unsigned char {name}[]"
    origin = origin.replace("*/", "* /").replace("\n", " ")
    lines = [f"/* {origin}: {len(content):,} bytes, written by gossamer micro. */"]
    c_only = ["#include <stdalign.h>"]
    if suffix == ".h":
        guard = f"{name.upper()}_H_"
        lines += [f"#ifndef {guard}", f"#define {guard}", "#ifndef __cplusplus", *c_only, "#endif"]
        length, array = f"static {length}", f"static {array}"
    else:
        lines += [*(c_only if suffix == ".c" else []), f"extern {array};", f"extern {length};"]
    lines += [f"{length} = {len(content)};", f"alignas({ALIGNMENT}) {array} = {{"]
    for start in range(0, len(content), _BYTES_A_LINE):
        lines.append("  " + ", ".join([_HEX[byte] for byte in content[start : start + _BYTES_A_LINE]]) + ",")
    lines.append("};")
    if suffix == ".h":
        lines.append("#endif")
    return "\n".join(lines) + "\n"
