"""The names of ``ai_edge_litert.options``: how a `gossamer.compiled_model.CompiledModel` is made."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import SimpleNamespace

from gossamer.hardware_accelerator import HardwareAccelerator


class CpuKernelMode(enum.IntEnum):
    """Which kernels run: those of the default delegate where it takes a node, only reference kernels behind the
    narrower resolver, or only reference kernels."""

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2


@dataclass
class CpuOptions:
    """``num_threads``: 0 for one. The fields after ``kernel_mode`` are for XNNPACK and change nothing here."""

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""


@dataclass
class GpuOptions:
    """Options of another accelerator, which change nothing here."""

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False


class QualcommOptions(SimpleNamespace):
    """Options of another accelerator, whatever their names, which change nothing here."""


class IntelOpenVinoOptions(SimpleNamespace):
    """Options of another accelerator, whatever their names, which change nothing here."""


class Options:
    """Options of one model, in groups."""

    def __init__(
        self,
        hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU,
        cpu_options: CpuOptions | None = None,
        gpu_options: GpuOptions | None = None,
        qualcomm_options: QualcommOptions | None = None,
        intel_openvino_options: IntelOpenVinoOptions | None = None,
    ) -> None:
        self.hardware_accelerators = hardware_accelerators
        self.cpu_options = cpu_options or CpuOptions()
        self.gpu_options = gpu_options or GpuOptions()
        self.qualcomm_options = qualcomm_options or QualcommOptions()
        self.intel_openvino_options = intel_openvino_options or IntelOpenVinoOptions()

    @classmethod
    def create(cls) -> Options:
        """The defaults."""
        return cls()
