"""A real Alertmanager with a head's files: who gets which text, and who reads what.

SNS is the box's. A server of this test accepts the requests for Slack and PagerDuty, which were not tried themselves.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import boxes
from agent.event_loops import serving
from agent.test_prometheus_daemon import FakeHost, free_port, running_prometheus
from agent.waiting import until
from box.vpc_fixtures import Clients
from corral.agent.alert_topic import MESSAGE_BYTES, AlertTopic, AlertTopicError, topic_of
from corral.agent.alertmanager import alertmanager as alertmanager_daemon
from corral.agent.alertmanager import start_alertmanager
from corral.agent.local_http import LocalServer, listen
from corral.agent.metrics.endpoint import Responder
from corral.agent.prometheus import start_prometheus
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.model.monitoring import AlertReceivers, MonitoringPlan
from corral.render.monitoring import monitoring_files
from http_server import serving_http
from render.plans import dev

ALERTS = AlertReceivers(topic=True, slack="team/slack", pagerduty="team/pagerduty")
PLAN = replace(
    dev(), monitoring=MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10, alerts=ALERTS)
)
EVENTS = "/v2/enqueue"
HOOK, KEY = "/services/T0/B0/SlacksOwnSecret", "PagerDutysOwnSecret"
SINCE = datetime(2026, 11, 28, 7, 41, tzinfo=UTC)


@dataclass
class Receivers:
    """What accepts the requests of Slack and PagerDuty. `answers`: the status of a path; `got`: documents by path."""

    port: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    got: dict[str, list[Any]] = field(default_factory=dict)

    def of(self, path: str) -> list[Any]:
        return self.got.get(path, [])


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    found = Receivers()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.got.setdefault(self.path, []).append(json.loads(content))
            self.send_response(found.answers.get(self.path, 202 if self.path == EVENTS else 200))
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None: ...

    with serving_http(Handler) as found.port:
        yield found


@dataclass(kw_only=True)
class Topic:
    """The box's topic; it fails this often before it takes a message."""

    topic: AlertTopic
    fails: int = 0

    def publish(self, subject: str, text: str) -> str:
        if self.fails:
            self.fails -= 1
            raise AlertTopicError("SNS does not answer")
        return self.topic.publish(subject, text)


@dataclass(frozen=True, kw_only=True)
class Running:
    """A running Alertmanager: its port, process, password and files, and the queue that its topic fills."""

    port: int
    process: subprocess.Popen[bytes]
    password: str
    root: Path
    sqs: Any
    queue: str
    topic: Topic

    @property
    def log(self) -> str:
        return (self.root / "log").read_text()

    def call(self, method: str, path: str, document: Any = None, password: str | None = None) -> tuple[int, str]:
        """The status and the body of a request, with the head's password or this one."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        key = base64.b64encode(f"corral:{self.password if password is None else password}".encode()).decode()
        headers = {"Authorization": f"Basic {key}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(document) if document else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def send(self, name: str = "CorralQueueStuck", *, over: bool = False, **changes: str) -> None:
        """Send an alert as Prometheus does; or that it is over."""
        now = datetime.now(UTC)
        labels = {"alertname": name, "cluster": "dev", "severity": "critical", "queue": "train"}
        annotations = {
            "summary": changes.pop("summary", "Queue train: a job waits 16m 40s, and no node runs or boots."),
            "runbook": f"docs/runbooks/{name}.md, or: corral runbook {name}",
            "command": "corral status dev",
        }
        ends = now if over else now + timedelta(minutes=5)
        alert = {"labels": {**labels, **changes}, "annotations": annotations}
        status, text = self.call(
            "POST", "/api/v2/alerts", [{**alert, "startsAt": SINCE.isoformat(), "endsAt": ends.isoformat()}]
        )
        assert (status, text) == (200, "")

    def next_mail(self) -> Any:
        """What the topic gets next, as its subscribers do."""
        found: list[Any] = []

        def received() -> bool:
            found.extend(self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=1).get("Messages", []))
            return found != []

        until(received)
        self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=found[0]["ReceiptHandle"])
        return json.loads(found[0]["Body"])


@contextmanager
def metrics(page: Callable[[], str], topic: AlertTopic | None = None) -> Iterator[int]:
    """The agent's endpoint, as a head serves it; yields its port."""
    with listen(0) as listener:
        responder = Responder(page, lambda _: 2117, topic)
        with serving(LocalServer(responder, listener, body_bytes=MESSAGE_BYTES)):
            yield listener.getsockname()[1]


