"""The name of ``ai_edge_litert.hardware_accelerator``."""

from __future__ import annotations

import enum


class HardwareAccelerator(enum.IntFlag):
    """What may run a `gossamer.compiled_model.CompiledModel`. There are only kernels for the CPU here."""

    CPU = 1
    GPU = 2
    NPU = 4
