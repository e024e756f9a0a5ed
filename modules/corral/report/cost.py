"""The bill of a plan on a terminal. Every amount carries the mark of its source; the sources follow below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from corral.forecast.bill import CostForecast, Item
from corral.forecast.money import HOURS_PER_MONTH
from corral.report.amounts import count, usd
from corral.report.tables import Footnotes, facts, heading, lines, table

_COLUMNS = ("", ">count", ">USD/h", ">USD/month", "")


def cost_view(cost: CostForecast) -> Iterator[RenderableType]:
    """What it costs: standing still, waiting for jobs, at full size, and when it is down."""
    notes = Footnotes()
    yield heading("Cost", "US dollars, before taxes; a range where spot prices move")
    yield facts(_summary(cost))
    yield heading("Base", "as long as it is up")
    yield table(_COLUMNS, _items(cost.base, notes))
    yield heading("Cluster", "without a job")
    yield table(_COLUMNS, _items(cost.cluster, notes))
    yield heading("Queues", "with every node")
    yield table(("queue", "market", ">nodes", ">USD/h a node", ">USD/h", ""), _queues(cost, notes))
    yield heading("By use", "in no sum above")
    yield table(("", ">USD", "for each", ""), _by_use(cost, notes))
    yield heading("Where the prices are from")
    yield notes.shown()
    if cost.unknown:
        yield lines([f"No price is known for {', '.join(cost.unknown)}: the sums are too low by that."])


def _summary(cost: CostForecast) -> Iterator[tuple[str, str]]:
    base, cluster = cost.idle_base_usd_per_month, cost.idle_cluster_usd_per_hour
    yield "idle base", f"{usd(base)} a month"
    yield "idle cluster", f"{usd(cluster)} an hour, on top of the base"
    yield "all nodes", f"{usd(cost.maximum_usd_per_hour)} an hour, base and cluster included"
    data = " and ".join(price.what.partition(":")[0] for price in cost.by_use if price.kept)
    yield "kept when down", f"{usd(cost.kept_usd_per_month)} a month, and what is stored in {data}"


def _items(items: Sequence[Item], notes: Footnotes) -> Iterator[Sequence[str]]:
    for item in items:
        month = item.usd_per_hour.times(HOURS_PER_MONTH) if item.usd_per_hour else None
        number = f"{count(item.count)} {item.unit}".strip()
        yield item.what, number, usd(item.usd_per_hour), usd(month), notes.mark(item.source)


def _queues(cost: CostForecast, notes: Footnotes) -> Iterator[Sequence[str]]:
    for queue in cost.queues:
        amounts = usd(queue.usd_per_node_hour), usd(queue.usd_per_hour)
        yield queue.queue, queue.market.value, count(queue.nodes), *amounts, notes.mark(queue.source)


def _by_use(cost: CostForecast, notes: Footnotes) -> Iterator[Sequence[str]]:
    for price in cost.by_use:
        yield price.what, "?" if price.usd is None else f"{price.usd:.3f}", price.unit, notes.mark(price.source)
