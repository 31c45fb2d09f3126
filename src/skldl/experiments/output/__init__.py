"""What a study leaves behind: tables, text, the comparison with published numbers, and the claims of the paper."""
