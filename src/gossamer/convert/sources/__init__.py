"""A file per format: each reads a source into records that say what it says, and runs nothing of it."""
