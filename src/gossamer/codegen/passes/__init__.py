"""What is done to a kernel graph before it is laid out: one pass per file, each a function of the graph."""
