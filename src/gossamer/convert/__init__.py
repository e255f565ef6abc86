"""Source files of other frameworks, read without them."""
