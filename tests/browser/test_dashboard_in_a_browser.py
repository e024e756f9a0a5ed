"""The page of `corral dashboard` in a real browser, on its real server: read by eye, by keyboard, and by attackers.

`CORRAL_SCREENSHOTS=DIR` saves screenshots.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, running_browser
from test_pages_in_a_browser import PROBE, VIEWS, WIDE, console_messages

from corral.cli.support.local_page import PageResponse, PageServer, json_response
from corral.report.dashboard.cluster_document import Answer, ClusterView, cluster_document
from corral.report.dashboard.job_document import job_document
from corral.report.dashboard.page_files import page_files
from corral.report.diagnosis.diagnose import diagnose
from report.dashboard.synthetic_views import job_evidence, slurm, view

pytestmark = pytest.mark.browser
SHOWN_IN_S = 20.0  # a page shows a change within two; a machine that runs other tests takes longer


@dataclass
class Cluster:
    """What the server answers with, changed by tests; and how many requests it had. `problem`: of job 17."""

    view: ClusterView
    problem: str = ""
    requests: int = 0

    def respond(self, path: str) -> PageResponse | None:
        self.requests += 1
        if file := page_files().get(path or "page.html"):
            return PageResponse(content_type=file.content_type, body=file.content)
        if path == "cluster.json":
            return json_response(cluster_document(self.view))
        if path == "job/17.json":
            return json_response({"error": self.problem} if self.problem else job_17())
        return None


def job_17() -> Any:
    seen = job_evidence()
    return job_document(seen, diagnose(seen), datetime.now(UTC))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(view=view(datetime.now(UTC)))


@pytest.fixture
def server(cluster: Cluster) -> Iterator[PageServer]:
    with PageServer(cluster.respond) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def until(browser: Browser, condition: str) -> Any:
    """The value of the expression once it is true."""
    deadline = time.monotonic() + SHOWN_IN_S
    while not (found := browser.value(condition)):
        assert time.monotonic() < deadline, f"not within {SHOWN_IN_S:.0f} s: {condition}"
        time.sleep(0.05)
    return found


def show(browser: Browser, server: PageServer, where: str = "", *, width: int = WIDE, dark: bool = False) -> None:
    """Open the page, and wait until it shows the cluster, or the job of `where`."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(server.address + where, width=width, dark=dark)
    until(
        browser,
        "document.querySelectorAll('figure').length" if where else "document.querySelectorAll('.node').length > 999",
    )


def picture(browser: Browser, name: str) -> None:
    if directory := os.environ.get("CORRAL_SCREENSHOTS"):
        Path(directory).mkdir(parents=True, exist_ok=True)
        Path(directory, f"{name}.png").write_bytes(browser.screenshot())


@pytest.mark.parametrize("where", ["", "#job/17"], ids=["cluster", "job"])
@pytest.mark.parametrize(("width", "dark"), VIEWS)
def test_every_text_is_readable_and_a_phone_does_not_scroll_sideways(
    browser: Browser, server: PageServer, where: str, width: int, dark: bool
) -> None:
    show(browser, server, where, width=width, dark=dark)
    found = browser.value(PROBE)
    picture(browser, f"dashboard-{where[1:4] or 'cluster'}-{width}-{'dark' if dark else 'light'}")
    assert (found["across"], found["beyond"], found["faint"], found["cut"], found["nameless"], found["unscoped"]) == (
        width,
        [],
        [],
        [],
        [],
        [],
    )
    assert found["paper"] == ("rgb(21, 24, 27)" if dark else "rgb(252, 252, 251)")


