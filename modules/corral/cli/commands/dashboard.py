"""`corral dashboard`: a live page of a cluster and its jobs, on this machine alone."""

from __future__ import annotations

import html
import os
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from corral.cli.support.cluster_watch import ClusterWatch, Source, joined_events
from corral.cli.support.cost_report import read_pricing
from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.cli.support.exit_codes import ExitCode, Failure, print_error, sentence_of
from corral.cli.support.head_lookup import open_head
from corral.cli.support.job_diagnosis import read_expected, read_job
from corral.cli.support.local_page import PageResponse, PageServer, json_response
from corral.cli.support.options import BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.support.output import show_lines
from corral.cli.support.remote import HeadConnection, HeadUnreachable, fetch_events, fetch_history, fetch_state
from corral.cli.support.target_account import targeted_box, use_account
from corral.cli.support.timeline_data import printable_runs
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.inventory.head_instance import head_of
from corral.inventory.scan import open_session
from corral.inventory.status import read_status
from corral.model.cluster import QueuePlan
from corral.model.job_evidence import JOB_ID
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.report.dashboard.cluster_document import ClusterView, CostSoFar, cluster_document
from corral.report.dashboard.job_document import job_document
from corral.report.dashboard.page_files import page_files
from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.evidence import ExpectedRun
from corral.report.plan.plan_json import Document
from corral.report.timeline.event_lines import read_events
from corral.report.usage.usage_summary import compute_usage

app = new_app()
# On AWS, each query of the head is two commands of Systems Manager; the account is queried as `corral status` does.
_HEAD_S, _HEAD_IN_BOX_S, _ACCOUNT_S, _COST_S = 10.0, 5.0, 60.0, 600.0
_JOB_S = 10.0  # a job's evidence is read again after
_KEPT_JOBS = 16
_FIRST_EVENTS = timedelta(days=1)
_JOB_PATH, _JSON = "job/", ".json"
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of 127.0.0.1 (default: a free one).")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
Run = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Compare jobs with the forecast of this run.")]


