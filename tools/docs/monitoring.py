"""The tables of docs/monitoring.md, from the metrics of the agent and the alerts. The rest is written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.docs.tables import filled, table

from corral.agent.metrics.head_metrics import head_metrics
from corral.render.alerts import ALERTS


def fill(page: str) -> str:
    """Return the page with new tables."""
    return filled(page, {"alerts": table(_alerts()), "metrics": table(_metrics())})


def _alerts() -> Iterator[Mapping[str, str]]:
    for alert in ALERTS:
        expression = alert.expression.replace("|", "\\|")
        yield {
            "alert": f"[{alert.name}](runbooks/{alert.name}.md)",
            "severity": str(alert.severity),
            "for": alert.holds_for,
            "fires when": f"`{expression}`",
        }


def _metrics() -> Iterator[Mapping[str, str]]:
    for metric in head_metrics():
        yield {"metric": f"`{metric.name}`", "type": str(metric.kind), "what": metric.help}
