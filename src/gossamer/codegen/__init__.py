"""Kernel specs to machine code: IR text, object, blob. The only package that imports llvmlite, and only to compile."""
