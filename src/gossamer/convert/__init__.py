"""Source models to .tflite: SavedModels, Keras files, frozen graphs, ONNX and torch.export programs, without their
frameworks."""

from __future__ import annotations

from gossamer.convert.converter import convert

__all__ = ["convert"]
