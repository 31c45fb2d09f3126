"""A matplotlib figure as inline SVG that satisfies a strict content security policy and uses the page's colours.

matplotlib writes ``style`` attributes and a ``style`` element, which such a policy forbids: they become presentation
attributes here. Black becomes the colour of the text around, grey lines and white fill follow the page, identifiers get
a prefix, so that many figures can be in one page. Text stays text.
"""

import io
import re
import warnings
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
FONTS = "DejaVu Sans, Verdana, sans-serif"
_CLASS_OF = {("fill", "#ffffff"): "paper", ("stroke", "#cccccc"): "faint", ("fill", "#cccccc"): "bar"}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_HASHED = re.compile(r"[a-zA-Z][0-9a-f]{10}")
_NUMBER = re.compile(r"\d+\.\d{3,}")

ElementTree.register_namespace("", SVG)


def inline_svg(figure: Figure, prefix: str, title: str) -> str:
    """Write a figure as an ``svg`` element with all text escaped.

    The prefix is put before every identifier, and is different for each figure of a page; the title is for readers who
    do not see the figure.
    """
    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the reader's browser has other fonts
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(stream.getvalue())
    for parent in list(root.iter()):
        for element in list(parent):
            if element.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(element)
    names = _plain_names(root)
    for element in root.iter():
        _without_style(element)
        _with_prefix(element, prefix, names)
        _shorten(element)
    root.attrib.pop("version", None)
    root.attrib.pop("height", None)
    root.set("width", f"{float(root.get('width', '0').removesuffix('pt')) * 4 / 3:.0f}")  # points to pixels
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title")
    root.set("font-family", FONTS)
    root.set("fill", "currentColor")  # what matplotlib leaves out because it is black
    heading = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{prefix}-title"})
    heading.text = title
    root.insert(0, heading)
    for element in root.iter():
        for text in ("text", "tail"):
            if not (getattr(element, text) or "").strip():
                setattr(element, text, None)
    return ElementTree.tostring(root, encoding="unicode")


def _without_style(element: ElementTree.Element) -> None:
    """Turn the declarations of a style attribute into presentation attributes, and colours into those of the page."""
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":  # what matplotlib before 3.11 writes, such as: 700 9px 'DejaVu Sans', sans-serif
            words = value.split(",")[0].split()
            element.set("font-size", next(word for word in words if word.endswith("px")))
            if "700" in words:
                element.set("font-weight", "700")
        elif name and name != "font-family":
            element.set(name, value)
    for name in ("fill", "stroke"):
        colour = element.get(name)
        if colour == "#000000":
            element.set(name, "currentColor")
        elif (name, colour) in _CLASS_OF:
            element.attrib.pop(name)
            element.set("class", f"{element.get('class', '')} {_CLASS_OF[name, str(colour)]}".strip())


def _plain_names(root: ElementTree.Element) -> dict[str, str]:
    """Names in the place of identifiers that are hashes.

    matplotlib hashes the coordinates of clipping areas and marks. Their last digit differs between two runs of its
    solver of layouts, but the same records shall give the same page.
    """
    hashed = [found for element in root.iter() if _HASHED.fullmatch(found := element.get("id", ""))]
    return {name: f"shape_{number}" for number, name in enumerate(dict.fromkeys(hashed), start=1)}


def _with_prefix(element: ElementTree.Element, prefix: str, names: dict[str, str]) -> None:
    """Put a prefix before identifiers and references to them, and replace those that ``names`` holds."""

    def full(name: str) -> str:
        return f"{prefix}-{names.get(name, name)}"

    if "id" in element.attrib:
        element.set("id", full(element.attrib["id"]))
    if XLINK in element.attrib:
        target = element.attrib.pop(XLINK)
        element.set("href", f"#{full(target[1:])}" if target.startswith("#") else target)
    for name, value in element.attrib.items():
        if "url(#" in value:
            element.set(name, _REFERENCE.sub(lambda found: f"url(#{full(found[1])})", value))


def _shorten(element: ElementTree.Element) -> None:
    """Two decimals of a point are more than a screen shows."""
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            element.set(name, _NUMBER.sub(lambda number: f"{float(number[0]):.2f}", element.attrib[name]))
