"""The site in a real browser, from file://: navigation, search, formulae, figures, dark mode, a phone."""

import time

import pytest

pytestmark = pytest.mark.slow
PAGES = [
    "index.html",
    "start.html",
    "what-is-ldl.html",
    "choose.html",
    "user-guide/index.html",
    "measures.html",
    "gallery/index.html",
    "gallery/species_abundances.html",
    "leaderboard.html",
    "api/skldl.metrics.html",
    "api/skldl.experiments.statistics.html",
    "api/generated/skldl.SABFGS.html",
    "api/command-line.html",
    "glossary.html",
    "project/citing.html",
]
PHONE = {"width": 390, "height": 844}
CUT_TITLES = """
const titles = [...document.querySelectorAll("h1, h2, h3, .prev-next-area a")];
return titles.filter((title) => title.scrollWidth > title.clientWidth + 1).map((title) => title.innerText);
"""


def wait(browser, condition):
    """Wait until an expression of JavaScript is true."""
    end = time.monotonic() + 30
    while not browser.run(f"return Boolean({condition})"):
        assert time.monotonic() < end, condition
        time.sleep(0.1)


def errors(browser):
    return [entry["message"] for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def opened(browser, site, page, **options):
    browser.open(site / page, **options)
    wait(browser, 'document.readyState === "complete"')
    if browser.run('return document.querySelectorAll(".math").length'):
        wait(browser, 'document.querySelector("mjx-container svg")')


def faults(browser, size, dark):
    """What is wrong with the open page: errors, requests to other places, overflow, cut titles, theme, pictures."""
    found = errors(browser)
    found += [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
    if browser.run("return document.documentElement.scrollWidth") > size["width"]:
        found.append("wider than the window")
    found += browser.run(CUT_TITLES)
    if browser.run("return document.documentElement.dataset.theme") != ("dark" if dark else "light"):
        found.append("wrong theme")
    broken = "[...document.images].filter((image) => image.complete && !image.naturalWidth).map((image) => image.src)"
    return found + browser.run(f"return {broken}")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_on_a_wide_screen(browser, site, page):
    opened(browser, site, page, width=1400)
    assert faults(browser, {"width": 1400}, dark=False) == []


@pytest.mark.parametrize("width", [1300, 1100])
def test_the_header_has_one_row(browser, site, width):
    opened(browser, site, "results.html", width=width)
    top = 'Math.round(document.querySelector(".bd-header {}").getBoundingClientRect().top)'
    links, switch = (browser.run(f"return {top.format(part)}") for part in (".navbar-nav", ".theme-switch-container"))
    assert abs(links - switch) < 20


def test_every_page_on_a_phone_in_the_dark(browser, site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 300
    found = {}
    for page in pages:
        browser.open(page, dark=True, **PHONE)
        found[page.relative_to(site).as_posix()] = faults(browser, PHONE, dark=True)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_navigation(browser, site):
    opened(browser, site, "index.html")
    browser.run('[...document.querySelectorAll("header a")].find((a) => a.innerText.trim() === "User guide").click()')
    wait(browser, 'document.querySelector("h1").innerText.startsWith("User guide")')
    browser.run('document.querySelector(".bd-sidebar-primary nav a[href*=uncertainty]").click()')
    wait(browser, 'document.querySelector("h1").innerText.startsWith("How sure a prediction is")')
    browser.run('document.querySelector("a.right-next").click()')
    wait(browser, 'document.querySelector("h1").innerText.startsWith("Raters of unequal quality")')
    assert errors(browser) == []


def test_code_words_of_the_pages_lead_to_the_reference(browser, site):
    opened(browser, site, "choose.html")
    browser.run('[...document.querySelectorAll("td a")].find((a) => a.innerText === "KernelRidgeLDL").click()')
    wait(browser, 'document.querySelector("h1").innerText.startsWith("skldl.KernelRidgeLDL")')


def test_search(browser, site):
    opened(browser, site, "start.html")
    browser.run('document.querySelector("header .search-button__button").click()')
    wait(browser, 'document.querySelector("dialog[open] input[name=q], .search-button__wrapper.show input[name=q]")')
    browser.run("""
    const field = document.querySelector("dialog[open] input[name=q], .search-button__wrapper.show input[name=q]");
    field.value = "conformal";
    field.form.submit();
    """)
    wait(browser, 'document.querySelectorAll("ul.search li a").length > 3')
    found = browser.run('return [...document.querySelectorAll("ul.search li a")].map((a) => a.innerText)')
    assert any("ConformalLDL" in title for title in found)
    browser.run('document.querySelector("ul.search li a").click()')
    wait(browser, 'document.querySelector("h1") && !location.pathname.endsWith("search.html")')
    assert errors(browser) == []


def test_formulae_are_drawn(browser, site):
    opened(browser, site, "what-is-ldl.html")
    heights = 'return [...document.querySelectorAll("mjx-container svg")].map((s) => s.getBoundingClientRect().height)'
    assert min(browser.run(heights)) > 5
    for page in ("what-is-ldl.html", "measures.html", "api/skldl.metrics.html"):
        opened(browser, site, page)
        wait(browser, 'document.querySelectorAll(".math").length <= document.querySelectorAll("mjx-container").length')
        assert browser.run('return document.querySelectorAll("[data-mml-node=merror]").length') == 0, page


def test_figures_are_shown(browser, site):
    opened(browser, site, "gallery/votes.html")
    widths = browser.run('return [...document.querySelectorAll("img.sphx-glr-single-img")].map((i) => i.naturalWidth)')
    assert len(widths) == 2
    assert min(widths) > 300


def test_the_theme_can_be_switched(browser, site):
    opened(browser, site, "start.html")
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(colour)
    browser.run('document.querySelector(".theme-change-button[data-mode=dark]").click()')
    wait(browser, 'document.documentElement.dataset.theme === "dark"')
    assert browser.run(colour) != light
    browser.run("localStorage.clear()")


def test_the_menu_opens_on_a_phone(browser, site):
    opened(browser, site, "user-guide/index.html", **PHONE)
    hidden = 'document.querySelector("dialog.pst-sidebar-modal, #pst-primary-sidebar-modal, .bd-sidebar-primary")'
    browser.run('document.querySelector("header .primary-toggle").click()')
    wait(browser, f"{hidden}.getBoundingClientRect().width > 200")
    shown = '[...document.querySelectorAll("dialog[open] a")].some((a) => a.innerText.trim() === "Gallery")'
    wait(browser, shown)


@pytest.mark.parametrize("page", ["choose.html", "coming-from-python-ldl.html"])
def test_tables_of_text_fit_a_phone(browser, site, page):
    opened(browser, site, page, **PHONE)
    table = 'document.querySelector(".bd-article .pst-scrollable-table-container")'
    assert browser.run(f"return {table}.scrollWidth - {table}.clientWidth") <= 1


def test_the_chart_can_be_read_on_a_phone(browser, site):
    opened(browser, site, "choose.html", **PHONE)
    widths = browser.run(
        "const i = document.querySelector('img[src$=\"choose.png\"]'); return [i.width, i.naturalWidth]"
    )
    assert widths[1] / 160 * 96 / widths[0] < 1.6  # letters of 14 pixels at 160 dots per inch have 9 at least
