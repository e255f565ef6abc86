"""Mfcc: filters, coefficients, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from gossamer.ops.custom.mfcc import op
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

NOTHING = float(np.log(1e-12))


def coefficients(
    id: str,
    spectrogram: Any,
    expected: Any,
    rate: Operand | int = 16000,
    limits: Any = (20, 4000),
    filters: int = 40,
    **how: Any,
) -> Case:
    """As many coefficients as are expected."""
    wanted = np.array(expected, np.float32)
    options = {
        "lower_frequency_limit": limits[0],
        "upper_frequency_limit": limits[1],
        "filterbank_channel_count": filters,
        "dct_coefficient_count": how.get("count", wanted.shape[-1]),
    }
    return Case(
        id,
        [tensor(spectrogram), const([rate]) if isinstance(rate, int) else rate],
        [tensor(wanted)],
        custom_options=bytes(flexbuffers.Dumps(options)),
        rtol=1e-5,
    )


SPEECH = [
    29.1397,
    -6.415686,
    -0.61903,
    -0.967786,
    -0.268199,
    -0.40907,
    -0.156148,
    -0.232031,
    -0.104815,
    -0.154303,
    -0.076979,
]
BINS = np.arange(1, 514).reshape(1, 1, 513)

CASES = [
    coefficients("of_litert_s_own_test", BINS, [[SPEECH]], rate=22050),
    coefficients("rate_from_input", BINS, [[SPEECH]], rate=tensor([22050], np.int32)),
    coefficients(
        "two_windows",
        [[[0, 1, 4, 9, 16], [0, 0, 0, 0, 0]]],
        [[[0.6790433, -1.197602], [2 * NOTHING, 0]]],
        rate=8000,
        limits=(0, 4000),
        filters=2,
    ),
    coefficients("upper_limit_beyond_the_last_bin", [[[1, 1, 1]]], [[[0, 0]]], rate=100),
    coefficients(
        "no_bin_between_the_limits", [[[1, 1, 1]]], [[[np.sqrt(2) * NOTHING]]], limits=(1, 2), filters=1, rate=16000
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("spectrogram must have 3 dimensions, got 2", coefficients("", [[1, 2]], [[[0]]])),
    ("rate must have one element", coefficients("", BINS, [[[0]]], tensor([1, 2], np.int32))),
    ("0 <= lower < upper, got 20 and 20", coefficients("", BINS, [[[0]]], limits=(20, 20))),
    ("0 <= lower < upper, got -1 and 20", coefficients("", BINS, [[[0]]], limits=(-1, 20))),
    ("dct_coefficient_count 3 must be in [1, filterbank", coefficients("", BINS, [[[0]]], filters=2, count=3)),
    ("dct_coefficient_count 0 must be in [1, filterbank", coefficients("", BINS, [[[0]]], count=0)),
    ("that at most 4096, got 1099511627776", coefficients("", BINS, [[[0]]], filters=2**40)),
    ("at least 2 bins, got 1", coefficients("", [[[1]]], [[[0]]])),
    ("0 <= lower < upper, got 0 and 0", Case("", [tensor(BINS), const([1])], [tensor([[[0]]])])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_refuses_a_rate_that_is_not_positive() -> None:
    refused = coefficients("", BINS, [[[0]]], tensor([0], np.int32))
    assert_refused_by_invoke(op, refused, "rate must be positive, got 0")
