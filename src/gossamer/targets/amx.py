"""AVX-512 with products of tiles of bytes (AMX: Sapphire Rapids and later, once the system has been asked for them)."""

from __future__ import annotations

from gossamer.records import replace
from gossamer.targets.avx512vnni import TARGET as AVX512VNNI

TARGET = replace(
    AVX512VNNI,
    name="amx",
    features=(*AVX512VNNI.features, "+amx-tile", "+amx-int8"),
    requires=AVX512VNNI.requires | {"amx-tile", "amx-int8"},
    base=AVX512VNNI,
    tiles=True,
)
