"""Which quotas of an account the environment needs."""

from __future__ import annotations

from corral.forecast.quotas import quotas_needed
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.report.quotas import QUOTA_COLUMNS, quota_rows, to_ask_for
from corral.report.sections.section import Section, Table


def quotas(base: BasePlan, cluster: ClusterPlan) -> Section:
    """Every quota that it takes something of, at its largest."""
    needs = quotas_needed(base, cluster)
    lead = f"With every node at work, each in each of its markets; reserved capacity has its own. {to_ask_for(needs)}"
    table = Table(caption="Quotas, by what they count", columns=QUOTA_COLUMNS, rows=quota_rows(needs))
    return Section(anchor="quotas", title="Quotas that it needs", lead=lead, tables=(table,))
