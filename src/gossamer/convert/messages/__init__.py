"""Messages of protobuf, declared: a module per family."""
