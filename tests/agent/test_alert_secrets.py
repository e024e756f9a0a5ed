"""The secrets with which a head notifies people, in the box's Secrets Manager and in the head's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.test_prometheus_daemon import FakeHost
from box.vpc_fixtures import Clients
from corral.agent.alertmanager import (
    AlertSecretError,
    AlertSecretsTask,
    alertmanager,
    read_secret,
    restart_alertmanager,
    start_alertmanager,
)
from corral.agent.host.base import Daemon
from corral.agent.host.systemd_units import packaged_drop_in
from corral.agent.prometheus import start_prometheus
from corral.model.cluster import ClusterPlan
from corral.model.monitoring import AlertReceivers, MonitoringPlan
from render.plans import dev

URL = "https://hooks.slack.com/services/T0/B0/x"


def plan(alerts: AlertReceivers | None) -> ClusterPlan:
    monitoring = MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10, alerts=alerts)
    return replace(dev(), monitoring=monitoring)


SLACK = plan(AlertReceivers(topic=True, slack="team/slack"))
BOTH = plan(AlertReceivers(topic=True, slack="team/slack", pagerduty="team/pagerduty"))


@dataclass
class Head:
    """A head's task, whose plan, secrets and clock the test sets."""

    root: Path
    plan: ClusterPlan = SLACK
    secrets: dict[str, str] = field(default_factory=lambda: {"team/slack": URL, "team/pagerduty": "R01KEY"})
    reads: list[str] = field(default_factory=list)
    now: float = 0.0

    def task(self) -> AlertSecretsTask:
        return AlertSecretsTask(plan=lambda: self.plan, read=self._read, clock=lambda: self.now, root=self.root)

    def held(self, name: str) -> str | None:
        file = self.root / "etc/corral/alertmanager" / name
        return file.read_text() if file.exists() else None

    def _read(self, name: str) -> str:
        self.reads.append(name)
        if name not in self.secrets:
            raise AlertSecretError(f"cannot read the secret {name}: it does not exist")
        return self.secrets[name]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root directory of a head with Prometheus. Files there belong to this process."""
    for module in ("prometheus", "alertmanager"):
        monkeypatch.setattr(f"corral.agent.{module}.PROMETHEUS_USER", "root")
    (tmp_path / "etc/munge").mkdir(parents=True)
    (tmp_path / "etc/munge/munge.key").write_bytes(b"k" * 128)
    host: Any = FakeHost()
    start_prometheus(SLACK, host, tmp_path)
    return tmp_path


@pytest.fixture
def head(root: Path) -> Head:
    """A head on which Alertmanager has been started."""
    host: Any = FakeHost()
    start_alertmanager(SLACK, host, root)
    return Head(root)


def test_a_head_writes_the_secret_for_one_user_alone(head: Head) -> None:
    head.task()()
    file = head.root / "etc/corral/alertmanager/slack"
    assert (file.read_text(), file.stat().st_mode & 0o777) == (URL, 0o400)


def test_it_reads_a_secret_of_secrets_manager_without_the_end_of_its_line(root: Path, aws: Clients) -> None:
    secrets, host = aws("secretsmanager"), FakeHost()
    secrets.create_secret(Name="team/slack", SecretString=f"{URL}\n")
    start_alertmanager(SLACK, host, root)  # type: ignore[arg-type]  # the rest of a host is not used
    AlertSecretsTask(plan=lambda: SLACK, read=partial(read_secret, secrets), clock=lambda: 0.0, root=root)()
    assert (root / "etc/corral/alertmanager/slack").read_text() == URL


def test_a_secret_that_does_not_exist_is_named(aws: Clients) -> None:
    with pytest.raises(AlertSecretError, match=r"cannot read the secret team/gone: .*ResourceNotFound"):
        read_secret(aws("secretsmanager"), "team/gone")


def test_a_new_value_is_there_five_minutes_later(head: Head) -> None:
    task = head.task()
    task()
    head.secrets["team/slack"] = f"{URL}/new"
    head.now = 299.0
    task()
    before = head.held("slack")
    head.now = 300.0
    task()
    assert (before, head.held("slack")) == (URL, f"{URL}/new")


def test_a_new_name_is_read_at_once(head: Head) -> None:
    task = head.task()
    task()
    head.plan = BOTH
    task()
    assert head.held("pagerduty") == "R01KEY"


def test_a_removed_receiver_leaves_no_secret_behind(head: Head) -> None:
    head.plan = BOTH
    task = head.task()
    task()
    head.plan = plan(None)
    task()
    assert (head.held("slack"), head.held("pagerduty")) == (None, None)


def test_a_secret_that_cannot_be_read_keeps_its_value_and_no_other_from_being_read(head: Head) -> None:
    task = head.task()
    task()
    head.plan = BOTH
    del head.secrets["team/slack"]
    with pytest.raises(AlertSecretError, match=r"^cannot read the secret team/slack: it does not exist$"):
        task()
    assert (head.held("slack"), head.held("pagerduty")) == (URL, "R01KEY")


@pytest.mark.parametrize("text", ['{"url": "https://hooks.slack.com/services/T0/B0/x"}', "", "https://a b", "Xq81ZZ"])
def test_what_is_no_url_in_plain_text_is_refused_without_showing_it(text: str, head: Head) -> None:
    head.secrets["team/slack"] = text
    with pytest.raises(AlertSecretError) as refused:
        head.task()()
    assert head.held("slack") is None
    assert not text or text not in str(refused.value)


def test_a_head_whose_alertmanager_is_not_installed_reads_nothing(root: Path) -> None:
    head = Head(root)
    head.task()()
    assert head.reads == []


@dataclass
class RestartingHost(FakeHost):
    def restart(self, daemon: Daemon) -> None:
        self.calls.append(f"restart {daemon.unit}")


def started(act: Callable[..., None], root: Path, of: ClusterPlan, host: FakeHost | None = None) -> list[str]:
    made = host or RestartingHost()
    act(of, made, root)
    return made.calls


@pytest.mark.parametrize("act", [start_alertmanager, restart_alertmanager])
def test_a_head_whose_alerts_nobody_gets_installs_nothing(act: Callable[..., None], root: Path) -> None:
    assert started(act, root, plan(None)) == []


def test_an_apply_restarts_alertmanager_with_its_new_files(root: Path) -> None:
    assert started(restart_alertmanager, root, SLACK) == [
        "install prometheus-alertmanager",
        "start prometheus-alertmanager as root",
        "restart prometheus-alertmanager",
    ]


def test_a_package_that_cannot_be_installed_fails_no_boot(root: Path) -> None:
    assert started(start_alertmanager, root, SLACK, FakeHost(fails=True)) == []


def test_a_head_without_prometheus_fails_no_boot(tmp_path: Path) -> None:
    assert started(start_alertmanager, tmp_path, SLACK) == ["install prometheus-alertmanager"]


def test_the_packages_unit_listens_on_loopback_and_keeps_its_state_on_the_state_volume(head: Head) -> None:
    text = (head.root / "etc/default/prometheus-alertmanager").read_text()
    assert text.endswith(
        'ARGS="--config.file=/etc/corral/alertmanager/alertmanager.yml --storage.path=/var/lib/corral/alertmanager'
        " --web.listen-address=127.0.0.1:9093 --web.config.file=/etc/corral/prometheus/web.yml"
        ' --cluster.listen-address="\n'
    )


def test_systemd_starts_it_only_with_its_state_mounted() -> None:
    text = packaged_drop_in(alertmanager())
    found = [line for line in text.splitlines() if line.startswith(("RequiresMountsFor", "Restart="))]
    assert found == ["RequiresMountsFor=/var/lib/corral/alertmanager", "Restart=on-failure"]