@contextmanager
def prometheus(alertmanager: Running, metrics_port: int) -> Iterator[None]:
    """A real Prometheus with a head's files and a rule of one's own."""
    root, directory = alertmanager.root, alertmanager.root / "etc/corral/prometheus"
    files = monitoring_files(PLAN, catalog_prices(PLAN.region))
    here = {
        "/etc/corral": str(root / "etc/corral"),
        "127.0.0.1:251": f"127.0.0.1:{metrics_port}",
        "interval: 30s": "interval: 1s",
        "9093": str(alertmanager.port),
    }
    (directory / "prometheus.yml").write_text(replaced(files["monitoring/prometheus.yml"], here))
    (directory / "alerts.yml").write_text(files["monitoring/alerts.yml"])
    rule = {
        "alert": "Deep",
        "expr": "corral_queue_depth > 5",
        "labels": {"severity": "critical"},
        "annotations": {"summary": "{{ $value }} jobs wait."},
    }
    (directory / "own/deep.yml").write_text(json.dumps({"groups": [{"name": "own", "rules": [rule]}]}))
    with running_prometheus(root, PLAN.monitoring, free_port()):
        yield


def replaced(text: str, here: Mapping[str, str]) -> str:
    for head, instead in here.items():
        text = text.replace(head, instead)
    return text


