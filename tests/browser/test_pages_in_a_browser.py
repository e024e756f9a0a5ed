"""Every page that corral writes, in a real browser: no requests, no console messages, all text visible and readable.

`CORRAL_SCREENSHOTS=DIR` saves a screenshot of each page at each width, light and dark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser_pages import PAGES
from chromium import Browser, running_browser

pytestmark = pytest.mark.browser
PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
WIDE, NARROW = 1280, 400  # CSS pixels: a desktop, a phone
VIEWS = tuple((width, dark) for width in (WIDE, NARROW) for dark in (False, True))
_LOUD = ("warning", "error", "assert")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture(scope="module", params=sorted(PAGES))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    file.write_text(PAGES[request.param](), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def views(browser: Browser, page: Path) -> Mapping[tuple[int, bool], Mapping[str, Any]]:
    """The findings of the probe by width and whether the page is dark."""
    found = {}
    for width, dark in VIEWS:
        browser.open(page, width=width, dark=dark)
        found[width, dark] = {
            **browser.value(PROBE),
            "console": console_messages(browser),
            "requests": requests(browser),
        }
        if directory := os.environ.get("CORRAL_SCREENSHOTS"):
            name = f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
            Path(directory).mkdir(parents=True, exist_ok=True)
            Path(directory, name).write_bytes(browser.screenshot())
    return found


def console_messages(browser: Browser) -> list[str]:
    """The warnings and errors of the page, and of the browser about it."""
    console = [str(one["args"]) for one in browser.parameters("Runtime.consoleAPICalled") if one["type"] in _LOUD]
    logged = [one["entry"]["text"] for one in browser.parameters("Log.entryAdded") if one["entry"]["level"] in _LOUD]
    thrown = [one["exceptionDetails"]["text"] for one in browser.parameters("Runtime.exceptionThrown")]
    return [*console, *logged, *thrown]


def requests(browser: Browser) -> list[str]:
    """The URLs that the page requested."""
    return [one["request"]["url"] for one in browser.parameters("Network.requestWillBeSent")]


def test_console_messages_and_requests_of_a_page_are_recorded(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><img src='none.png'><script>console.warn('loud'); gone()</script>", encoding="utf-8")
    browser.open(bad, width=WIDE)
    browser.value("new Promise((done) => setTimeout(done, 0))")
    assert [one.rpartition("/")[2] for one in requests(browser)] == ["bad.html", "none.png"]
    assert len(console_messages(browser)) == 3  # the warning, the missing image, the missing function


def test_probe_finds_every_kind_of_problem(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'>"
        "<section id=a><h2>A</h2><p style='width: 700px; color: #ccc'>pale</p></section>"
        "<section id=b style='display: none'><h2>B</h2></section><section id=c>no heading</section>"
        "<table><tr><th>head</th></tr></table><svg><text x='-2' y='20' fill='#eee'>x</text></svg><a href='#z'>z</a>",
        encoding="utf-8",
    )
    browser.open(bad, width=NARROW)
    found = browser.value(PROBE)
    assert {name: value for name, value in found.items() if name not in ("paper", "links", "pictures", "across")} == {
        "sections": ["a", "b", "c"],
        "hidden": ["b"],
        "untitled": ["b", "c"],
        "beyond": ['p "pale"'],
        "faint": ['p "pale": 1.6', 'text "x": 1.2'],
        "cut": ['text "x"'],
        "nameless": ['<svg><text x="-2" y="20" fill="#eee">x</text></svg>'],
        "unscoped": ['th "head"'],
        "deadLinks": ["#z"],
    }
    assert found["across"] > NARROW


def test_console_is_empty(views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert {view: found["console"] for view, found in views.items() if found["console"]} == {}


def test_page_requests_nothing_but_itself(page: Path, views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert [found["requests"] for found in views.values()] == [[page.as_uri()]] * len(VIEWS)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_section_and_its_heading_are_visible(views: Mapping[Any, Mapping[str, Any]], width: int) -> None:
    found = views[width, False]
    assert found["sections"] != []
    assert (found["hidden"], found["untitled"]) == ([], [])


def test_phone_does_not_scroll_sideways(views: Mapping[Any, Mapping[str, Any]]) -> None:
    found = views[NARROW, False]
    assert (found["across"], found["beyond"]) == (NARROW, [])


def test_dark_page_has_a_dark_background(views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert (views[WIDE, False]["paper"], views[WIDE, True]["paper"]) == ("rgb(252, 252, 251)", "rgb(21, 24, 27)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_contrasts_with_its_background(views: Mapping[Any, Mapping[str, Any]], dark: bool) -> None:
    assert views[WIDE, dark]["faint"] == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_text_of_an_svg_is_cut_off(views: Mapping[Any, Mapping[str, Any]], width: int) -> None:
    assert views[width, False]["cut"] == []


def test_every_svg_has_a_name(views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert views[WIDE, False]["nameless"] == []


def test_every_table_header_has_a_scope(views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert views[WIDE, False]["unscoped"] == []


def test_every_link_has_a_target(views: Mapping[Any, Mapping[str, Any]]) -> None:
    assert (views[WIDE, False]["links"] != [], views[WIDE, False]["deadLinks"]) == (True, [])


def test_tab_key_reaches_every_link_in_order(
    browser: Browser, page: Path, views: Mapping[Any, Mapping[str, Any]]
) -> None:
    links = views[WIDE, False]["links"]
    browser.open(page, width=WIDE)
    reached = []
    for _ in links:
        browser.press("Tab")
        reached.append(browser.value("document.activeElement.getAttribute('href')"))
    assert reached == links


def test_page_can_be_printed(browser: Browser, page: Path) -> None:
    browser.open(page, width=WIDE)
    printed = browser.pdf()
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 1


def test_browser_shows_the_scatter_chart_of_the_docs(browser: Browser) -> None:
    browser.open(Path(__file__).parents[2] / "docs/forecast.svg", width=WIDE)
    title = browser.value("document.documentElement.querySelector('title').textContent")
    assert (title != "", console_messages(browser), len(requests(browser))) == (True, [], 1)
