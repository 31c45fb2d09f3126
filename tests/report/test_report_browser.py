"""The page in a real browser, under its own content security policy."""

from itertools import pairwise

import pytest

SCRIPT = "<script>alert(1)</script>"
OUTSIDE = """
return [...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && !element.closest(".scroll, .skip, caption") && (box.right > innerWidth + 1 || box.left < -1);
}).map((element) => element.outerHTML.slice(0, 120));
"""
COLUMN = """
const table = document.querySelectorAll("#tables table.sortable")[0];
return [...table.tBodies[0].rows].map((row) => row.cells[arguments[0]].textContent.trim());
"""
HEADING = 'document.querySelectorAll("#tables table.sortable")[0].querySelectorAll("thead button")[arguments[0]]'


@pytest.fixture
def page(healthy_page):
    return healthy_page


@pytest.mark.parametrize("dark", [False, True])
def test_it_loads_without_errors_and_asks_for_nothing(browser, page, dark):
    browser.open(page, dark=dark)
    assert browser.log("browser") == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_overflows(browser, page, width):
    browser.open(page, width)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(OUTSIDE) == []


@pytest.mark.parametrize("width", [390, 1400])
def test_names_of_rows_are_whole(browser, page, width):
    browser.open(page, width)
    cut = browser.run("""
    return [...document.querySelectorAll("tbody th")].filter((name) =>
      name.offsetParent && (name.scrollWidth > name.clientWidth + 1 || name.clientHeight > 120)
    ).map((name) => name.textContent);
    """)
    assert cut == []


@pytest.mark.parametrize("width", [360, 390, 1400])
def test_no_text_leaves_its_picture(browser, page, width):
    browser.open(page, width)
    cut = browser.run("""
    return [...document.querySelectorAll("figure svg text")].filter((text) => {
      const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
      return box.left < frame.left - 2 || box.right > frame.right + 2
        || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
    }).map((text) => text.ownerSVGElement.id + ": " + text.textContent);
    """)
    assert cut == []


@pytest.mark.parametrize("width", [360, 390, 700, 1400])
@pytest.mark.parametrize("kind", ["healthy_page", "broken_page"])
def test_figures_fit_the_screen_and_can_be_read(browser, request, kind, width):
    browser.open(request.getfixturevalue(kind), width)
    shown = browser.run("""
    return [...document.querySelectorAll("figure")].map((figure) => {
      const pictures = [...figure.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width);
      const scroll = [...figure.querySelectorAll("*")].some((part) => part.scrollWidth > part.clientWidth + 1
        && getComputedStyle(part).overflowX === "auto");
      const sizes = pictures.flatMap((svg) => [...svg.querySelectorAll("text")].map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a));
      return {name: figure.id, count: pictures.length, scroll, right: pictures[0].getBoundingClientRect().right,
              size: Math.min(99, ...sizes)};
    });""")
    assert len(shown) > 5
    for figure in shown:
        assert figure["count"] == 1, figure
        assert not figure["scroll"], figure
        assert figure["right"] <= width, figure
        assert figure["size"] > 7, figure  # pixels; the smallest letters are drawn with 6.5 points, 8.7 pixels


@pytest.mark.parametrize("width", [390, 1400])
def test_typical_examples_name_their_labels(browser, page, width):
    browser.open(page, width)
    words = browser.run("""
    return [...document.querySelectorAll("#figure-examples svg")].filter((svg) => svg.getBoundingClientRect().width)
      .flatMap((svg) => [...svg.querySelectorAll("text")].map((text) => text.textContent));""")
    assert words.count("plain") == 1
    assert words.count("label_2") == 2  # of the datasets with 18 and with 3 labels


def test_cells_without_a_number_stand_below_the_numbers(browser, broken_page):
    browser.open(broken_page)
    columns = browser.run("""
        return [...document.querySelectorAll("table.sortable")].flatMap((table) => {
          const rows = [...table.tBodies[0].rows];
          return [...rows[0].cells].slice(1).map((_, column) => rows.map((row) => {
            const cell = row.cells[column + 1];
            return [cell.textContent.trim(), cell.dataset.v !== "", getComputedStyle(cell).textAlign];
          }));
        });""")
    mixed = [cells for cells in columns if len({number for _, number, _ in cells}) == 2]
    assert any("–" in (text for text, _, _ in cells) for cells in mixed)
    for cells in columns:
        sides = {side for _, _, side in cells}
        assert sides == ({"right"} if any(number or text == "–" for text, number, _ in cells) else {"left"}), cells
    assert any(side == "left" for cells in columns for _, _, side in cells)


