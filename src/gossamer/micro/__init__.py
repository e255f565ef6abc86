"""TFLite Micro on a PC: the interpreter of a microcontroller with its one arena, and what a model takes in it."""

from __future__ import annotations

from gossamer.micro.allocator import Category, MicroAllocator, RecordedAllocation, RecordingMicroAllocator
from gossamer.micro.interpreter import MicroInterpreter
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.micro.profiler import MicroProfiler
from gossamer.micro.report import MicroReport, PlannedBuffer, measure, report
from gossamer.micro.resolver import MicroMutableOpResolver, MicroOpResolver, all_ops, needed_ops
from gossamer.micro.resource_variables import MicroResourceVariables

__all__ = [
    "Category",
    "MicroAllocator",
    "MicroInterpreter",
    "MicroKernel",
    "MicroMutableOpResolver",
    "MicroOpResolver",
    "MicroProfiler",
    "MicroReport",
    "MicroResourceVariables",
    "PlannedBuffer",
    "RecordedAllocation",
    "RecordingMicroAllocator",
    "all_ops",
    "measure",
    "needed_ops",
    "report",
]
