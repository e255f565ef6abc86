from __future__ import annotations

from gossamer.micro.adders import ADDERS, CUSTOM_ADDERS, adder, cpp_resolver
from gossamer.schema import BuiltinOperator


def test_every_method_of_tflite_micro_has_its_operator() -> None:
    assert (len(ADDERS), len(CUSTOM_ADDERS)) == (100, 18)
    assert set(ADDERS) <= set(BuiltinOperator.__members__)
    assert len({*ADDERS.values(), *CUSTOM_ADDERS.values()}) == 118


def test_methods_are_named_after_operators_in_their_own_capitals() -> None:
    names = ["CONV_2D", "PADV2", "L2_POOL_2D", "CUMSUM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SPACE_TO_BATCH_ND"]
    assert [adder(name) for name in names] == [
        "AddConv2D",
        "AddPadV2",
        "AddL2Pool2D",
        "AddCumSum",
        "AddUnidirectionalSequenceLSTM",
        "AddSpaceToBatchNd",
    ]


def test_custom_operators_of_tflite_micro() -> None:
    names = ["SignalFftAutoScale", "SignalPCAN", "TFLite_Detection_PostProcess", "TFLM_DECODE", "ethos-u"]
    assert [adder(name) for name in names] == [
        "AddFftAutoScale",
        "AddPCAN",
        "AddDetectionPostprocess",
        "AddDecode",
        "AddEthosU",
    ]


def test_a_resolver_has_room_for_what_it_gets() -> None:
    assert cpp_resolver(["CONV_2D", "SignalFramer", 'My "op', "GELU"]) == [
        "tflite::MicroMutableOpResolver<3> resolver;",
        "resolver.AddConv2D();",
        "resolver.AddFramer();",
        'resolver.AddCustom("My \\"op", Register_MY__OP());',
        "// GELU: TFLite Micro does not have it.",
    ]
