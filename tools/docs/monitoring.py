"""The tables of docs/monitoring.md, from the metrics of the agent and the alerts. The rest is written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tools.docs.tables import filled, table

from corral.agent.metrics.head_metrics import head_metrics
from corral.agent.metrics.node_metrics import node_metrics
from corral.agent.metrics.text_format import Metric
from corral.render.alerts import ALERTS, RECORDINGS


def fill(page: str) -> str:
    """Return the page with new tables."""
    of_head, of_nodes = table(_metrics(head_metrics())), table(_metrics(node_metrics()))
    recorded = table(_recordings())
    tables = {"alerts": table(_alerts()), "metrics": of_head, "node_metrics": of_nodes, "recordings": recorded}
    return filled(page, tables)


def _alerts() -> Iterator[Mapping[str, str]]:
    for alert in ALERTS:
        expression = alert.expression.replace("|", "\\|")
        yield {
            "alert": f"[{alert.name}](runbooks/{alert.name}.md)",
            "severity": str(alert.severity),
            "for": alert.holds_for,
            "fires when": f"`{expression}`",
        }


def _recordings() -> Iterator[Mapping[str, str]]:
    for one in RECORDINGS:
        yield {"metric": f"`{one.name}`", "what": one.text, "computed as": f"`{one.expression}`"}


def _metrics(metrics: Iterable[Metric]) -> Iterator[Mapping[str, str]]:
    for metric in metrics:
        yield {"metric": f"`{metric.name}`", "type": str(metric.kind), "what": metric.help}
