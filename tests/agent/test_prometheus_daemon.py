"""Prometheus on a head: how it is started, and a real one that scrapes real metrics and lets no user read them."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from agent.event_loops import serving
from agent.health_fixtures import Recorded
from agent.metrics.readings import reading
from agent.waiting import until
from corral.agent.host.base import Daemon, HostError
from corral.agent.host.packages import Package
from corral.agent.host.systemd_units import packaged_drop_in
from corral.agent.local_http import LocalServer, listen
from corral.agent.metrics.endpoint import Responder
from corral.agent.metrics.head_metrics import head_families
from corral.agent.metrics.node_exporter import NodeExporter, TokenResponder
from corral.agent.metrics.node_token import node_token
from corral.agent.metrics.text_format import exposition
from corral.agent.prometheus import bcrypt, options, restart_prometheus, start_prometheus
from corral.agent.prometheus import prometheus as prometheus_daemon
from corral.model.monitoring import MonitoringPlan
from corral.render import cluster_files
from render.plans import dev

PLAN = replace(dev(), monitoring=MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10))


@dataclass
class FakeHost:
    """A host that records what is installed and started."""

    calls: list[str] = field(default_factory=list)
    fails: bool = False

    def install(self, packages: Sequence[Package]) -> None:
        if self.fails:
            raise HostError("E: Unable to locate package prometheus")
        self.calls += [f"install {package.name}" for package in packages]

    def start(self, daemon: Daemon) -> None:
        self.calls.append(f"start {daemon.unit} as {daemon.user}")


def started(root: Path, host: FakeHost | None = None, plan: Any = PLAN) -> list[str]:
    made = host or FakeHost()
    start_prometheus(plan, made, root)  # type: ignore[arg-type]  # the rest of a host is not used
    return made.calls


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root directory. Files there belong to this process: the test machine's Prometheus may have no user."""
    monkeypatch.setattr("corral.agent.prometheus.PROMETHEUS_USER", "root")
    (tmp_path / "etc/munge").mkdir(parents=True)
    (tmp_path / "etc/munge/munge.key").write_bytes(b"k" * 128)
    return tmp_path


def test_a_cluster_without_prometheus_installs_nothing(root: Path) -> None:
    assert started(root, plan=dev()) == []


def test_an_apply_to_a_cluster_without_prometheus_restarts_nothing(root: Path) -> None:
    host = FakeHost()
    restart_prometheus(dev(), host, root)  # type: ignore[arg-type]  # the rest of a host is not used
    assert host.calls == []


def test_the_package_is_there_before_the_files_that_its_user_owns(root: Path) -> None:
    assert started(root) == ["install prometheus", "start prometheus as root"]


def test_a_package_that_cannot_be_installed_fails_no_boot(root: Path) -> None:
    assert started(root, FakeHost(fails=True)) == []


def test_the_password_is_roots_alone(root: Path) -> None:
    started(root)
    held = root / "etc/corral/prometheus/password"
    assert (held.stat().st_mode & 0o777, len(held.read_text().strip())) == (0o400, 32)


def test_only_prometheus_reads_the_token_for_nodes(root: Path) -> None:
    started(root)
    held = root / "etc/corral/prometheus/node-token"
    assert (held.stat().st_mode & 0o777, held.read_text()) == (0o400, node_token(root))


def test_a_reboot_keeps_the_password(root: Path) -> None:
    started(root)
    before = (root / "etc/corral/prometheus/password").read_text()
    started(root)
    assert (root / "etc/corral/prometheus/password").read_text() == before


def test_the_packages_unit_gets_the_options_and_listens_on_loopback(root: Path) -> None:
    started(root)
    text = (root / "etc/default/prometheus").read_text()
    assert text.endswith(
        'ARGS="--config.file=/etc/corral/prometheus/prometheus.yml --storage.tsdb.path=/var/lib/corral/prometheus'
        " --storage.tsdb.retention.time=1296000s --storage.tsdb.retention.size=10GB"
        ' --web.listen-address=127.0.0.1:9090 --web.config.file=/etc/corral/prometheus/web.yml"\n'
    )


def test_systemd_starts_it_only_with_its_data_mounted_and_again_after_a_crash() -> None:
    text = packaged_drop_in(prometheus_daemon(PLAN.monitoring))
    found = [line for line in text.splitlines() if line.startswith(("RequiresMountsFor", "Restart="))]
    assert found == ["RequiresMountsFor=/var/lib/corral/prometheus", "Restart=on-failure"]


@contextmanager
def metrics(page: str) -> Iterator[int]:
    """A head's metrics, which only root reads here; yields their port."""
    with listen(0) as listener, serving(LocalServer(Responder(lambda: page), listener)):
        yield listener.getsockname()[1]


