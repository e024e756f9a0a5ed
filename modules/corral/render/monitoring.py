"""Prometheus's files on the head: its configuration, the alerts, and the prices for the head's metrics of cost."""

from __future__ import annotations

from collections.abc import Mapping

from corral.forecast.cost.environment_cost import running_prices
from corral.forecast.cost.price_source import PriceList
from corral.model.cluster import ClusterPlan
from corral.model.monitoring import METRICS_PORT, NODE_TARGETS, NODE_TOKEN, PROMETHEUS_DIR
from corral.model.serialization import to_json
from corral.render.alerts import ALERTS
from corral.render.templates import fill

_INTERVAL_S = 30  # the autoscaler compares Slurm and EC2 as often
_SAMPLES = 50_000  # a thousand nodes in twenty queues of a hundred accounts have some thousand
_NODE_SAMPLES = 20_000  # sixteen jobs of 96 processes on eight GPUs and 32 interfaces have some 12,000
_LABEL_LENGTH = 256


def monitoring_files(plan: ClusterPlan, prices: PriceList) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none without Prometheus."""
    if not plan.monitoring.prometheus:
        return {}
    return {
        "monitoring/alerts.yml": fill("monitoring/alerts.yml.j2", alerts=ALERTS),
        "monitoring/prices.json": to_json(running_prices(plan, prices)),
        "monitoring/prometheus.yml": fill(
            "monitoring/prometheus.yml.j2",
            interval_s=_INTERVAL_S,
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
        ),
    }
