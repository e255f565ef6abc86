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
    id: str, spectrogram: Any, expected: Any, rate: Operand | int = 16000, limits: Any = (20, 4000), filters: int = 40, **how: Any
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
