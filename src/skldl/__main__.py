"""``python -m skldl`` is the command ``skldl``."""

from skldl.cli import main

if __name__ == "__main__":
    main()
