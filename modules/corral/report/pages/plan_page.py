"""A plan and a declared run as one HTML file to share: resources, cost, forecast.

`sections` has the sections of a module of their own; this module selects them, and adds title, cards, and the tables of
quotas and warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.required_quotas import quotas_needed
from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.explanations import layout_words
from corral.forecast.warnings import PlanWarning
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.report.formatting import count, summed
from corral.report.html_templates import template
from corral.report.plan.quota_view import QUOTA_COLUMNS, quota_requests, quota_rows
from corral.report.sections import market_section, memory_fit, speed_section
from corral.report.sections.assumptions import assumptions_section, power_section
from corral.report.sections.cost_section import cost_section
from corral.report.sections.environment_section import environment_section, nic_section
from corral.report.sections.interruption_section import interruption_section
from corral.report.sections.network_section import network_section
from corral.report.sections.scaling_section import scaling_section
from corral.report.sections.section import Section, Table


def plan_page(
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    warnings: Sequence[PlanWarning],
    run: RunOutlook | None = None,
    more: Sequence[Section] = (),
) -> str:
    """The HTML file, which loads nothing. `more`: sections after those of the run."""
    sections = [*(_run_sections(run) if run else ()), *more, *_plan_sections(base, cluster, cost, warnings)]
    title = f"{run.spec.model.name} on {cluster.name}" if run else f"Environment {cluster.name}"
    return template("plan.html.j2").render(
        title=title, lead=_lead(cluster, cost, run), cards=_cards(cost, run), sections=sections
    )


def _run_sections(run: RunOutlook) -> Iterator[Section]:
    yield memory_fit.layout_section(run)
    yield memory_fit.memory_section(run)
    if run.training.fits:
        yield speed_section.speed_section(run)
        yield speed_section.roofline_section(run)
        yield scaling_section(run)
    if run.network:
        yield network_section(run.network)
    if run.markets:
        yield interruption_section(run)
        yield market_section.days_section(run)
        yield market_section.cost_by_market_section(run)
    if run.checkpoints and run.markets:
        yield market_section.checkpoint_section(run, run.checkpoints)
    if run.data:
        yield market_section.data_section(run.data)
    if run.energy:
        yield power_section(run.energy, run)
    if run.warnings:
        yield Section(anchor="run-warnings", title="Warnings about the run", lines=run.warnings)
    yield assumptions_section(run)


def _plan_sections(
    base: BasePlan, cluster: ClusterPlan, cost: CostForecast, warnings: Sequence[PlanWarning]
) -> Iterator[Section]:
    yield environment_section(base, cluster)
    yield nic_section(cluster)
    yield cost_section(cost)
    yield _quota_section(base, cluster)
    if warnings:
        rows = tuple((warning.about, warning.text) for warning in warnings)
        table = Table(caption="Warnings about the environment", columns=("about", "warning"), rows=rows)
        yield Section(anchor="warnings", title="Warnings about the environment", tables=(table,))


def _quota_section(base: BasePlan, cluster: ClusterPlan) -> Section:
    """Every quota that the environment uses, with its maximum use."""
    needs = quotas_needed(base, cluster)
    lead = f"With all nodes running, in each market of a queue; reserved capacity needs none. {quota_requests(needs)}"
    table = Table(caption="Quotas", columns=QUOTA_COLUMNS, rows=quota_rows(needs))
    return Section(anchor="quotas", title="Required quotas", lead=lead, tables=(table,))


def _lead(cluster: ClusterPlan, cost: CostForecast, run: RunOutlook | None) -> str:
    if run is None:
        return f"{cluster.region}; {summed(cost.maximum_usd_per_hour)} USD an hour with all nodes running."
    spec = run.spec
    return (
        f"{spec.tokens / 1e9:,.0f} billion tokens on {spec.nodes} {spec.machine.name} of queue {spec.queue} in"
        f" {cluster.region}: {layout_words(run.training.layout)}."
    )


def _cards(cost: CostForecast, run: RunOutlook | None) -> list[tuple[str, str]]:
    """The key figures."""
    if run is None:
        return [
            ("idle base, USD a month", summed(cost.idle_base_usd_per_month)),
            ("idle cluster, USD an hour", summed(cost.idle_cluster_usd_per_hour)),
            *([("reserved, USD an hour", summed(cost.reserved_usd_per_hour))] if cost.reserved else []),
            ("all nodes, USD an hour", summed(cost.maximum_usd_per_hour)),
        ]
    training = run.training
    if not training.fits:
        return [("does not fit: GiB missing", f"{training.missing_gib:.1f}")]
    low, high = training.days_range
    first = next((one for one in run.markets if one.enough and one.usd.usd), None)  # in the order of the offers
    return [
        ("days, uninterrupted", f"{low:,.1f} - {high:,.1f}"),
        ("tokens per second", count(training.speed.tokens_per_s)),
        ("MFU", f"{training.mfu:.1%}"),
        *([(f"USD, {first.market.value}", summed(first.usd))] if first else []),
    ]