def test_the_page_loads_its_own_files_alone_and_logs_nothing(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    requested = {one["request"]["url"] for one in browser.parameters("Network.requestWillBeSent")}
    assert requested - {"data:,"} == {server.address + name for name in ("", "page.css", "page.js", "cluster.json")}
    assert console_messages(browser) == []


def test_names_of_users_are_only_text(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    assert browser.value("[document.querySelectorAll('img, #owned').length, document.title]") == [0, "train dashboard"]
    show(browser, server, "#job/17")
    assert browser.value("[document.querySelectorAll('img').length, document.title]") == [0, "job 17, train"]
    assert "onerror" in browser.value("document.querySelector('#job-title').textContent")


def test_a_script_in_the_page_would_not_run(browser: Browser, server: PageServer) -> None:
    """The policy of the server, if a name ever became more than text."""
    show(browser, server)
    browser.value(
        "document.body.append(document.createRange().createContextualFragment("
        "'<script>document.title = `owned`</script><img src=x onerror=\"document.title = `owned`\">'))"
    )
    browser.value("new Promise((done) => setTimeout(done, 200))")
    assert browser.value("document.title") == "train dashboard"


def test_each_state_of_a_node_has_a_letter_and_a_word(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    numbers = (1, 97, 105, 109, 110, 111, 113)
    labels = f"[{','.join(map(str, numbers))}].map((n) => document.querySelector(`[data-node='train-${{n}}']`))"
    assert browser.value(f"{labels}.map((one) => one.textContent + ' ' + one.ariaLabel)") == [
        "A train-1: runs a job, job 17",
        "I train-97: idle",
        "B train-105: booting",
        "D train-109: draining",
        "X train-110: down",
        "S train-111: stopping",
        "· train-113: off",
    ]


def test_the_grid_is_one_stop_of_the_tab_key_and_arrows_move_in_it(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    for _ in range(6):  # the link to the content, four sections, the grid
        browser.press("Tab")
    seen = [browser.value("document.activeElement.dataset.node")]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"):
        browser.press(key)
        seen.append(browser.value("document.activeElement.dataset.node"))
    assert seen == ["train-1", "train-2", "train-3", "train-2", "train-1000", "train-1000", "train-1"]
    browser.press("ArrowDown")
    below = browser.value("[document.activeElement.offsetLeft, document.activeElement.dataset.node !== 'train-1']")
    assert below == [browser.value("document.querySelector('[data-node=train-1]').offsetLeft"), True]
    browser.press("Tab")
    assert browser.value("document.activeElement.dataset.node") is None


def test_a_node_with_focus_has_an_outline_and_its_details(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    for _ in range(6):
        browser.press("Tab")
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    details = browser.value("document.querySelector('#node-details').textContent")
    assert details == "train-1: runs a job (allocated) – job 17"


def test_enter_on_a_node_opens_its_job_and_back_returns(browser: Browser, server: PageServer) -> None:
    show(browser, server)
    for _ in range(6):
        browser.press("Tab")
    browser.press("Enter")
    until(browser, "document.querySelectorAll('figure').length")
    assert browser.value("[location.hash, document.activeElement.id]") == ["#job/17", "job-title"]
    browser.value("history.back()")
    until(browser, "!document.querySelector('#cluster').hidden")


def test_focus_stays_on_a_link_when_a_new_answer_is_shown(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    show(browser, server)
    browser.value("document.querySelector('#job-rows a').focus()")
    cluster.view = replace(cluster.view, slurm=replace(slurm(), running=3))
    until(browser, "document.querySelector('#jobs-lead').textContent.startsWith('3 running')")
    assert browser.value("document.activeElement.textContent") == "17"


def test_curves_have_the_forecast_where_it_is_known(browser: Browser, server: PageServer) -> None:
    show(browser, server, "#job/17")
    names = browser.value("[...document.querySelectorAll('figcaption')].map((one) => one.firstChild.data)")
    assert names == ["tokens/s for each GPU", "MFU", "time of a step", "communication", "loss"]
    lines = "[...document.querySelectorAll('figure')].map((one) => one.querySelectorAll('path.forecast').length)"
    assert browser.value(lines) == [1, 1, 0, 1, 0]


def test_an_old_answer_is_grey_and_shows_its_age(browser: Browser, server: PageServer, cluster: Cluster) -> None:
    cluster.view = view(datetime.now(UTC) - timedelta(seconds=200))
    show(browser, server)
    until(browser, "document.body.classList.contains('old')")
    picture(browser, "dashboard-stale")
    assert browser.value("document.querySelector('#state').textContent") == "Last answer of the head 3 min ago"
    assert "grayscale" in browser.value("getComputedStyle(document.querySelector('main')).filter")


def test_a_head_that_fails_is_named_and_recovers_by_itself(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    show(browser, server)
    good = cluster.view
    cluster.view = replace(good, of_head=Answer(at=good.of_head.at, problem="slurmctld does not answer", every_s=10))
    until(browser, "document.querySelector('#state').className === 'stale'")
    assert browser.value("document.querySelector('#state').textContent").endswith("s ago: slurmctld does not answer")
    cluster.view = replace(good, of_head=Answer(at=datetime.now(UTC), every_s=10))
    until(browser, "document.querySelector('#state').className === 'fresh'")
    assert browser.value("document.body.classList.contains('old')") is False


def test_a_lost_server_is_named_and_the_page_recovers_with_it(browser: Browser, cluster: Cluster) -> None:
    with PageServer(cluster.respond) as first:
        threading.Thread(target=first.serve_forever, args=(0.05,), daemon=True).start()
        show(browser, first)
        first.shutdown()
    until(browser, "document.querySelector('#state').className === 'lost'")
    picture(browser, "dashboard-lost")
    text = browser.value("document.querySelector('#state').textContent")
    assert text.startswith("corral dashboard does not answer: was it ended? This is ")
    with PageServer(cluster.respond, first.server_port) as second:
        second.token = first.token
        threading.Thread(target=second.serve_forever, args=(0.05,), daemon=True).start()
        until(browser, "document.querySelector('#state').className === 'fresh'")
        second.shutdown()


def test_a_job_that_cannot_be_read_any_more_is_shown_as_old(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    show(browser, server, "#job/17")
    cluster.problem = "Slurm knows no job 17"
    until(browser, "document.querySelector('#job-state').className === 'bad'")
    text = browser.value("document.querySelector('#job-state').textContent")
    assert (text.startswith("This is "), text.endswith("s old: Slurm knows no job 17")) == (True, True)
    assert browser.value("document.querySelectorAll('figure').length") == 5


def test_a_thousand_nodes_that_all_change_block_the_page_for_less_than_half_a_second(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    """Also on a machine that runs other tests. The browser reports tasks of 50 ms and more."""
    show(browser, server)
    browser.value(
        "window.longest = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
        " window.longest = Math.max(window.longest, one.duration); }).observe({ type: 'longtask' })"
    )
    group = replace(slurm().nodes[0], nodes="train-[1-1000]", count=1000)
    cluster.view = replace(cluster.view, slurm=replace(slurm(), nodes=(group,)))
    until(browser, "document.querySelectorAll('#queues .allocated').length === 1000")
    assert browser.value("new Promise((done) => setTimeout(() => done(window.longest), 100))") < 500
