"""The scripts of this folder are no test modules."""

collect_ignore = ["cases.py", "compare.py", "freeze.py", "functions.py", "way.py"]
