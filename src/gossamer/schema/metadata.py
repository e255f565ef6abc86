"""The tables of TFLite model metadata: schema version 1.5.0, file identifier ``M001``.

They are stored as a FlatBuffer of their own in the buffer of the model's metadata entry ``TFLITE_METADATA``.
"""

from __future__ import annotations

from gossamer.schema.enumeration import IntEnum
from gossamer.schema.fields import (
    Array,
    Table,
    Union,
    array,
    data,
    enum,
    f32,
    i8,
    i32,
    numbers,
    string,
    strings,
    table,
    u32,
    union,
    vector,
)

METADATA_IDENTIFIER = b"M001"


class AssociatedFileType(IntEnum):
    """Stored as int8."""

    UNKNOWN = 0
    DESCRIPTIONS = 1
    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3
    TENSOR_AXIS_SCORE_CALIBRATION = 4
    VOCABULARY = 5
    SCANN_INDEX_FILE = 6


class ColorSpaceType(IntEnum):
    """Stored as int8."""

    UNKNOWN = 0
    RGB = 1
    GRAYSCALE = 2


class BoundingBoxType(IntEnum):
    """Stored as int8."""

    UNKNOWN = 0
    BOUNDARIES = 1
    UPPER_LEFT = 2
    CENTER = 3


class CoordinateType(IntEnum):
    """Stored as int8."""

    RATIO = 0
    PIXEL = 1


class ScoreTransformationType(IntEnum):
    """Stored as int8."""

    IDENTITY = 0
    LOG = 1
    INVERSE_LOGISTIC = 2


class AssociatedFile(Table):
    name: str = string()
    description: str = string()
    type: AssociatedFileType = enum(AssociatedFileType, i8)
    locale: str = string()
    version: str = string()


class FeatureProperties(Table):
    pass


class ImageSize(Table):
    width: int = u32()
    height: int = u32()


class ImageProperties(Table):
    color_space: ColorSpaceType = enum(ColorSpaceType, i8)
    default_size: ImageSize | None = table(ImageSize)


class AudioProperties(Table):
    sample_rate: int = u32()
    channels: int = u32()


class BoundingBoxProperties(Table):
    index: tuple[int, ...] = numbers(u32)
    type: BoundingBoxType = enum(BoundingBoxType, i8)
    coordinate_type: CoordinateType = enum(CoordinateType, i8)


ContentProperties = Union(FeatureProperties, ImageProperties, BoundingBoxProperties, AudioProperties)


class ValueRange(Table):
    min: int = i32()
    max: int = i32()


class Content(Table):
    content_properties: Table | None = union(ContentProperties)
    range: ValueRange | None = table(ValueRange)


class NormalizationOptions(Table):
    mean: Array = array(f32)
    std: Array = array(f32)


class ScoreCalibrationOptions(Table):
    score_transformation: ScoreTransformationType = enum(ScoreTransformationType, i8)
    default_score: float = f32()


class ScoreThresholdingOptions(Table):
    global_score_threshold: float = f32()


class BertTokenizerOptions(Table):
    vocab_file: tuple[AssociatedFile, ...] = vector(AssociatedFile)


class SentencePieceTokenizerOptions(Table):
    sentencePiece_model: tuple[AssociatedFile, ...] = vector(AssociatedFile)
    vocab_file: tuple[AssociatedFile, ...] = vector(AssociatedFile)


class RegexTokenizerOptions(Table):
    delim_regex_pattern: str = string()
    vocab_file: tuple[AssociatedFile, ...] = vector(AssociatedFile)


ProcessUnitOptions = Union(
    NormalizationOptions,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    BertTokenizerOptions,
    SentencePieceTokenizerOptions,
    RegexTokenizerOptions,
)


class ProcessUnit(Table):
    options: Table | None = union(ProcessUnitOptions)


class Stats(Table):
    max: Array = array(f32)
    min: Array = array(f32)


class TensorGroup(Table):
    name: str = string()
    tensor_names: tuple[str, ...] = strings()


class TensorMetadata(Table):
    name: str = string()
    description: str = string()
    dimension_names: tuple[str, ...] = strings()
    content: Content | None = table(Content)
    process_units: tuple[ProcessUnit, ...] = vector(ProcessUnit)
    stats: Stats | None = table(Stats)
    associated_files: tuple[AssociatedFile, ...] = vector(AssociatedFile)


class CustomMetadata(Table):
    name: str = string()
    data: Array = data(align=16)


class SubGraphMetadata(Table):
    name: str = string()
    description: str = string()
    input_tensor_metadata: tuple[TensorMetadata, ...] = vector(TensorMetadata)
    output_tensor_metadata: tuple[TensorMetadata, ...] = vector(TensorMetadata)
    associated_files: tuple[AssociatedFile, ...] = vector(AssociatedFile)
    input_process_units: tuple[ProcessUnit, ...] = vector(ProcessUnit)
    output_process_units: tuple[ProcessUnit, ...] = vector(ProcessUnit)
    input_tensor_groups: tuple[TensorGroup, ...] = vector(TensorGroup)
    output_tensor_groups: tuple[TensorGroup, ...] = vector(TensorGroup)
    custom_metadata: tuple[CustomMetadata, ...] = vector(CustomMetadata)


class ModelMetadata(Table):
    name: str = string()
    description: str = string()
    version: str = string()
    subgraph_metadata: tuple[SubGraphMetadata, ...] = vector(SubGraphMetadata)
    author: str = string()
    license: str = string()
    associated_files: tuple[AssociatedFile, ...] = vector(AssociatedFile)
    min_parser_version: str = string()