def test_contents_stay_beside_the_text_on_a_wide_screen_and_above_it_on_a_phone(browser, page):
    boxes = """
    const nav = document.querySelector(".toc").getBoundingClientRect();
    const main = document.getElementById("main").getBoundingClientRect();
    return {navRight: nav.right, navTop: nav.top, navBottom: nav.bottom, mainLeft: main.left, mainTop: main.top};
    """
    browser.open(page, 1400)
    browser.run(
        'document.documentElement.style.scrollBehavior = "auto"; document.getElementById("tests").scrollIntoView()'
    )
    wide = browser.run(boxes)
    assert wide["navRight"] <= wide["mainLeft"]
    assert wide["mainTop"] < -500
    assert 0 <= wide["navTop"] < 100
    browser.open(page, 390)
    phone = browser.run(boxes)
    assert phone["navBottom"] <= phone["mainTop"]
    assert browser.run('return getComputedStyle(document.querySelector(".toc ul ul")).display') == "none"


def test_contents_mark_the_part_that_is_read(browser, page):
    browser.open(page)
    marked = 'return [...document.querySelectorAll(".toc [aria-current]")].map((link) => link.hash)'
    assert browser.run(marked) == ["#answer"]
    browser.run(
        'document.documentElement.style.scrollBehavior = "auto"; document.getElementById("tests").scrollIntoView()'
    )
    found = browser.call(
        "POST",
        f"{browser.session}/execute/async",
        {"script": "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))", "args": []},
    )
    assert isinstance(found, int | float)
    assert browser.run(marked) == ["#tests"]


def test_a_link_in_the_contents_opens_its_table(browser, page):
    browser.open(page)
    table = 'document.getElementById("table-time").open'
    assert browser.run(f"return {table}") is False
    browser.run("document.querySelector(\".toc a[href='#table-time']\").click()")
    assert browser.run(f"return {table}") is True


def test_the_figure_of_skill_is_in_the_first_window(browser, page):
    browser.open(page, 1400, 900)
    assert browser.run('return document.getElementById("figure-skill").getBoundingClientRect().top') < 700


def test_sorting_by_click(browser, page):
    browser.open(page)
    before = browser.run(COLUMN, 1)
    numbers = [float(word.split()[0]) for word in before]
    orders = []
    for expected in ("ascending", "descending", "none"):
        browser.run(f"{HEADING}.click()", 1)
        orders.append([float(word.split()[0]) for word in browser.run(COLUMN, 1)])
        assert browser.run(f'return {HEADING}.parentNode.getAttribute("aria-sort")', 1) == expected
    assert orders == [sorted(numbers), sorted(numbers, reverse=True), numbers]
    browser.run(f"{HEADING}.click()", 0)
    assert browser.run(COLUMN, 0) == sorted(browser.run(COLUMN, 0), key=str.casefold)
    assert browser.run(f'return {HEADING}.parentNode.getAttribute("aria-sort")', 1) == "none"


def test_sorting_by_keyboard(browser, page):
    browser.open(page)
    browser.run(f"{HEADING}.focus()", 1)
    browser.press("Enter")
    assert browser.run(f'return {HEADING}.parentNode.getAttribute("aria-sort")', 1) == "ascending"


def test_a_click_marks_a_dataset_in_every_table(browser, page):
    browser.open(page)
    count = 'return document.querySelectorAll("tr.marked").length'
    browser.run('document.querySelector("#tables tbody tr td").click()')
    assert browser.run(count) > 5
    assert (
        browser.run(
            'return new Set([...document.querySelectorAll("tr.marked")].map((r) => r.cells[0].textContent)).size'
        )
        == 1
    )
    assert browser.run('return document.querySelector("tr.marked button").getAttribute("aria-pressed")') == "true"
    browser.run('document.querySelector("#tables tbody tr th button").click()')
    assert browser.run(count) == 0


def test_dangerous_names_are_shown_as_text(browser, page):
    browser.open(page)
    assert browser.run('return document.querySelector("#tables tbody th").textContent') == SCRIPT
    assert SCRIPT in browser.run("return document.body.innerText")
    assert browser.run("return document.scripts.length") == 1
    assert browser.run('return document.querySelector("#pick-dataset").options[0].text') == SCRIPT