@app.command(
    epilog=examples(
        "corral dashboard train",
        "corral dashboard train --run examples/runs/llama3-8b.yaml",
        "corral dashboard dev --box --no-browser --port 8123",
    )
)
def dashboard(
    env: Environment,
    run: Run = None,
    port: Port = 0,
    no_browser: NoBrowser = False,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
) -> None:
    """Show a live page of nodes, queues, offers, cost, events and jobs, until Ctrl-C.

    The page is on this machine alone, under a secret address. Changes nothing. It queries the account and the head only
    while it is open in a browser.
    """
    summary = read_summary(project, env, in_box=box, box_directory=box_dir)
    use_account(in_box=box, box_directory=box_dir)
    cluster = _Cluster(summary=summary, box_dir=box_dir, expected=read_expected(summary, run))
    if summary.problem:
        print_error(summary.problem)
    head_s = _HEAD_IN_BOX_S if targeted_box(box_dir) else _HEAD_S
    watch = ClusterWatch(
        ClusterView(environment=env, region=summary.region, queues=_queues(summary)),
        (
            Source(answer="of_account", every_s=_ACCOUNT_S, query=cluster.read_account),
            Source(answer="of_head", every_s=head_s, query=cluster.read_head),
            Source(answer="of_cost", every_s=_COST_S, query=cluster.read_cost),
        ),
    )
    page = _Page(cluster=cluster, watch=watch)
    with _server(page, port) as server, _ended_by_signals(), suppress(KeyboardInterrupt):
        watch.start()
        show_lines([f"{env}: {server.address}", "Keep the address to yourself; Ctrl-C ends the page."])
        sys.stdout.flush()
        with _browser(server.address, is_wanted=not no_browser):
            server.serve_forever()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The sources of the page, with AWS sessions of their own: threads must not share one."""

    summary: EnvironmentSummary
    box_dir: Path | None
    expected: ExpectedRun | None

    def read_account(self, _: ClusterView) -> Mapping[str, Any]:
        summary = self.summary
        prices = catalog_prices(summary.region, summary.catalog)
        return {"status": read_status(self._session(), summary.name, summary.base, prices)}

    def read_head(self, view: ClusterView) -> Mapping[str, Any]:
        head = self._head(view)
        since = view.events[-1].at if view.events else datetime.now(UTC) - _FIRST_EVENTS
        newest = read_events(fetch_events(head, since.timestamp()))
        return {"slurm": fetch_state(head), "events": joined_events(view.events, newest)}

    def read_cost(self, view: ClusterView) -> Mapping[str, Any]:
        """What the cluster has cost since its first event, as `corral timeline` computes it."""
        if (pricing := read_pricing(self.summary, None)) is None:
            raise Failure(self.summary.problem)
        head = self._head(view)
        events = read_events(fetch_events(head, 0.0))
        if not events:
            raise Failure("the head has no events yet")
        runs = printable_runs(fetch_history(head, 0.0).runs)
        usage = compute_usage(events, runs, pricing.rates, start=events[0].at, end=datetime.now(UTC))
        return {"cost": CostSoFar(since=usage.start, usd=usage.usd)}

    def read_job(self, view: ClusterView, job: str) -> Document:
        """The document of a job. Raises HeadUnreachable."""
        seen = read_job(self._head(view), self.summary, job, self.expected)
        return job_document(seen, diagnose(seen), datetime.now(UTC))

    def _head(self, view: ClusterView) -> HeadConnection:
        session = self._session()
        there = view.status.head if view.status else head_of(session, self.summary.name)
        head = open_head(there, session, self.box_dir)
        if head is None:
            raise HeadUnreachable(f"{self.summary.name} has no head now")
        return head

    def _session(self) -> Any:
        return open_session(self.summary.region, quick=True)


@dataclass(slots=True, kw_only=True)
class _Page:
    """Responds to the requests of the page. Jobs are read one after the other, when the page shows them."""

    cluster: _Cluster
    watch: ClusterWatch
    _jobs: dict[str, tuple[float, Document]] = field(default_factory=dict)
    _reads: threading.Lock = field(default_factory=threading.Lock)

    def respond(self, path: str) -> PageResponse | None:
        """The response to a path of the page; None for no such path."""
        if (found := page_files().get(path or "page.html")) is not None:
            return PageResponse(content_type=found.content_type, body=found.content)
        if path == "cluster.json":
            return json_response(cluster_document(self.watch.read()))
        job = path.removeprefix(_JOB_PATH).removesuffix(_JSON)
        if path == f"{_JOB_PATH}{job}{_JSON}" and JOB_ID.fullmatch(job):
            return json_response(self._job(job))
        return None

    def _job(self, job: str) -> Document:
        with self._reads:
            at, document = self._jobs.get(job, (0.0, {}))
            if document and time.monotonic() - at < _JOB_S:
                return document
            try:
                document = self.cluster.read_job(self.watch.peek(), job)
            except Exception as error:  # whatever it is, the page shows it, and the next request may succeed
                problem = sentence_of(error) or f"{type(error).__name__}: {error}"
                return {"schema": "corral.dashboard-job/1", "error": problem}
            if len(self._jobs) >= _KEPT_JOBS:
                self._jobs.clear()
            self._jobs[job] = time.monotonic(), document
            return document


def _queues(summary: EnvironmentSummary) -> tuple[QueuePlan, ...]:
    if summary.spec is None:
        return ()
    return plan_cluster(summary.spec.cluster, plan_base(summary.spec.base), catalog=summary.catalog).queues


@contextmanager
def _server(page: _Page, port: int) -> Iterator[PageServer]:
    try:
        server = PageServer(page.respond, port)
    except OSError as error:
        raise Failure(f"--port {port}: {error.strerror}", ExitCode.FAILED) from None
    with server:
        yield server


@contextmanager
def _browser(address: str, *, is_wanted: bool) -> Iterator[None]:
    """A block during which a browser shows the page, if this machine has one with a display.

    It opens a file of this user that leads on: every user of a machine sees the arguments of programs.
    """
    has_display = sys.platform == "darwin" or any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not (is_wanted and has_display):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="corral-dashboard-") as directory:  # which only this user may enter
        file = Path(directory, "page.html")
        target = html.escape(address, quote=True)
        file.write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
            f'<title>corral</title><a href="{target}">corral dashboard</a>\n',
            encoding="utf-8",
        )
        webbrowser.open(file.as_uri())
        yield


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A block that SIGTERM and a closed terminal end as Ctrl-C does, so that nothing is left."""
    held = {one: signal.signal(one, _end) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in held.items():
            signal.signal(one, handler)


def _end(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
