"""What the environment costs, whether anybody trains in it or not."""

from __future__ import annotations

from collections.abc import Iterator

from corral.forecast.bill import CostForecast
from corral.forecast.money import HOURS_PER_MONTH, Sum
from corral.report.amounts import lacking, summed, usd
from corral.report.charts import Range, ranges
from corral.report.sections.section import Section, Table, picture
from corral.report.tables import Footnotes


def costs(cost: CostForecast) -> Section:
    """What it costs an hour and a month: idle, at full size, by queue and market, by part."""
    found, sources = list(_ranges(cost)), Footnotes()
    title = "US dollars an hour"
    return Section(
        anchor="cost",
        title="What the environment costs",
        lead="US dollars before taxes; a range where spot prices move. What is paid for by use is in no sum.",
        pictures=(picture(lambda width: ranges(title, found, width=width)),),
        tables=(
            Table(caption="Standing still, and at full size", columns=("", ">USD/h", ">USD/month"), rows=_sums(cost)),
            Table(
                caption="Base and cluster, without a job",
                columns=("part", ">USD/h", ">USD/month", "source"),
                rows=tuple(
                    (item.named, usd(item.usd_per_hour), usd(item.usd_per_month), sources.mark(item.source))
                    for item in (*cost.base, *cost.cluster)
                ),
            ),
            Table(
                caption="Queues, with every node that a market can give",
                columns=("queue and market", ">nodes", ">USD/h a node", ">USD/h", "source"),
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
                caption="Paid for by use",
                columns=("what", ">USD", "for each", "source"),
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
    base, kept = cost.idle_base_usd_per_month, cost.kept_usd_per_month
    cluster, most = cost.idle_cluster_usd_per_hour, cost.maximum_usd_per_hour
    return (
        _sum("idle base", base.times(hour), base),
        _sum("idle cluster, on top of the base", cluster, cluster.times(HOURS_PER_MONTH)),
        _sum("every node at work, base and cluster included", most, most.times(HOURS_PER_MONTH)),
        _sum("what stays after down, without the data stored", kept.times(hour), kept),
    )


def _sum(what: str, hourly: Sum, monthly: Sum) -> tuple[str, str, str]:
    return f"{what}{lacking(hourly)}", summed(hourly), summed(monthly)


def _ranges(cost: CostForecast) -> Iterator[Range]:
    """Base, cluster, each queue in each market, and all of it. A price that is not known is not drawn."""
    yield from _range("idle base", cost.idle_base_usd_per_month.times(1 / HOURS_PER_MONTH))
    yield from _range("idle cluster", cost.idle_cluster_usd_per_hour)
    for row in cost.queues:
        if row.starts and row.usd_per_hour:
            yield from _range(f"{row.queue}, {row.market.value}", Sum(usd=row.usd_per_hour))
    yield from _range("everything", cost.maximum_usd_per_hour)


def _range(name: str, amount: Sum) -> Iterator[Range]:
    if amount.usd:
        yield Range(name=name, low=amount.usd.low, high=amount.usd.high, words=summed(amount))
