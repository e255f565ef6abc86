"""What runs: the builder makes subgraphs of nodes and tensors, a subgraph prepares, plans and invokes."""
