"""``python -m gossamer``: the same as the command ``gossamer``."""

from gossamer.tools.cli import main

if __name__ == "__main__":
    main()
