"""`corral dashboard` against a head in the box, whose agent answers with what a synthetic cluster would."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calls import CORRAL, HOME, REPOSITORY, clean_environment, corral
from test_connect import BOOTED_IN_S, launch_head

import boxes
from corral.model.head_report import EventPage, JobRunPage
from corral.model.job_evidence import JobEvidencePage, StepPage
from corral.model.serialization import to_line
from report.dashboard.synthetic_views import job_evidence, slurm

pytestmark = pytest.mark.box
ANSWERED_IN_S = 60.0  # a query takes a second; a machine that runs other tests takes longer
SEEN = job_evidence()
EVENT = '{"at": "2026-11-28T11:00:00Z", "event": "launched", "nodes": "cpu-1", "offer": "x", "text": "cpu-1: launched"}'
ANSWERS = {
    "status": replace(slurm(), jobs=slurm().jobs[:1]),
    "events": EventPage(lines=(EVENT,), next=None),
    "history": JobRunPage(runs=(), next=None),
    "job-evidence": JobEvidencePage(
        job=SEEN.job,
        steps=StepPage(ranks=SEEN.ranks, next=None, variables={}, curve=SEEN.curve),
        node_reasons={},
        nodes=SEEN.nodes,
        curves=SEEN.curves,
    ),
}
USER_DATA = f"""#!/bin/sh
mkdir -p /opt/corral/bin /answers
{"".join(f"cat >/answers/{name} <<'END'{chr(10)}{to_line(answer)}END{chr(10)}" for name, answer in ANSWERS.items())}
cat >/opt/corral/bin/corral-agent <<'EOF'
#!/bin/sh
cat "/answers/$1" 2>/dev/null || {{ echo "2026-11-28 corral-agent ERROR $1: slurmctld does not answer" >&2; exit 1; }}
EOF
chmod +x /opt/corral/bin/corral-agent
touch /booted
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a box with a head of dev that has booted."""
    with boxes.running_box(tmp_path_factory.mktemp("dashboard") / "box", machines=True) as box:
        launch_head(box, USER_DATA)
        deadline = time.monotonic() + BOOTED_IN_S
        while on_head(box.dir, "test", "-e", "/booted").returncode:
            assert time.monotonic() < deadline, f"the head has not booted within {BOOTED_IN_S} s"
        yield box.dir


def on_head(box: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return corral("connect", "dev", "--root", "--box-dir", str(box), "--", *command)


class Dashboard:
    """A running `corral dashboard dev`, with its address."""

    def __init__(self, box: Path, *options: str, **environment: str) -> None:
        command = [*CORRAL, "dashboard", "dev", "--box-dir", str(box), *options]
        environ = clean_environment(HOME, PYTHONPATH=str(REPOSITORY / "modules"), **environment)
        self.process = subprocess.Popen(command, cwd=REPOSITORY, env=environ, text=True, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("dev: ").strip()

    def read(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path, timeout=60) as response:
            return json.load(response)

    def until(self, path: str, is_there: Callable[[Any], bool]) -> Any:
        """The document once it is as expected."""
        deadline = time.monotonic() + ANSWERED_IN_S
        while not is_there(found := self.read(path)):
            assert time.monotonic() < deadline, f"not within {ANSWERED_IN_S:.0f} s: {found['answers']}"
            time.sleep(0.2)
        return found

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def dashboard(box: Path) -> Iterator[Dashboard]:
    one = Dashboard(box, "--no-browser", "--run", "examples/runs/llama3-8b.yaml")
    yield one
    one.end()


def test_nodes_jobs_and_events_are_those_of_the_head(dashboard: Dashboard) -> None:
    document = dashboard.until("cluster.json", lambda found: found["slurm"] is not None)
    queue = next(one for one in document["queues"] if one["name"] == "train")
    assert (len(queue["nodes"]), document["slurm"]["jobs"][0]["job_id"]) == (1000, "17")
    assert [one["kind"] for one in document["events"]] == ["launched"]


def test_costs_are_those_of_the_account_and_of_the_history(dashboard: Dashboard) -> None:
    document = dashboard.until("cluster.json", lambda found: found["usd_so_far"] and found["usd_per_hour"])
    assert document["usd_so_far"]["since"] == "2026-11-28T11:00:00+00:00"
    assert document["usd_per_hour"]["usd"]["low"] > 0


def test_a_job_has_its_curves_and_the_forecast_of_the_run_file(dashboard: Dashboard) -> None:
    document = dashboard.read("job/17.json")
    assert (document["error"], len(document["curves"])) == (None, 5)
    assert document["curves"][0]["forecast"] == document["forecast"]["tokens_per_s_per_gpu"]


def test_a_job_has_the_curves_of_its_whole_run(dashboard: Dashboard) -> None:
    history = dashboard.read("job/17.json")["history"]
    gpus = next(one for one in history["curves"] if one["name"] == "GPUs at work")
    assert [value for _, value in gpus["points"]] == [*SEEN.curves.gpu_utilization]


def test_a_job_is_read_again_only_after_a_while(dashboard: Dashboard) -> None:
    assert dashboard.read("job/17.json")["answered_at"] == dashboard.read("job/17.json")["answered_at"]


@pytest.mark.parametrize("path", ["job/1;id.json", "job/.json", "job/17", "job/--help.json", "../x"])
def test_what_is_no_job_id_never_reaches_the_head(dashboard: Dashboard, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        dashboard.read(path)


def test_a_head_that_stops_answering_is_shown_with_its_reason_and_recovers(box: Path, dashboard: Dashboard) -> None:
    dashboard.until("cluster.json", lambda found: found["slurm"] is not None)
    on_head(box, "mv", "/answers/status", "/answers/hidden")
    failed = dashboard.until("cluster.json", lambda found: found["answers"]["head"]["problem"])
    on_head(box, "mv", "/answers/hidden", "/answers/status")
    assert (failed["answers"]["head"]["problem"], failed["slurm"] is None) == ("slurmctld does not answer", False)
    dashboard.until("cluster.json", lambda found: found["answers"]["head"]["problem"] is None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_without_an_error(box: Path, number: int) -> None:
    assert Dashboard(box, "--no-browser").end(number) == 0


def test_the_browser_gets_a_private_file_that_leads_to_the_page_and_is_gone_afterwards(
    box: Path, tmp_path: Path
) -> None:
    """Not the address: every user of a machine sees the arguments of programs."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{tmp_path}/opened.new; mv {tmp_path}/opened.new {tmp_path}/opened\n')
    browser.chmod(0o755)
    one = Dashboard(box, BROWSER=f"{browser} %s", TMPDIR=str(tmp_path))
    deadline = time.monotonic() + 30
    while not (tmp_path / "opened").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    address = (tmp_path / "opened").read_text().strip()
    file = Path(address.removeprefix("file://"))
    seen = (one.address in address, one.address in file.read_text(), stat.S_IMODE(file.parent.stat().st_mode))
    assert (one.end(), seen, file.parent.exists()) == (0, (False, True, 0o700), False)


def test_a_port_that_is_taken_is_one_sentence(box: Path, dashboard: Dashboard) -> None:
    port = dashboard.address.split(":")[2].partition("/")[0]
    done = corral("dashboard", "dev", "--no-browser", "--port", port, "--box-dir", str(box))
    assert (done.returncode, done.stderr) == (1, f"corral: --port {port}: Address already in use\n")


def test_a_cluster_without_a_head_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    with boxes.running_box(tmp_path_factory.mktemp("empty")) as box:
        one = Dashboard(box.dir, "--no-browser")
        found = one.until("cluster.json", lambda found: found["answers"]["head"]["problem"])
        one.end()
    assert (found["answers"]["head"]["problem"], found["slurm"]) == ("dev has no head now", None)


def test_without_a_display_no_browser_is_opened(box: Path, tmp_path: Path) -> None:
    one = Dashboard(box, TMPDIR=str(tmp_path), PATH=os.environ["PATH"])
    one.read("cluster.json")
    assert ([path.name for path in tmp_path.glob("corral-dashboard-*")], one.end()) == ([], 0)
