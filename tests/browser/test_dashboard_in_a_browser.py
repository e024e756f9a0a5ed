"""The page of `corral dashboard` in a real browser, on its real server: read by eye, by keyboard, and by attackers.

`CORRAL_SCREENSHOTS=DIR` saves screenshots.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, running_browser
from test_pages_in_a_browser import NARROW, PROBE, VIEWS, WIDE, console_messages

from corral.cli.support.local_page import PageResponse, PageServer, json_response
from corral.model.job_evidence import NO_CURVES, JobCurves
from corral.report.dashboard.cluster_document import Answer, ClusterView, cluster_document
from corral.report.dashboard.job_document import job_document
from corral.report.dashboard.page_files import page_files
from corral.report.diagnosis.diagnose import diagnose
from report.dashboard.synthetic_views import job_evidence, slurm, view

pytestmark = pytest.mark.browser
SHOWN_IN_S = 20.0  # a page shows a change within two; a machine that runs other tests takes longer


@dataclass
class Cluster:
    """What the server answers with, changed by tests; and how many requests it had. `problem`: of job 17.

    `curves`: what Prometheus has of that job.
    """

    view: ClusterView
    problem: str = ""
    curves: JobCurves = field(default_factory=lambda: job_evidence().curves)
    requests: int = 0

    def respond(self, path: str) -> PageResponse | None:
        self.requests += 1
        if file := page_files().get(path or "page.html"):
            return PageResponse(content_type=file.content_type, body=file.content)
        if path == "cluster.json":
            return json_response(cluster_document(self.view))
        if path == "job/17.json":
            return json_response({"error": self.problem} if self.problem else job_17(self.curves))
        return None


def job_17(curves: JobCurves) -> Any:
    seen = replace(job_evidence(), curves=curves)
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
    names = browser.value("[...document.querySelectorAll('#curve-list figcaption')].map((one) => one.firstChild.data)")
    assert names == ["tokens/s for each GPU", "MFU", "time of a step", "communication", "loss"]
    assert browser.value(FORECASTS.format("curve-list")) == [1, 1, 0, 1, 0]


FORECASTS = "[...document.querySelectorAll('#{} figure')].map((one) => one.querySelectorAll('path.forecast').length)"
LABEL = "document.querySelectorAll('#history-list svg')[{}].getAttribute('aria-label')"


def test_the_whole_run_has_gpus_and_the_network_next_to_the_forecast(browser: Browser, server: PageServer) -> None:
    show(browser, server, "#job/17")
    names = browser.value(
        "[...document.querySelectorAll('#history-list figcaption')].map((one) => one.firstChild.data)"
    )
    assert names == [
        "tokens/s for each GPU",
        "MFU",
        "GPUs at work",
        "sent by EFA, for each node",
        "communication",
    ]
    assert browser.value(FORECASTS.format("history-list")) == [1, 1, 0, 0, 1]


def test_a_line_ends_where_nothing_was_measured_and_a_single_value_is_a_dot(
    browser: Browser, server: PageServer
) -> None:
    """Tokens lack the minutes 40 to 49, 70, 71, 73 and 74; GPUs at work 40 to 49 and the last seven."""
    show(browser, server, "#job/17")
    counted = "[0, 2].map((n) => document.querySelectorAll('#history-list svg')[n]).map((one) => [{}])"
    lines = "one.querySelectorAll('polyline').length, one.querySelectorAll('circle').length"
    assert browser.value(counted.format(lines)) == [[3, 1], [2, 0]]
    first = "[...document.querySelector('#history-list svg').querySelectorAll('polyline')]"
    assert browser.value(f"{first}.map((one) => one.points.length)") == [38, 20, 16]


def test_a_curve_is_described_for_whoever_does_not_see_it(browser: Browser, server: PageServer) -> None:
    show(browser, server, "#job/17")
    tokens, gpus = browser.value(LABEL.format(0)), browser.value(LABEL.format(2))
    assert tokens.startswith("tokens/s for each GPU, 11:06 to 12:36 UTC: ")
    assert (", forecast " in tokens, tokens.endswith(", 3 gaps"), gpus.endswith(", 1 gap")) == (True, True, True)
    assert ", then nothing at the end, lowest 8" in gpus


def test_axes_have_times_and_units(browser: Browser, server: PageServer) -> None:
    show(browser, server, "#job/17")
    texts = (
        "[...document.querySelectorAll('#history-list svg')[{}].querySelectorAll('text')].map((one) => one.textContent)"
    )
    assert browser.value(texts.format(2)) == ["0 %", "50 %", "100 %", *TIMES, "time (UTC)"]
    assert browser.value(texts.format(3))[:3] == ["0 B/s", "20 GB/s", "40 GB/s"]
    assert "tokens/s" in browser.value(texts.format(0))


TIMES = ["11:06", "11:51", "12:36"]  # of a run that starts at 1795000000


def test_the_table_of_a_run_opens_by_keyboard_and_stays_open(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    show(browser, server, "#job/17", width=NARROW, dark=True)
    for _ in range(30):
        browser.press("Tab")
        if browser.value("document.activeElement.localName") == "summary":
            break
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    until(browser, "document.querySelector('#history-values').open")
    browser.press("Tab")
    assert browser.value("document.activeElement.ariaLabel") == "Values of the whole run"
    picture(browser, "dashboard-job-table")
    cluster.curves = replace(job_evidence().curves, efa_sent_bytes_per_s=())
    until(browser, "document.querySelectorAll('#history-list figure').length === 4")
    assert browser.value("[document.querySelector('#history-values').open, document.activeElement.ariaLabel]") == [
        True,
        "Values of the whole run",
    ]
    rows = "[...document.querySelectorAll('#history-rows tr')].map((one) => one.children.length)"
    assert browser.value(rows) == [5] * 89
    assert browser.value("document.querySelector('#history-rows tr td:nth-child(4)').textContent") == "–"
    assert browser.value(PROBE)["across"] == NARROW


def test_a_prometheus_that_does_not_answer_is_named_and_the_rest_is_shown(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    cluster.curves = JobCurves(is_kept=True, problem="Prometheus: no answer within 4 s")
    show(browser, server, "#job/17", width=NARROW)
    picture(browser, "dashboard-job-no-answer")
    seen = browser.value(
        "['problem', 'missing', 'list'].map((one) => document.querySelector(`#history-${one}`).textContent)"
    )
    assert seen == [
        "Prometheus: no answer within 4 s",
        "No complete curves of the run until Prometheus answers; the job's nodes keep ten minutes, whose mean is above"
        " as GPUs at work.",
        "",
    ]
    assert browser.value("document.querySelectorAll('#curve-list figure').length") == 5
    assert browser.value("getComputedStyle(document.querySelector('#history-problem')).color") == "rgb(179, 38, 30)"


def test_without_prometheus_the_page_names_how_to_have_the_whole_run(
    browser: Browser, server: PageServer, cluster: Cluster
) -> None:
    cluster.curves = NO_CURVES
    show(browser, server, "#job/17", width=NARROW, dark=True)
    picture(browser, "dashboard-job-without-prometheus")
    missing = browser.value("document.querySelector('#history-missing').textContent")
    assert missing.endswith("nothing keeps them - declare `monitoring: {prometheus: true}` (docs/monitoring.md).")
    assert browser.value("document.querySelector('#curve-legend').nextElementSibling.id") == "curve-list"
    hidden = (
        "['#history-values', '#history-list'].map((one) => document.querySelector(one).getBoundingClientRect().height)"
    )
    assert browser.value(hidden) == [0, 0]


def test_a_job_of_a_lost_server_is_grey_and_recovers(browser: Browser, cluster: Cluster) -> None:
    with PageServer(cluster.respond) as first:
        threading.Thread(target=first.serve_forever, args=(0.05,), daemon=True).start()
        show(browser, first, "#job/17", width=NARROW, dark=True)
        first.shutdown()
    until(browser, "document.querySelector('#state').className === 'lost'")
    until(browser, "document.querySelector('#job-state').className === 'bad'")
    picture(browser, "dashboard-job-lost")
    assert "grayscale" in browser.value("getComputedStyle(document.querySelector('main')).filter")
    assert browser.value("document.querySelectorAll('figure').length") == 10
    with PageServer(cluster.respond, first.server_port) as second:
        second.token = first.token
        threading.Thread(target=second.serve_forever, args=(0.05,), daemon=True).start()
        until(browser, "document.querySelector('#state').className === 'fresh'")
        until(browser, "document.querySelector('#job-state').className === ''")
        assert browser.value("document.querySelector('#job').className") == ""
        second.shutdown()


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
    assert browser.value("document.querySelectorAll('figure').length") == 10
    assert "grayscale" in browser.value("getComputedStyle(document.querySelector('#history')).filter")
    cluster.problem = ""
    until(browser, "document.querySelector('#job-state').className === ''")
    assert browser.value("getComputedStyle(document.querySelector('#history')).filter") == "none"


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