@pytest.fixture
def alertmanager(
    tmp_path: Path, aws: Clients, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    """A real Alertmanager with the files of a head, below another root, with other ports and short intervals."""
    for module in ("prometheus", "alertmanager"):
        monkeypatch.setattr(f"corral.agent.{module}.PROMETHEUS_USER", "root")
    sns, sqs = aws("sns"), aws("sqs")
    topic = sns.create_topic(Name="watch-topic-dev")["TopicArn"]
    queue = boxes.subscribed_queue(sns, sqs, topic)
    flaky = Topic(topic=topic_of(sns, topic))
    with metrics(lambda: "", AlertTopic(publish=flaky.publish)) as agent:
        port = write_files(tmp_path, agent, receivers.port)
        with started(tmp_path, port) as process:
            password = (tmp_path / "etc/corral/prometheus/password").read_text().strip()
            running = Running(
                port=port, process=process, password=password, root=tmp_path, sqs=sqs, queue=queue, topic=flaky
            )
            until(lambda: is_ready(running))
            yield running


def write_files(root: Path, agent: int, receivers: int) -> int:
    """Install a head's files below this root; returns a port for Alertmanager."""
    host: Any = FakeHost()
    (root / "etc/munge").mkdir(parents=True)
    (root / "etc/munge/munge.key").write_bytes(b"k" * 128)
    start_prometheus(PLAN, host, root)
    start_alertmanager(PLAN, host, root)
    directory, files = root / "etc/corral/alertmanager", monitoring_files(PLAN, catalog_prices(PLAN.region))
    text = files["monitoring/alertmanager.yml"].replace("/etc/corral", str(root / "etc/corral"))
    text = replaced(
        text, {"127.0.0.1:251": f"127.0.0.1:{agent}", "wait: 30s": "wait: 1s", "interval: 5m": "interval: 1s"}
    )
    service = f"global: {{pagerduty_url: 'http://127.0.0.1:{receivers}{EVENTS}'}}\n"
    (directory / "alertmanager.yml").write_text(service + text)
    (directory / "alerts.tmpl").write_text(files["monitoring/alerts.tmpl"])
    for name, secret in {"slack": f"http://127.0.0.1:{receivers}{HOOK}", "pagerduty": KEY}.items():
        (directory / name).write_text(secret)
        (directory / name).chmod(0o400)
    return free_port()


@contextmanager
def started(root: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    daemon = alertmanager_daemon()
    command = [
        replaced(option, {"/etc/corral": str(root / "etc/corral"), "/var/lib": str(root), "9093": str(port)})
        for option in (*daemon.command, *daemon.foreground)
    ]
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def is_ready(running: Running) -> bool:
    with suppress(OSError):
        return running.call("GET", "/-/ready")[0] == 200
    time.sleep(0.1)
    return False


TEXT = """\
Queue train: a job waits 16m 40s, and no node runs or boots.
Since 2026-11-28 07:41 UTC.
Look first: corral status dev
Runbook: docs/runbooks/CorralQueueStuck.md, or: corral runbook CorralQueueStuck"""


def test_a_critical_alert_reaches_slack_pagerduty_and_the_topic(alertmanager: Running, receivers: Receivers) -> None:
    alertmanager.send()
    mail = alertmanager.next_mail()
    until(lambda: receivers.of(HOOK) and receivers.of(EVENTS))
    slack, page = receivers.of(HOOK)[0]["attachments"][0], receivers.of(EVENTS)[0]
    assert (mail["Subject"], mail["Message"]) == ("corral dev: CorralQueueStuck (critical)", TEXT)
    assert (slack["title"], slack["text"], slack["color"]) == (mail["Subject"], TEXT, "danger")
    assert (page["routing_key"], page["event_action"], page["payload"]["severity"]) == (KEY, "trigger", "critical")
    assert page["payload"]["custom_details"]["alerts"] == TEXT
    assert page["payload"]["summary"] == (
        "corral dev: CorralQueueStuck (critical): Queue train: a job waits 16m 40s, and no node runs or boots."
    )


def test_the_end_of_an_alert_reaches_them_too(alertmanager: Running, receivers: Receivers) -> None:
    alertmanager.send()
    alertmanager.next_mail()
    until(lambda: receivers.of(HOOK) and receivers.of(EVENTS))
    alertmanager.send(over=True)
    mail = alertmanager.next_mail()
    until(lambda: len(receivers.of(HOOK)) == len(receivers.of(EVENTS)) == 2)
    page = receivers.of(EVENTS)[1]
    assert (mail["Subject"], page["event_action"]) == ("corral dev: CorralQueueStuck is over", "resolve")
    assert page["dedup_key"] == receivers.of(EVENTS)[0]["dedup_key"]
    assert mail["Message"].startswith(
        "Over: Queue train: a job waits 16m 40s, and no node runs or boots.\nFrom 2026-11-28 07:41 to "
    )
    assert receivers.of(HOOK)[1]["attachments"][0]["color"] == "good"


def test_a_text_that_a_user_chose_mentions_nobody_and_is_no_markup(alertmanager: Running, receivers: Receivers) -> None:
    alertmanager.send(summary="Job <!here> & <@U12> *now* _x_", severity="warning")
    until(lambda: receivers.of(HOOK))
    slack = receivers.of(HOOK)[0]
    assert slack["attachments"][0]["text"].startswith("Job &lt;!here&gt; &amp; &lt;@U12&gt; *now* _x_\n")
    assert (slack["attachments"][0]["mrkdwn_in"], slack.get("link_names")) == (["fallback"], None)


def test_mail_has_the_same_text_as_it_is(alertmanager: Running) -> None:
    alertmanager.send(summary="Job <!here> & <@U12> *now* _x_", severity="warning")
    assert alertmanager.next_mail()["Message"].startswith("Job <!here> & <@U12> *now* _x_\n")


def test_a_webhook_that_is_refused_shows_in_the_log_without_its_url_and_others_get_the_alert(
    alertmanager: Running, receivers: Receivers
) -> None:
    receivers.answers[HOOK] = 403
    alertmanager.send()
    assert alertmanager.next_mail()["Subject"] == "corral dev: CorralQueueStuck (critical)"
    until(lambda: "people/slack[0]" in alertmanager.log)
    assert "unexpected status code 403" in alertmanager.log
    assert "SlacksOwnSecret" not in alertmanager.log


def test_a_secret_that_was_never_read_shows_in_the_log(alertmanager: Running) -> None:
    (alertmanager.root / "etc/corral/alertmanager/pagerduty").unlink()
    alertmanager.send()
    until(lambda: "alertmanager/pagerduty: no such file or directory" in alertmanager.log)


def test_a_new_secret_needs_no_restart(alertmanager: Running, receivers: Receivers) -> None:
    (alertmanager.root / "etc/corral/alertmanager/pagerduty").write_text("TheNewKey")
    alertmanager.send()
    until(lambda: receivers.of(EVENTS))
    assert receivers.of(EVENTS)[0]["routing_key"] == "TheNewKey"


def test_a_topic_that_fails_for_a_while_gets_the_alert_later(alertmanager: Running) -> None:
    alertmanager.topic.fails = 4
    alertmanager.send()
    assert alertmanager.next_mail()["Subject"] == "corral dev: CorralQueueStuck (critical)"
    assert alertmanager.topic.fails == 0


def test_secrets_are_in_two_files_of_one_user_and_nowhere_else(alertmanager: Running, receivers: Receivers) -> None:
    alertmanager.send()
    until(lambda: receivers.of(HOOK) and receivers.of(EVENTS))
    shown = [alertmanager.call("GET", path)[1] for path in ("/api/v2/status", "/metrics", "/api/v2/alerts")]
    process = Path(f"/proc/{alertmanager.process.pid}")
    shown += [(process / name).read_text() for name in ("cmdline", "environ")]
    assert [text for text in shown if "OwnSecret" in text] == []
    holding = {file for file in alertmanager.root.rglob("*") if file.is_file() and b"OwnSecret" in file.read_bytes()}
    assert {(file.name, file.stat().st_mode & 0o777) for file in holding} == {("slack", 0o400), ("pagerduty", 0o400)}


@pytest.mark.parametrize("path", ["/api/v2/alerts", "/api/v2/silences", "/metrics", "/"])
def test_nobody_reads_it_without_the_password(path: str, alertmanager: Running) -> None:
    assert alertmanager.call("GET", path, password="guessed")[0] == 401


def test_it_listens_on_one_port_of_loopback_and_talks_to_no_other_alertmanager(alertmanager: Running) -> None:
    lines = subprocess.run(["ss", "-Hlntup"], capture_output=True, text=True, check=True).stdout.splitlines()
    own = [line.split()[4] for line in lines if f"pid={alertmanager.process.pid}," in line]
    assert own == [f"127.0.0.1:{alertmanager.port}"]


def test_an_unwell_head_silences_what_follows_from_it(alertmanager: Running) -> None:
    alertmanager.send("CorralHeadUnwell")
    alertmanager.next_mail()
    alertmanager.send("CorralQueueStuck")
    alertmanager.send("CorralFileSystemNearlyFull", severity="warning")
    assert alertmanager.next_mail()["Subject"] == "corral dev: CorralFileSystemNearlyFull (warning)"
    found = json.loads(alertmanager.call("GET", "/api/v2/alerts?inhibited=true&active=false")[1])
    assert [one["labels"]["alertname"] for one in found] == ["CorralQueueStuck"]


def amtool(running: Running, *arguments: str) -> None:
    """Run amtool with the files that root's amtool reads on a head, below another root."""
    here = {"/etc/corral": str(running.root / "etc/corral"), "9093": str(running.port)}
    login = running.root / "etc/corral/alertmanager/amtool.yml"
    login.write_text(replaced(login.read_text(), here))
    own = running.root / "home/.config/prometheus/amtool.yml"
    own.parent.mkdir(parents=True)
    own.write_text(replaced((running.root / "etc/prometheus/amtool.yml").read_text(), here))
    environment = {"HOME": str(running.root / "home"), "PATH": "/usr/bin:/bin"}
    subprocess.run(["amtool", *arguments], capture_output=True, check=True, env=environment)


def test_amtool_sends_a_test_alert_to_everybody(alertmanager: Running, receivers: Receivers) -> None:
    amtool(alertmanager, "alert", "add", "Test", "severity=critical", "cluster=dev", "--annotation=summary=A test")
    assert alertmanager.next_mail()["Subject"] == "corral dev: Test (critical)"
    until(lambda: receivers.of(HOOK) and receivers.of(EVENTS))


def test_a_silence_survives_the_head(alertmanager: Running) -> None:
    """Its state is on the state volume, and is written when Alertmanager ends."""
    amtool(alertmanager, "silence", "add", "alertname=CorralGpusIdle", "--comment=known", "--author=ada")
    alertmanager.process.terminate()
    alertmanager.process.wait(30)
    with started(alertmanager.root, alertmanager.port) as process:
        again = replace(alertmanager, process=process)
        until(lambda: is_ready(again))
        found = json.loads(again.call("GET", "/api/v2/silences")[1])
    assert [one["matchers"][0]["value"] for one in found] == ["CorralGpusIdle"]


def test_what_prometheus_finds_is_delivered_and_is_over_when_it_ends(
    alertmanager: Running, receivers: Receivers
) -> None:
    """Both daemons with a head's files; the rule is of the cluster's own rules, the intervals are shortened."""
    page = ['corral_queue_depth{queue="train"} 7\n']
    with metrics(lambda: page[0]) as port, prometheus(alertmanager, port):
        mail = alertmanager.next_mail()
        assert mail["Subject"] == "corral dev: Deep (critical)"
        assert mail["Message"].startswith("7 jobs wait.\nSince 20")
        page[0] = 'corral_queue_depth{queue="train"} 0\n'
        assert alertmanager.next_mail()["Subject"] == "corral dev: Deep is over"
    until(lambda: len(receivers.of(EVENTS)) == 2)
    assert [one["event_action"] for one in receivers.of(EVENTS)] == ["trigger", "resolve"]


def test_a_delivery_that_fails_is_reported_to_all_other_receivers(alertmanager: Running, receivers: Receivers) -> None:
    """Both daemons with a head's files and rules; the intervals are shortened."""
    with metrics(lambda: "") as port, prometheus(alertmanager, port):
        alertmanager.send(severity="warning")
        assert alertmanager.next_mail()["Subject"] == "corral dev: CorralQueueStuck (warning)"
        until(lambda: receivers.of(HOOK))
        receivers.answers[HOOK] = 403
        alertmanager.send(over=True, severity="warning")
        assert alertmanager.next_mail()["Subject"] == "corral dev: CorralQueueStuck is over"
        mail = alertmanager.next_mail()
    assert mail["Subject"] == "corral dev: CorralAlertsUndelivered (critical)"
    assert mail["Message"].startswith("Alertmanager cannot deliver alerts to slack.\nSince 20")
    assert receivers.of(EVENTS)[0]["payload"]["custom_details"]["alerts"] == mail["Message"]
