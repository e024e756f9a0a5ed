"""The cost of the environment, independent of any run."""

from __future__ import annotations

from collections.abc import Iterator

from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum
from corral.report.charts.bar_charts import Range, ranges
from corral.report.formatting import lacking, summed, usd
from corral.report.sections.section import Section, Table, picture
from corral.report.tables import Footnotes


def cost_section(cost: CostForecast) -> Section:
    """The cost per hour and month: idle, at full size, by queue and market, by item."""
    found, sources = list(_ranges(cost)), Footnotes()
    title = "US dollars an hour"
    return Section(
        anchor="cost",
        title="What the environment costs",
        lead="US dollars before taxes; a range if spot prices vary. No sum includes charges by use.",
        pictures=(picture(lambda width: ranges(title, found, width=width)),),
        tables=(
            Table(caption="Idle, and at full size", columns=("", ">USD/h", ">USD/month"), rows=_sums(cost)),
            Table(
                caption="Base and cluster, without jobs",
                columns=("item", ">USD/h", ">USD/month", "source"),
                rows=tuple(
                    (item.named, usd(item.usd_per_hour), usd(item.usd_per_month), sources.mark(item.source))
                    for item in (*cost.base, *cost.cluster)
                ),
            ),
            Table(
                caption="Queues, with all nodes that a market can supply",
                columns=("queue and market", ">nodes", ">USD/h per node", ">USD/h", "source"),
                rows=tuple(
                    (
                        f"{row.queue}, {row.market.value}",
                        f"{row.nodes:,}" if row.starts else "0",
                        usd(row.usd_per_node_hour) if row.starts else "limit too low",
                        usd(row.usd_per_hour) if row.starts else "-",
                        sources.mark(row.source),
                    )
                    for row in cost.queues
                ),
            ),
            Table(
                caption="Charges by use",
                columns=("item", ">USD", "per", "source"),
                rows=tuple(
                    (use.what, "?" if use.usd is None else f"{use.usd:.3f}", use.unit, sources.mark(use.source))
                    for use in cost.by_use
                ),
            ),
        ),
        lines=sources.listed(),
    )


def _sums(cost: CostForecast) -> tuple[tuple[str, str, str], ...]:
    hour = 1 / HOURS_PER_MONTH
    base, retained = cost.idle_base_usd_per_month, cost.retained_usd_per_month
    cluster, most = cost.idle_cluster_usd_per_hour, cost.maximum_usd_per_hour
    return (
        _sum("idle base", base.times(hour), base),
        _sum("idle cluster, on top of the base", cluster, cluster.times(HOURS_PER_MONTH)),
        _sum("all nodes, including base and cluster", most, most.times(HOURS_PER_MONTH)),
        _sum("retained after down, without the data stored", retained.times(hour), retained),
    )


def _sum(what: str, hourly: Sum, monthly: Sum) -> tuple[str, str, str]:
    return f"{what}{lacking(hourly)}", summed(hourly), summed(monthly)


def _ranges(cost: CostForecast) -> Iterator[Range]:
    """Base, cluster, each queue in each market, and the total. Unknown prices are not drawn."""
    yield from _range("idle base", cost.idle_base_usd_per_month.times(1 / HOURS_PER_MONTH))
    yield from _range("idle cluster", cost.idle_cluster_usd_per_hour)
    for row in cost.queues:
        if row.starts and row.usd_per_hour:
            yield from _range(f"{row.queue}, {row.market.value}", Sum(usd=row.usd_per_hour))
    yield from _range("everything", cost.maximum_usd_per_hour)


def _range(name: str, amount: Sum) -> Iterator[Range]:
    if amount.usd:
        yield Range(name=name, low=amount.usd.low, high=amount.usd.high, words=summed(amount))
