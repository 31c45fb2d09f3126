"""The files of the site: links lead to files and places that exist, and nothing is loaded from outside."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow
LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("embed", "src")}


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that links can lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") not in ("canonical", "author", "license"):
            self.loads.append(found["href"])
        self.loads += [found[key] for kind, key in LOADS if kind == tag and found.get(key)]
        self.loads += [word.split()[0] for word in (found.get("srcset") or "").split(",") if word.strip()]


@pytest.fixture(scope="module")
def pages(site):
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_nothing_is_loaded_from_outside(site, pages):
    outside = [(path.name, load) for path, page in pages.items() for load in page.loads if urlsplit(load).scheme]
    assert [entry for entry in outside if not entry[1].startswith("data:")] == []
    for path in site.rglob("*.css"):
        found = re.findall(r"(?:@import|url\()\s*['\"]?(https?:|//)", path.read_text(encoding="utf-8"))
        assert found == [], path


def test_links_lead_somewhere(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or (not parts.path and not parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment) if target in pages else ""
            if not target.is_file() or (place and place not in pages[target].places):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    assert broken == []


def test_every_section_is_there(pages, site):
    titles = {path.relative_to(site.resolve()).as_posix() for path in pages}
    wanted = {"start", "what-is-ldl", "choose", "user-guide/index", "gallery/index", "reproduction", "leaderboard"}
    wanted |= {"api/index", "coming-from-python-ldl", "coming-from-matlab", "coming-from-scikit-learn", "glossary"}
    wanted |= {"project/changelog", "project/contributing", "project/citing"}
    assert {f"{name}.html" for name in wanted} <= titles
    assert sum(name.startswith("gallery/") for name in titles) > 15
