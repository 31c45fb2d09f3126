"""One HTML file that says what a study found. Needs the extra ``report``."""
