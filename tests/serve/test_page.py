"""The page in a real browser: its form, what it draws, keyboard, small screens, and nothing from outside."""

import time

import pytest

import skldl
from skldl.data import Columns
from skldl.tabular import FitOptions, fit_table

pytest.importorskip("uvicorn", reason="needs the extra serve")


class Address:
    def __init__(self, url):
        self._url = url

    def as_uri(self):
        return self._url


@pytest.fixture(scope="module")
def page(faces, faces_model, tmp_path_factory):
    """A service in a thread of this process, with a model of every kind of column that keeps rows."""
    import asyncio
    import threading

    import uvicorn

    from skldl.serve import Service, make_app

    table = faces.assign(note=["a good day", "rain, rain <b>again</b>"] * 60, when=["2024-05-31", "2023-01-02"] * 60)
    fitted = fit_table(
        table,
        Columns("emo_*", drop=["person"], text=["note"]),
        model="sa-bfgs",
        settings={"alpha": 0.01},
        options=FitOptions(intervals=True, keep_rows=50),
    )
    path = skldl.save(fitted.model, tmp_path_factory.mktemp("page") / "mixed.skldl", description=fitted.description)
    service = Service({"mixed": path, "faces": faces_model})
    config = uvicorn.Config(
        make_app(service, log_requests=False), port=0, log_config=None, access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Address(f"http://127.0.0.1:{port}/")
    server.should_exit = True
    thread.join(timeout=30)
    service.close()


def wait_until(condition, what=""):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def wait(browser, condition):
    wait_until(lambda: browser.run(f"return Boolean({condition})"), condition)


def opened(browser, page, **options):
    browser.open(page, **options)
    wait(browser, 'document.querySelector("#effects td") && document.querySelector("#rows td")')


SHARES = 'return [...document.querySelectorAll("#bars .value")].map((value) => parseFloat(value.textContent))'


def test_it_loads_asks_for_nothing_outside_and_fits_its_window(browser, page):
    for dark, width in ((False, 1300), (True, 390)):
        opened(browser, page, dark=dark, width=width)
        assert browser.log("browser") == []
        assert all(url.startswith((page.as_uri(), "data:")) for url in browser.requests())
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert sum(browser.run(SHARES)) == pytest.approx(100, abs=0.3)


def test_intervals_and_dates_are_explained(browser, page):
    opened(browser, page)
    assert "probability 90 %" in browser.run('return document.getElementById("interval").innerText')
    assert browser.run('return document.querySelectorAll("#bars .range").length') == 3
    assert "radius" in browser.run('return document.getElementById("summary").innerText')
    assert "written as YYYY-MM-DD" in browser.run("return document.body.innerText")
    assert browser.run("return [number(8.38e-5), number(-2.5e12)]") == ["8.38 × 10⁻⁵", "-2.50 × 10¹²"]


def test_every_field_has_a_label_and_a_name_for_screen_readers(browser, page):
    opened(browser, page)
    nameless = browser.run("""
    return [...document.querySelectorAll("input, select, textarea, button")]
      .filter((each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim())
      .map((each) => each.outerHTML)
    """)
    assert nameless == []
    tree = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = {(node["role"]["value"], node.get("name", {}).get("value")) for node in tree if "role" in node}
    for role, name in (
        ("slider", "age, slider"),
        ("spinbutton", "age"),
        ("combobox", "town"),
        ("textbox", "note"),
        ("heading", "Predicted distribution"),
    ):
        assert (role, name) in roles
    wait(browser, 'document.getElementById("spoken").textContent.includes("emo_joy")')


def test_a_slider_moves_the_distribution_by_keyboard(browser, page):
    opened(browser, page)
    before = browser.run(SHARES)
    browser.run('document.querySelector("input[type=range]").focus()')
    for _ in range(30):
        for kind in ("rawKeyDown", "keyUp"):
            browser.devtools(
                "Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39
            )
    wait_until(lambda: browser.run(SHARES) != before)
    assert browser.run(SHARES)[0] > before[0]  # joy grows with age
    assert browser.run('return document.querySelector("input[type=number]").value').isdigit()  # whole years


SET = """
const field = document.querySelector(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event(arguments[2], { bubbles: true }));
"""


def test_typing_a_text_and_clearing_a_number(browser, page):
    opened(browser, page)
    before = browser.run(SHARES)
    browser.run('document.querySelector("textarea").focus()')
    browser.devtools("Input.insertText", text="rain, rain <b>again</b>")
    wait_until(lambda: browser.run(SHARES) != before)
    browser.run(SET, "input[type=number]", "", "input")
    wait(browser, '[...document.querySelectorAll("#effects th")].some((each) => each.textContent === "age is missing")')
    assert browser.run('return document.querySelector("#rows").rows.length') == 6
    assert browser.run('return document.querySelectorAll("#rows b").length') == 0


def test_an_error_is_shown_and_goes_away(browser, page):
    opened(browser, page)
    browser.run(SET, "#fields input[type=text]", "tomorrow", "input")
    wait(browser, 'document.getElementById("error").textContent.includes("expects a date")')
    browser.run(SET, "#fields input[type=text]", "2024-05-31", "input")
    wait(browser, '!document.getElementById("error").textContent')


IN_SIGHT = """
const box = document.querySelector(arguments[0]).getBoundingClientRect();
return box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight;
"""


def test_on_a_phone_the_error_and_the_field_are_in_sight(browser, page):
    opened(browser, page, width=390, height=844)
    browser.run('document.querySelector("#fields input[type=text]").focus()')
    browser.run(SET, "#fields input[type=text]", "tomorrow", "input")
    wait(browser, 'document.getElementById("error").textContent.includes("expects a date")')
    browser.run('document.querySelector("#fields input[type=text]").scrollIntoView()')
    assert browser.run(IN_SIGHT, "#error")
    assert browser.run("return getComputedStyle(document.getElementById('bars')).opacity") == "0.35"
    covered = browser.run("""
    const field = document.querySelector("#fields input[type=text]").getBoundingClientRect();
    return document.querySelector(".near").getBoundingClientRect().bottom - field.top;
    """)
    assert covered <= 0
    browser.run(SET, "#fields input[type=text]", "2024-05-31", "input")
    wait(browser, '!document.getElementById("bars").classList.contains("stale")')


def test_on_a_wide_screen_a_long_form_leaves_the_prediction_in_sight(browser, page):
    opened(browser, page, width=1300, height=420)
    browser.run('document.getElementById("reset").scrollIntoView({block: "nearest"})')
    assert browser.run(IN_SIGHT, "#reset")
    assert browser.run('const form = document.getElementById("form"); return form.scrollHeight > form.clientHeight')
    assert browser.run('return document.getElementById("bars").getBoundingClientRect().bottom') > 0


def test_effects_have_the_same_decimals_and_degrees_are_percentages(browser, page):
    opened(browser, page)
    cells = browser.run('return [...document.querySelectorAll("#effects td")].map((cell) => cell.textContent)')
    assert len({len(cell.partition(".")[2]) for cell in cells}) == 1
    marked = browser.run('return [...document.querySelectorAll("#effects td.minus")].map((cell) => cell.textContent)')
    assert marked == [cell for cell in cells if cell.startswith("\N{MINUS SIGN}")]
    assert browser.run('return document.querySelector("#rows tbody tr").lastChild.textContent').endswith(" %")
    texts = "[aligned(0.4)(-0.0001), aligned(0.4)(-0.12345), aligned(1234)(5), aligned(0)(0), aligned(3e-12)(-2e-12)]"
    assert browser.run(f"return {texts}") == ["0.000", "\N{MINUS SIGN}0.123", "5", "0", "0"]
    assert browser.run("return [short(-0.00245000000001), short(41)]") == [-0.00245, 41]


def test_a_table_is_uploaded_and_its_predictions_downloaded(browser, page):
    opened(browser, page)
    browser.run("""
    const files = new DataTransfer();
    files.items.add(new File(["age,town,smoker,note,when\\n30,Ulm,no,good,2024-05-31\\n"], "new.csv"));
    const input = document.getElementById("file");
    input.files = files.files;
    input.dispatchEvent(new Event("change", {bubbles: true}));
    """)
    wait(browser, 'document.querySelector("#done a")')
    browser.run(
        """
    fetch(document.querySelector("#done a").href).then((answer) => answer.text()).then((text) => { window.got = text; })
    """
    )
    wait(browser, "window.got")
    assert browser.run("return window.got").startswith("emo_joy,emo_anger,emo_fear,top,entropy,low_emo_joy,")
    assert browser.run('return document.querySelector("#done a").download') == "new-predictions.csv"


def test_the_other_model_can_be_chosen(browser, page):
    opened(browser, page)
    browser.run(SET, "#models", "faces", "change")
    wait(browser, 'document.getElementById("model").textContent === "faces"')
    wait(browser, 'document.querySelectorAll("#fields .field").length === 3')
    wait(browser, 'document.getElementById("nearest").hidden')
