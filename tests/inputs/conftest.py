"""Fixtures that tests of inputs share with those of the tools."""

from tests.tools.conftest import place

__all__ = ["place"]
