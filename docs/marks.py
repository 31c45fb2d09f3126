"""The part of a page between two marks, which `make docs` writes."""

WRITTEN = "<!-- {}: written by make docs -->"
END = "<!-- end of {} -->"


def between_marks(page: str, name: str, content: str) -> str:
    """Replace the content between the two marks of this name; a page without them gets them at its end.

    Examples
    --------
    >>> page = "before\\n<!-- times: written by make docs -->\\nold\\n<!-- end of times -->\\nafter"
    >>> between_marks(page, "times", "new") == page.replace("old", "new")
    True
    """
    begin, end = WRITTEN.format(name), END.format(name)
    if begin not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.split(end)[1]}"