def test_the_instance_browser(browser, page):
    browser.open(page)
    assert browser.run('return document.querySelector("#browser").hidden') is False
    assert browser.run('return document.querySelector("#all-instances").hidden') is True
    choose = """
    const pick = document.getElementById(arguments[0]);
    pick.selectedIndex = arguments[1];
    pick.dispatchEvent(new Event("change"));
    """
    browser.run(choose, "pick-dataset", 1)
    browser.run(choose, "pick-instance", 2)
    shown = browser.run("""
    const table = document.querySelector("#numbers table");
    const original = document.querySelectorAll("details.dataset")[1].querySelectorAll("table")[2];
    return {same: table.outerHTML === original.outerHTML, caption: table.caption.textContent,
            said: document.getElementById("best-by").textContent,
            bars: document.querySelectorAll("#chart rect.bar").length,
            marks: document.querySelectorAll("#chart svg [fill^='#']").length};
    """)
    assert shown["same"]
    assert shown["caption"].startswith("Yeast_alpha, instance ")
    assert shown["bars"] == 18
    assert shown["marks"] == 18 * 3
    assert shown["said"].startswith(shown["caption"] + ". Best by ")
    browser.run('document.querySelector("#pick-candidates input").click()')
    assert browser.run("""return document.querySelectorAll("#chart svg [fill^='#']").length""") == 18 * 2
    row = browser.run('return document.querySelector("#numbers table").dataset.row')
    browser.run('document.getElementById("next").click()')
    assert browser.run('return document.querySelector("#numbers table").dataset.row') != row
    browser.run('document.getElementById("previous").click()')
    assert browser.run('return document.querySelector("#numbers table").dataset.row') == row
    assert browser.log("browser") == []


def test_bars_are_as_long_as_the_degrees(browser, page):
    browser.open(page)
    found = browser.run("""
    const real = [...document.querySelectorAll("#numbers tbody tr")].map((row) => Number(row.cells[1].textContent));
    const bars = [...document.querySelectorAll("#chart rect.bar")].map((bar) => Number(bar.getAttribute("width")));
    return {real, bars};
    """)
    ratio = [bar / degree for bar, degree in zip(found["bars"], found["real"], strict=True)]
    assert ratio == pytest.approx([ratio[0]] * len(ratio), rel=1e-6)


def test_everything_is_there_without_javascript(browser, page):
    browser.open(page, script=False)
    found = browser.devtools("Runtime.evaluate", expression="1", returnByValue=True)  # devtools may still look
    assert found["result"]["value"] == 1
    look = """({hidden: document.getElementById("all-instances").hidden,
                tables: document.querySelectorAll("table.instance").length,
                buttons: document.querySelectorAll("thead button").length,
                hint: document.querySelector(".hint").hidden})"""
    state = browser.devtools("Runtime.evaluate", expression=look, returnByValue=True)["result"]["value"]
    assert state == {"hidden": False, "tables": 60, "buttons": 0, "hint": True}


def test_dark_mode_has_light_text_on_dark_ground(browser, page):
    def lightness(colour):
        red, green, blue = (int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(","))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    colours = """
    const text = document.querySelector("figure svg text:not([fill])");
    const body = getComputedStyle(document.body);
    return [body.backgroundColor, body.color, getComputedStyle(text).fill];
    """
    for dark in (False, True):
        browser.open(page, dark=dark)
        ground, ink, figure = (lightness(colour) for colour in browser.run(colours))
        assert (ground < 60) == dark
        assert abs(ground - ink) > 150
        assert figure == ink


def test_it_prints(browser, page):
    browser.open(page)
    assert browser.print().startswith(b"%PDF")
    assert browser.log("browser") == []


def test_controls_have_names(browser, page):
    browser.open(page)
    names = browser.run("""
    return [...document.querySelectorAll("select, input, button")].map(
      (control) => (control.labels?.[0]?.textContent ?? control.textContent).trim());
    """)
    assert names
    assert all(names)
    headings = browser.run('return [...document.querySelectorAll("h1, h2, h3")].map((h) => Number(h.tagName[1]))')
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))


@pytest.mark.parametrize("width", [390, 1400])
def test_reports_with_failures_too(browser, broken_page, width):
    browser.open(broken_page, width)
    assert browser.log("browser") == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(OUTSIDE) == []
