"""The bill of a plan on a terminal. Every amount carries the mark of its source; the sources follow below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from corral.forecast.bill import CostForecast, Item
from corral.report.amounts import count, lacking, summed, usd
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
        yield lines([f"No price is known for {'; '.join(cost.unknown)}: the sums are too low by that."])
    if cost.unknown_by_use:
        yield lines([f"No price is known for {'; '.join(cost.unknown_by_use)}: paid for by use, in no sum."])


def _summary(cost: CostForecast) -> Iterator[tuple[str, str]]:
    base, cluster = cost.idle_base_usd_per_month, cost.idle_cluster_usd_per_hour
    most, kept = cost.maximum_usd_per_hour, cost.kept_usd_per_month
    yield "idle base", f"{summed(base)} a month{lacking(base)}"
    yield "idle cluster", f"{summed(cluster)} an hour, on top of the base{lacking(cluster)}"
    if cost.reserved:
        reserved = cost.reserved_usd_per_hour
        yield "reserved", f"{summed(reserved)} an hour, used or not, in neither of these{lacking(reserved)}"
    yield "all nodes", f"{summed(most)} an hour, base and cluster included{lacking(most)}"
    *data, last = dict.fromkeys(price.what.partition(":")[0] for price in cost.by_use if price.kept)
    stored = f"{', '.join(data)} and {last}" if data else last
    systems = [f"{item.named} for {usd(item.usd_per_month)}" for item in cost.kept if item.unit and item.usd_per_hour]
    within = f", of that {'; '.join(systems)}" if systems else ""
    yield "kept when down", f"{summed(kept)} a month{lacking(kept)}{within}, and what is stored in {stored}"


def _items(items: Sequence[Item], notes: Footnotes) -> Iterator[Sequence[str]]:
    for item in items:
        number = f"{count(item.count)} {item.unit}".strip()
        yield item.what, number, usd(item.usd_per_hour), usd(item.usd_per_month), notes.mark(item.source)


def _queues(cost: CostForecast, notes: Footnotes) -> Iterator[Sequence[str]]:
    for queue in cost.queues:
        if not queue.starts:
            yield queue.queue, queue.market.value, "0", "limit too low", "-", notes.mark(queue.source)
            continue
        amounts = usd(queue.usd_per_node_hour), usd(queue.usd_per_hour)
        yield queue.queue, queue.market.value, count(queue.nodes), *amounts, notes.mark(queue.source)


def _by_use(cost: CostForecast, notes: Footnotes) -> Iterator[Sequence[str]]:
    for price in cost.by_use:
        yield price.what, "?" if price.usd is None else f"{price.usd:.3f}", price.unit, notes.mark(price.source)
