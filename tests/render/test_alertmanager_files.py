"""Alertmanager's files for a head, by Alertmanager's own tool. `test_alert_delivery` delivers with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from agent.metrics.amtool import check_alertmanager, receivers
from agent.metrics.promtool import check_config
from corral.agent.config.file_placements import is_needed, placements_for
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.model.enums import Role
from corral.model.monitoring import AlertReceivers, MonitoringPlan
from corral.render.alerts import ALERTS, OF_AN_UNWELL_HEAD
from corral.render.monitoring import monitoring_files
from render.plans import dev

ALL = AlertReceivers(topic=True, slack="team/slack", pagerduty="team/pagerduty")
CRITICAL, WARNING = ("alertname=CorralQueueStuck", "severity=critical"), ("alertname=Own", "severity=warning")


@cache
def files(alerts: AlertReceivers | None) -> Mapping[str, str]:
    monitoring = MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10, alerts=alerts)
    plan = replace(dev(), monitoring=monitoring)
    return monitoring_files(plan, catalog_prices(plan.region))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[AlertReceivers], Path]:
    """Writes Alertmanager's files of a cluster with these receivers; returns its configuration."""

    def write(alerts: AlertReceivers) -> Path:
        found = files(alerts)
        text = found["monitoring/alertmanager.yml"].replace("/etc/corral/alertmanager", str(tmp_path))
        (tmp_path / "alertmanager.yml").write_text(text)
        (tmp_path / "alerts.tmpl").write_text(found["monitoring/alerts.tmpl"])
        return tmp_path / "alertmanager.yml"

    return write


def test_a_cluster_whose_alerts_nobody_gets_has_no_alertmanager() -> None:
    assert sorted(files(None)) == ["monitoring/alerts.yml", "monitoring/prices.json", "monitoring/prometheus.yml"]


def test_whatever_slack_gets_of_an_alert_is_escaped() -> None:
    _, _, texts = files(ALL)["monitoring/alerts.tmpl"].partition('{{ define "corral.slack.title"')
    printed = re.findall(r"\{\{-? ((?:or )?\.[^}]*) \}\}", texts)
    escaped = '| reReplaceAll "&" "&amp;" | reReplaceAll "<" "&lt;" | reReplaceAll ">" "&gt;"'
    dates = ".StartsAt.UTC.Format ", ".EndsAt.UTC.Format "
    assert len(printed) == 9
    assert [one for one in printed if not one.endswith(escaped) and not one.startswith(dates)] == []


def test_prometheus_sends_no_alerts_that_nobody_gets() -> None:
    assert "alerting:" not in files(None)["monitoring/prometheus.yml"]


@pytest.mark.parametrize(
    "alerts",
    [
        ALL,
        AlertReceivers(topic=True),
        AlertReceivers(topic=False, slack="team/slack"),
        AlertReceivers(topic=False, pagerduty="team/pagerduty"),
    ],
)
def test_amtool_accepts_the_configuration(alerts: AlertReceivers, written: Callable[[AlertReceivers], Path]) -> None:
    assert check_alertmanager(written(alerts)) == ""


def test_promtool_accepts_the_configuration_that_sends_alerts(tmp_path: Path) -> None:
    found = files(ALL)
    text = found["monitoring/prometheus.yml"].replace("/etc/corral/prometheus", str(tmp_path))
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/corral/alertmanager", str(tmp_path)))
    (tmp_path / "alerts.yml").write_text(found["monitoring/alerts.yml"])
    for name in ("password", "node-token"):
        (tmp_path / name).write_text("secret")
    assert check_config(tmp_path / "prometheus.yml") == ""


@pytest.mark.parametrize(
    ("alerts", "labels", "expected"),
    [
        (ALL, CRITICAL, "pagerduty,people"),
        (ALL, WARNING, "people"),
        (ALL, ("alertname=Own",), "people"),
        (AlertReceivers(topic=False, pagerduty="team/pagerduty"), CRITICAL, "pagerduty"),
        (AlertReceivers(topic=False, pagerduty="team/pagerduty"), WARNING, "nobody"),
    ],
)
def test_pagerduty_gets_critical_alerts_and_all_others_get_every_alert(
    alerts: AlertReceivers, labels: tuple[str, ...], expected: str, written: Callable[[AlertReceivers], Path]
) -> None:
    assert receivers(written(alerts), *labels) == expected


def test_what_an_unwell_head_silences_are_alerts() -> None:
    assert set(OF_AN_UNWELL_HEAD) - {one.name for one in ALERTS} == set()


def test_alertmanager_knows_secrets_by_their_files_alone() -> None:
    text = files(ALL)["monitoring/alertmanager.yml"]
    named = [line.strip() for line in text.splitlines() if ("slack" in line and "/" in line) or "key" in line]
    assert named[:2] == [
        "- routing_key_file: /etc/corral/alertmanager/pagerduty",
        "- api_url_file: /etc/corral/alertmanager/slack",
    ]
    assert "team/" not in "".join(files(ALL).values())


def test_a_head_has_the_files_where_alertmanager_reads_them() -> None:
    content = {name: text.encode() for name, text in files(ALL).items()}
    paths = {one.path for one in placements_for(content, Role.HEAD, None)}
    assert {path for path in paths if path.startswith("/etc/corral/alertmanager")} == {
        "/etc/corral/alertmanager/alertmanager.yml",
        "/etc/corral/alertmanager/alerts.tmpl",
    }


@pytest.mark.parametrize("role", [Role.COMPUTE, Role.LOGIN])
def test_no_other_machine_has_them(role: Role) -> None:
    assert [name for name in files(ALL) if is_needed(name, role)] == []
