"""Escaped names in Markdown and LaTeX, and names of hyper-parameters for readers."""

import re
from collections.abc import Iterable


def parameter_titles(names: Iterable[str]) -> dict[str, str]:
    """Short names of the hyper-parameters of a candidate: the last part, with as many before it as make it unique.

    Examples
    --------
    >>> parameter_titles(["model__regressor__alpha", "scale__with_mean"])
    {'model__regressor__alpha': 'alpha', 'scale__with_mean': 'with_mean'}
    >>> parameter_titles(["first__alpha", "second__alpha"])
    {'first__alpha': 'first alpha', 'second__alpha': 'second alpha'}
    """
    parts = {name: name.split("__") for name in names}
    titles = {}
    for name, own in parts.items():
        others = [other for key, other in parts.items() if key != name]
        taken = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)), len(own))
        titles[name] = " ".join(own[-taken:])
    return titles


_MARKDOWN = re.compile(r"[\\|*`]|](?=[(\[])|<(?=[A-Za-z/!?])")  # what makes cells, stress, code, links and HTML


def markdown_text(text: str) -> str:
    """Escape a text, such as a name, so that Markdown shows it literally: on one line, without links or HTML.

    Examples
    --------
    >>> print(markdown_text("a_b [x](http://y) <script>"))
    a_b [x\\](http://y) &lt;script>
    """
    return _MARKDOWN.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", " ".join(text.split()))


_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "…": r"\dots{}",
}
_LATEX_MATHS = {
    "±": r"\pm",
    "↑": r"\uparrow",
    "↓": r"\downarrow",
    "−": "-",
    "·": r"\cdot",
    "•": r"\bullet",
    "◦": r"\circ",
    "×": r"\times",
    "→": r"\to",
    "≻": r"\succ",
    "χ": r"\chi",
    "²": "^2",
    "≥": r"\geq",
    "≤": r"\leq",
}
_LATEX = (
    _LATEX_SPECIAL
    | {letter: f"${code}$" for letter, code in _LATEX_MATHS.items()}
    | {letter: f"\\{letter}" for letter in "&%$#_{}"}
)


def latex_text(text: str) -> str:
    """Escape a text so that LaTeX prints it literally."""
    return "".join(_LATEX.get(letter, letter) for letter in text)
