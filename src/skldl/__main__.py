"""``python -m skldl`` is the command ``skldl``."""

import sys

from skldl.cli import main

if __name__ == "__main__":
    sys.exit(main())
