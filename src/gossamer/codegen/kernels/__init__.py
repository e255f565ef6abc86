"""The kernels, one kind per file: a spec, the layout of its arguments and the text of its module."""
