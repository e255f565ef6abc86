"""How each of TensorFlow's operators runs, as the code says it: the table of the manual's page on Flex."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.convert.flex_operators import KNOWN_OPERATORS
from gossamer.flex.kernels import all_kernels
from gossamer.flex.rewrite import may_be_builtin

RANKS = {
    1: """
        AddV2 AdjustContrastv2 Angle AssignVariableOp AudioSpectrogram BatchMatMulV2 Bincount
        CTCBeamSearchDecoder CTCGreedyDecoder Cast CombinedNonMaxSuppression ComplexAbs Conj Conv2D Conv3D
        CropAndResize DenseBincount Einsum EmptyTensorList Erf Exp ExtractImagePatches FFT HashTableV2 IFFT
        IRFFT Identity LookupTableFindV2 MatMul MatrixInverse MaxPoolWithArgmax Mfcc Multinomial
        MutableHashTableV2 Pad Placeholder RFFT RaggedTensorToTensor RandomStandardNormal RandomUniform
        ReadVariableOp ResizeBicubic Round Size StaticRegexReplace StridedSlice StringLower StringSplitV2
        StringToHashBucketFast TensorArrayGatherV3 TensorArrayReadV3 TensorArrayScatterV3 TensorArraySizeV3
        TensorArrayV3 TensorArrayWriteV3 TensorListFromTensor TensorListGetItem TensorListLength
        TensorListPushBack TensorListReserve TensorListSetItem TensorListStack UnsortedSegmentSum VarHandleOp
    """,
    2: """
        AdjustHue AdjustSaturation AsString Assert AssignAddVariableOp AssignSubVariableOp Atan AvgPool3D
        AvgPoolGrad BiasAddGrad BroadcastGradientArgs Bucketize Case CheckNumerics Cholesky Conv2DBackpropFilter
        Conv2DBackpropInput Conv3DBackpropInputV2 Cosh Cumprod DecodeJpeg DecodePng DecodeRaw DecodeWav
        Dilation2D DivNoNan DynamicPartition DynamicStitch EnsureShape FFT2D FakeQuantWithMinMaxVars
        FusedBatchNormV3 HSVToRGB IFFT2D ImageProjectiveTransformV2 ImageProjectiveTransformV3 InTopKV2
        InitializeTableV2 InvertPermutation IsFinite IsNan LinSpace ListDiff LookupTableImportV2
        LookupTableInsertV2 LookupTableSizeV2 MatrixBandPart MatrixDeterminant MatrixDiagPartV3 MatrixDiagV3
        MatrixSetDiagV3 MatrixTriangularSolve MaxPool3D MaxPoolGrad NonMaxSuppressionV4 NonMaxSuppressionV5
        ParseExampleV2 ParseSingleExample Qr RFFT2D RGBToHSV RaggedGather RaggedRange RaggedTensorFromVariant
        RaggedTensorToVariant RandomShuffle RandomUniformInt ReduceJoin RegexFullMatch RegexReplace ReluGrad
        ResourceApplyAdam ResourceApplyGradientDescent ResourceGather Roll Selu Sinh Softplus Softsign
        SparseReshape SparseSegmentMean SparseSegmentSum SparseSoftmaxCrossEntropyWithLogits
        SparseTensorDenseMatMul SparseToDense StatelessRandomGetAlg StatelessRandomGetKeyCounter
        StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform StatelessRandomUniformV2
        StaticRegexFullMatch StringJoin StringLength StringStrip StringToNumber Substr Tan TensorListConcatV2
        TensorListGather TensorListPopBack TensorListResize TensorListScatterV2 TensorListSplit TensorScatterAdd
        TensorScatterUpdate TruncatedNormal UnicodeDecode Unique UniqueV2 Xlogy
    """,
    4: """
        ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign
        ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign
        ApplyProximalAdagrad ApplyProximalGradientDescent ApplyRMSProp Assign AssignAdd AssignSub HashTable
        InitializeTable InitializeTableFromTextFile IsVariableInitialized LookupTableExport LookupTableFind
        LookupTableImport LookupTableInsert LookupTableSize MutableDenseHashTable MutableHashTable
        MutableHashTableOfTensors ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad
        ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdamWithAmsgrad ResourceApplyAddSign
        ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyKerasMomentum
        ResourceApplyMomentum ResourceApplyPowerSign ResourceApplyProximalAdagrad
        ResourceApplyProximalGradientDescent ResourceApplyRMSProp ResourceSparseApplyAdadelta
        ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2
        ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
        ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyProximalAdagrad
        ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp ScatterNdAdd ScatterNdMax
        ScatterNdMin ScatterNdSub ScatterNdUpdate SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA
        SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 SparseApplyMomentum
        SparseApplyProximalAdagrad SparseApplyProximalGradientDescent SparseApplyRMSProp StridedSliceAssign
        TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayConcat TensorArrayConcatV2 TensorArrayGather
        TensorArrayGatherV2 TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayScatter
        TensorArrayScatterV2 TensorArraySize TensorArraySizeV2 TensorArraySplit TensorArraySplitV2
        TensorArrayUnpack TensorArrayV2 TensorArrayWrite TensorArrayWriteV2 Variable VariableV2
    """,
    0: """
        BatchDatasetV2 Dequantize Enter Exit FakeQueue FilterDataset FinalizeDataset FlatMapDataset
        InitializeTableFromDataset LoopCond MapDataset Merge MergeV2Checkpoints ModelDataset NextIteration
        OptimizeDatasetV2 OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone
        QuantizeDownAndShrinkRange QuantizeV2 QuantizedAdd QuantizedAvgPool
        QuantizedBatchNormWithGlobalNormalization QuantizedBiasAdd QuantizedConcat QuantizedConv2D
        QuantizedInstanceNorm QuantizedMatMul QuantizedMaxPool QuantizedMul QuantizedRelu QuantizedRelu6
        QuantizedReshape QuantizedResizeBilinear ReadFile Recv ReduceDataset RefEnter RefExit RefIdentity
        RefMerge RefNextIteration RefSelect RefSwitch RemoteCall RepeatDataset RequantizationRange Requantize
        Restore RestoreSlice RestoreV2 Save SaveSlices SaveV2 Send ShardedFilename ShardedFilespec Switch
        SymbolicGradient TakeDataset TakeWhileDataset TemporaryVariable TensorSliceDataset UnwrapDatasetVariant
        WrapDatasetVariant WriteFile _Arg _ArrayToList _DeviceArg _DeviceRetval _FusedConv2D _HostCast _HostRecv
        _HostSend _ListToArray _ParallelConcatStart _ParallelConcatUpdate _ReadVariablesOp _Recv _Retval _Send
        _SwitchN _VarHandlesOp
    """,
}
"""How likely an operator is in models that people have: 1 in reports of users and in ordinary converted models, 2 in
models that people ship, 4 optimizers, forms of TensorFlow 1 and of other packages, 0 nothing to do in a model; all
others, 3, are rare."""


def rank_of(name: str) -> int:
    """The rank of an operator."""
    return next((rank for rank, names in RANKS.items() if name in names.split()), 3)


def how(name: str) -> str:
    """What runs an operator."""
    kernel = name in all_kernels()
    if may_be_builtin(name):
        return "builtin operators, else NumPy" if kernel else "builtin operators"
    return "NumPy" if kernel else "refused"


def table() -> Iterator[str]:
    """The rows: operators of one rank that run in the same way are in one."""
    rows: dict[tuple[int, str], list[str]] = {}
    for name in KNOWN_OPERATORS:
        rows.setdefault((rank_of(name) or 5, how(name)), []).append(name)
    for (rank, way), names in sorted(rows.items()):
        yield f"| {rank % 5} | {way} | {len(names)} | {', '.join(f'`{name}`' for name in sorted(names))} |"
