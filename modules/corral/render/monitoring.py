"""The files of Prometheus and Alertmanager on the head, and the prices for the head's metrics of cost."""

from __future__ import annotations

from collections.abc import Mapping

from corral.forecast.cost.environment_cost import running_prices
from corral.forecast.cost.price_source import PriceList
from corral.model.cluster import ClusterPlan
from corral.model.monitoring import (
    ALERTMANAGER_DIR,
    ALERTMANAGER_PORT,
    METRICS_PORT,
    NODE_TARGETS,
    NODE_TOKEN,
    PAGERDUTY_KEY,
    PROMETHEUS_DIR,
    REMOTE_WRITE_PATH,
    REMOTE_WRITES,
    SCRAPE_S,
    SLACK_URL,
    TOPIC_PATH,
    WEB_USER,
)
from corral.model.serialization import to_json
from corral.render.alert_texts import alert_texts
from corral.render.alerts import ALERTS, OF_AN_UNWELL_HEAD, RECORDINGS
from corral.render.templates import fill

_SAMPLES = 50_000  # a thousand nodes in twenty queues of a hundred accounts have some thousand
_NODE_SAMPLES = 20_000  # sixteen jobs of 96 processes on eight GPUs and 32 interfaces have some 12,000
_LABEL_LENGTH = 256
_ALERTMANAGER = {"user": WEB_USER, "password_file": f"{ALERTMANAGER_DIR}/password", "port": ALERTMANAGER_PORT}


def monitoring_files(plan: ClusterPlan, prices: PriceList) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none without Prometheus."""
    if not plan.monitoring.prometheus:
        return {}
    return {
        **_alertmanager_files(plan),
        "monitoring/alerts.yml": fill(
            "monitoring/alerts.yml.j2", alerts=ALERTS, recordings=RECORDINGS, cluster=plan.name
        ),
        "monitoring/prices.json": to_json(running_prices(plan, prices)),
        "monitoring/prometheus.yml": fill(
            "monitoring/prometheus.yml.j2",
            interval_s=SCRAPE_S,
            cluster=plan.name,
            region=plan.region,
            rules=f"{PROMETHEUS_DIR}/alerts.yml",
            own_rules=f"{PROMETHEUS_DIR}/own",
            metrics_port=METRICS_PORT,
            sample_limit=_SAMPLES,
            node_targets=NODE_TARGETS,
            node_token=NODE_TOKEN,
            node_sample_limit=_NODE_SAMPLES,
            label_length=_LABEL_LENGTH,
            alertmanager=_ALERTMANAGER if plan.monitoring.alerts else None,
            remote_write=plan.monitoring.remote_write,
            remote_write_path=REMOTE_WRITE_PATH,
            remote_writes=REMOTE_WRITES,
        ),
    }


def _alertmanager_files(plan: ClusterPlan) -> Mapping[str, str]:
    """Alertmanager's configuration and the text of its messages; none if nobody gets alerts."""
    if not plan.monitoring.alerts:
        return {}
    return {
        "monitoring/alertmanager.yml": fill(
            "monitoring/alertmanager.yml.j2",
            alerts=plan.monitoring.alerts,
            cluster=plan.name,
            region=plan.region,
            texts=f"{ALERTMANAGER_DIR}/alerts.tmpl",
            slack_url=SLACK_URL,
            pagerduty_key=PAGERDUTY_KEY,
            metrics_port=METRICS_PORT,
            topic_path=TOPIC_PATH,
            of_an_unwell_head=OF_AN_UNWELL_HEAD,
        ),
        "monitoring/alerts.tmpl": alert_texts(),
    }
