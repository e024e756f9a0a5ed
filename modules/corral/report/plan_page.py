"""A plan and a declared run as one HTML file to hand on: what would exist, what it costs, how a run would go.

What each section says is in `sections`; here is which there are, and what stands above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.forecast.bill import CostForecast
from corral.forecast.notes import Note
from corral.forecast.training.reasons import layout_words
from corral.forecast.whole.run import WholeRun
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.report.amounts import count, summed
from corral.report.html import template
from corral.report.sections import course, fit, speed
from corral.report.sections.assumed import assumed, power
from corral.report.sections.costs import costs
from corral.report.sections.environment import environment, nodes
from corral.report.sections.interruptions import interruptions
from corral.report.sections.network import network_section
from corral.report.sections.quotas import quotas
from corral.report.sections.roofs import roofs
from corral.report.sections.scaling import scaling
from corral.report.sections.section import Section, Table


def page(
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    notes: Sequence[Note],
    run: WholeRun | None = None,
    more: Sequence[Section] = (),
) -> str:
    """The whole HTML file. Nothing in it is fetched from elsewhere. `more`: sections that follow those of the run."""
    sections = [*(_run_sections(run) if run else ()), *more, *_plan_sections(base, cluster, cost, notes)]
    title = f"{run.spec.model.name} on {cluster.name}" if run else f"Environment {cluster.name}"
    return template("plan.html.j2").render(
        title=title, lead=_lead(cluster, cost, run), cards=_cards(cost, run), sections=sections
    )


def _run_sections(run: WholeRun) -> Iterator[Section]:
    yield fit.layout(run)
    yield fit.memory(run)
    if run.training.fits:
        yield speed.step(run)
        yield roofs(run)
        yield scaling(run)
    if run.network:
        yield network_section(run.network)
    if run.courses:
        yield interruptions(run)
        yield course.days(run)
        yield course.dollars(run)
    if run.saving and run.courses:
        yield course.checkpoints(run, run.saving)
    if run.loading:
        yield course.data(run.loading)
    if run.energy:
        yield power(run.energy, run)
    if run.warnings:
        yield Section(anchor="mind", title="Mind", lines=run.warnings)
    yield assumed(run)


def _plan_sections(
    base: BasePlan, cluster: ClusterPlan, cost: CostForecast, notes: Sequence[Note]
) -> Iterator[Section]:
    yield environment(base, cluster)
    yield nodes(cluster)
    yield costs(cost)
    yield quotas(base, cluster)
    if notes:
        rows = tuple((note.about, note.text) for note in notes)
        table = Table(caption="What one should know of the environment", columns=("about", "to know"), rows=rows)
        yield Section(anchor="notes", title="To know", tables=(table,))


def _lead(cluster: ClusterPlan, cost: CostForecast, run: WholeRun | None) -> str:
    if run is None:
        return f"{cluster.region}; {summed(cost.maximum_usd_per_hour)} USD an hour with every node at work."
    spec = run.spec
    return (
        f"{spec.tokens / 1e9:,.0f} billion tokens on {spec.nodes} {spec.machine.name} of queue {spec.queue} in"
        f" {cluster.region}: {layout_words(run.training.layout)}."
    )


def _cards(cost: CostForecast, run: WholeRun | None) -> list[tuple[str, str]]:
    """The few figures that people look for first."""
    if run is None:
        return [
            ("idle base, USD a month", summed(cost.idle_base_usd_per_month)),
            ("idle cluster, USD an hour", summed(cost.idle_cluster_usd_per_hour)),
            *([("reserved, USD an hour", summed(cost.reserved_usd_per_hour))] if cost.reserved else []),
            ("every node, USD an hour", summed(cost.maximum_usd_per_hour)),
        ]
    training = run.training
    if not training.fits:
        return [("it does not fit: GiB too much", f"{training.missing_gib:.1f}")]
    low, high = training.days_range
    first = next((one for one in run.courses if one.enough and one.usd.usd), None)  # as they are tried
    return [
        ("days, uninterrupted", f"{low:,.1f} - {high:,.1f}"),
        ("tokens a second", count(training.speed.tokens_per_s)),
        ("MFU", f"{training.mfu:.1%}"),
        *([(f"USD, {first.market.value}", summed(first.usd))] if first else []),
    ]