@contextmanager
def node_metrics(token: str) -> Iterator[int]:
    """A node's metrics on another address, for whoever shows this token; yields their port."""
    exporter = NodeExporter(node="train-1", probe=Recorded("h200-loaded"))
    exporter.parts["gpus"]()
    responder = TokenResponder(exporter.text, exporter.history, token)
    with listen(0, "127.0.0.2") as listener, serving(LocalServer(responder, listener)):
        yield listener.getsockname()[1]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True)
class Running:
    """A running Prometheus: its port, and the password that the head has for it."""

    port: int
    password: str

    def get(self, path: str, password: str | None = None, method: str = "GET") -> tuple[int, Any]:
        """The status and the document of a path, without a password or with this one."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        key = base64.b64encode(f"corral:{password}".encode()).decode()
        connection.request(method, path, headers={"Authorization": f"Basic {key}"} if password else {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else text

    def query(self, expression: str) -> list[str]:
        """The values of an expression."""
        _, found = self.get(f"/api/v1/query?query={expression}", self.password)
        return [one["value"][1] for one in found["data"]["result"]]


@pytest.fixture
def prometheus(root: Path) -> Iterator[Running]:
    """A real Prometheus with the files of a head, below another root and with other ports."""
    started(root)
    directory = root / "etc/corral/prometheus"
    port = free_port()
    token = node_token(root)
    with (
        metrics(exposition(head_families(reading()))) as metrics_port,
        node_metrics(token) as trusted,
        node_metrics(f"not {token}") as other,
    ):
        listed = [
            {"targets": [f"127.0.0.2:{port}"], "labels": {"instance": name, "node": name, "queue": "train"}}
            for name, port in (("train-1", trusted), ("train-2", other))
        ]
        (directory / "nodes.json").write_text(json.dumps(listed))
        for name in ("prometheus.yml", "alerts.yml"):
            text = cluster_files(PLAN)[f"monitoring/{name}"].replace("/etc/corral", str(root / "etc/corral"))
            text = text.replace("127.0.0.1:251", f"127.0.0.1:{metrics_port}").replace("interval: 30s", "interval: 1s")
            (directory / name).write_text(text)
        with running_prometheus(root, PLAN.monitoring, port) as running:
            yield running


@contextmanager
def running_prometheus(root: Path, monitoring: MonitoringPlan, port: int) -> Iterator[Running]:
    """A real Prometheus on this port, with the options of a head whose files are below another root."""
    command = [
        option.replace("/etc/corral", str(root / "etc/corral"))
        .replace("/var/lib", str(root / "lib"))
        .replace(":9090", f":{port}")
        for option in ("/usr/bin/prometheus", *options(monitoring))
    ]
    with (root / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        running = Running(port, (root / "etc/corral/prometheus/password").read_text().strip())
        until(lambda: _answers(running))
        yield running
    finally:
        process.terminate()
        process.wait(30)


def _answers(running: Running) -> bool:
    with suppress(OSError):
        return running.get("/-/ready", running.password)[0] == 200
    time.sleep(0.1)
    return False


def test_a_real_prometheus_scrapes_the_head_and_no_user_reads_or_pushes(prometheus: Running) -> None:
    """One Prometheus for several claims: each start takes seconds."""
    until(lambda: prometheus.query("corral_gpus") != [])
    assert sorted(prometheus.query("corral_gpus")) == ["0", "8", "8"]
    assert prometheus.query("up{job='corral'}") == ["1"]
    until(lambda: _rules(prometheus) == ["ok"] * 27)
    until(lambda: prometheus.query("corral_gpu_power_watts{node='train-1',queue='train',gpu='0'}") == ["627.4"])
    until(lambda: prometheus.query("up{node='train-2'}") == ["0"])
    assert prometheus.query("count(corral_gpu_power_watts)") == ["1"]
    assert prometheus.get("/api/v1/query?query=up")[0] == 401
    assert prometheus.get("/api/v1/query?query=up", "guessed")[0] == 401
    assert prometheus.get("/api/v1/write", prometheus.password, "POST")[0] == 404
    assert prometheus.get("/-/quit", prometheus.password, "POST")[0] == 403
    assert prometheus.get("/api/v1/admin/tsdb/delete_series?match[]=up", prometheus.password, "POST")[0] != 204


def _rules(prometheus: Running) -> list[str]:
    """How each alert is evaluated."""
    _, found = prometheus.get("/api/v1/rules", prometheus.password)
    return [rule["health"] for group in found["data"]["groups"] for rule in group["rules"]]


def test_a_password_has_another_hash_each_time() -> None:
    assert bcrypt("one") != bcrypt("one")
