"""The comparison of a study with the tables and claims of Geng (2016); `compare.py` is its command."""
