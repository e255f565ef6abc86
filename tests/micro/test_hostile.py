"""Damaged models: the interpreter of a device runs them or says what is wrong."""

from __future__ import annotations

import random
from contextlib import suppress

from gossamer.errors import GossamerError
from gossamer.micro import MicroInterpreter
from tests.fuzz.mutations import mutant
from tests.fuzz.seeds import own_seeds
from tests.micro.models import chain, chooser


def test_a_few_hundred_mutants() -> None:
    seeds = [*(content for _, content in own_seeds(1)), *[chain(), chooser()] * 20]
    for number in range(400):
        content = mutant(random.Random(number).choice(seeds), number)
        with suppress(GossamerError):
            interpreter = MicroInterpreter(content, arena=1 << 20, resource_variables=10)
            interpreter.allocate_tensors()
            interpreter.invoke()
