"""Figures as inline SVG."""

from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from skldl.report._figures import _without_style, inline_svg  # what matplotlib writes, version by version


def drawn(prefix="one", text="<b>&"):
    figure = Figure(figsize=(3, 2))
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color="#000000", marker="o", label=text)
    ax.bar([0, 1], [1, 2], color="#ffffff", edgecolor="#cccccc")
    ax.set_title(text, fontweight="bold", color="#010101")
    ax.imshow(np.eye(2))
    return inline_svg(figure, prefix, "What <it> shows")


def test_it_parses_and_obeys_a_strict_policy():
    root = ElementTree.fromstring(drawn())
    assert root.get("width") == "288"
    assert "height" not in root.attrib
    for element in root.iter():
        assert "style" not in element.attrib
        assert not element.tag.endswith("}style") or not element.text
    assert "&lt;b&gt;&amp;" in drawn()


def test_colours_follow_the_page():
    text = drawn()
    assert "#000000" not in text
    assert "#ffffff" not in text
    assert "currentColor" in text
    assert 'fill="#010101"' in text
    assert 'class="paper faint"' in text
    assert ElementTree.fromstring(text).get("fill") == "currentColor"
    for element in ElementTree.fromstring(text).iter():
        if element.tag.endswith("}text"):
            assert element.get("fill") in (None, "#010101")


def test_two_figures_share_no_identifier():
    def identifiers(text):
        return {element.get("id") for element in ElementTree.fromstring(text).iter() if element.get("id")}

    one, other = identifiers(drawn("one")), identifiers(drawn("other"))
    assert one
    assert not one & other


def test_identifiers_do_not_depend_on_the_last_digit_of_a_coordinate():
    def clipped(shift):
        figure = Figure(figsize=(3, 2))
        figure.add_axes((0.1 + shift, 0.1, 0.8, 0.8)).plot([0, 1], [0, 1], marker="o")
        return inline_svg(figure, "one", "shift")

    text = clipped(0.0)
    assert 'clip-path="url(#one-shape_' in text
    assert 'href="#one-shape_' in text
    assert clipped(1e-13) == text


def test_the_title_is_the_first_thing_in_it():
    root = ElementTree.fromstring(drawn())
    assert root[0].text == "What <it> shows"
    assert root.get("aria-labelledby") == root[0].get("id")


def test_letters_without_a_glyph_stay_text():
    assert "名前" in drawn(text="名前")


def test_the_short_form_of_a_font():
    text = ElementTree.Element("text", {"style": "font: 700 9px 'DejaVu Sans', 'Verdana'; text-anchor: middle"})
    _without_style(text)
    assert text.attrib == {"font-size": "9px", "font-weight": "700", "text-anchor": "middle"}
    plain = ElementTree.Element("text", {"style": "font: 8px 'DejaVu Sans'"})
    _without_style(plain)
    assert plain.attrib == {"font-size": "8px"}
