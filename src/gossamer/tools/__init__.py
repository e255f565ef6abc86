"""The command line, one file for each tool; `cli` finds them. Nobody imports this package but the command line."""
