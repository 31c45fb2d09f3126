"""Output of a study: tables, text, the comparison with published numbers, and the claims of the paper."""
