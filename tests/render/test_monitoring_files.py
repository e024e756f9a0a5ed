"""Prometheus's files for a head, by Prometheus's own tool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import yaml

from agent.metrics.promtool import check_config
from corral.agent.config.file_placements import is_needed, placements_for
from corral.model.enums import Role
from corral.model.monitoring import ClusterPrices, MonitoringPlan, RemoteWritePlan
from corral.model.serialization import from_json
from corral.model.urls import remote_write_url
from corral.render import cluster_files
from render.plans import cpu, dev, train

PLAN = replace(dev(train(), cpu()), monitoring=MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10))
FILES = cluster_files(PLAN)


def test_a_cluster_without_prometheus_has_none_of_its_files() -> None:
    assert [name for name in cluster_files(dev()) if name.startswith("monitoring/")] == []


def test_a_cluster_with_prometheus_has_its_configuration_its_alerts_and_prices() -> None:
    assert [name for name in FILES if name.startswith("monitoring/")] == [
        "monitoring/alerts.yml",
        "monitoring/prices.json",
        "monitoring/prometheus.yml",
    ]


def test_promtool_accepts_the_configuration_with_its_rules(tmp_path: Path) -> None:
    text = FILES["monitoring/prometheus.yml"].replace("/etc/corral/prometheus", str(tmp_path))
    (tmp_path / "prometheus.yml").write_text(text)
    (tmp_path / "alerts.yml").write_text(FILES["monitoring/alerts.yml"])
    (tmp_path / "node-token").write_text("0f")
    (tmp_path / "nodes.json").write_text("[]")
    assert check_config(tmp_path / "prometheus.yml") == ""


def test_what_jobs_and_nodes_report_is_bounded() -> None:
    jobs = yaml.safe_load(FILES["monitoring/prometheus.yml"])["scrape_configs"]
    assert {job["job_name"]: (job["sample_limit"], job["label_value_length_limit"]) for job in jobs} == {
        "corral": (50_000, 256),
        "nodes": (20_000, 256),
    }


def test_a_head_has_the_files_where_prometheus_and_the_agent_read_them() -> None:
    files = {name: text.encode() for name, text in FILES.items()}
    paths = {one.path for one in placements_for(files, Role.HEAD, None)}
    assert {path for path in paths if "prometheus" in path or "prices" in path} == {
        "/etc/corral/prices.json",
        "/etc/corral/prometheus/alerts.yml",
        "/etc/corral/prometheus/prometheus.yml",
    }


def test_nodes_need_none_of_them() -> None:
    assert [name for name in FILES if name.startswith("monitoring/") and is_needed(name, Role.COMPUTE)] == []


def test_each_offer_with_a_known_price_has_it() -> None:
    prices = from_json(ClusterPrices, FILES["monitoring/prices.json"])
    on_demand = next(offer.key for offer in train().offers if offer.market == "on-demand")
    spot = next(offer.key for offer in train().offers if offer.market == "spot")
    assert prices.offers[spot].low < prices.offers[spot].high < prices.offers[on_demand].low


def test_the_fixed_cost_is_that_of_head_volumes_and_lustre() -> None:
    fixed = json.loads(FILES["monitoring/prices.json"])["fixed"]
    assert fixed["low"] == fixed["high"] > 0.4  # an m7i.2xlarge alone


def test_prometheus_writes_series_to_the_agent_if_the_cluster_has_a_workspace(tmp_path: Path) -> None:
    written = RemoteWritePlan(workspace="ws-1", url=remote_write_url("ws-1", "us-east-1"))
    writing = replace(PLAN, monitoring=replace(PLAN.monitoring, remote_write=written))
    texts = [cluster_files(plan)["monitoring/prometheus.yml"] for plan in (PLAN, writing)]
    assert ["url: http://127.0.0.1:251/remote-write" in text for text in texts] == [False, True]
    (tmp_path / "alerts.yml").write_text(FILES["monitoring/alerts.yml"])
    (tmp_path / "node-token").write_text("0f")
    (tmp_path / "prometheus.yml").write_text(texts[1].replace("/etc/corral/prometheus", str(tmp_path)))
    assert check_config(tmp_path / "prometheus.yml") == ""
