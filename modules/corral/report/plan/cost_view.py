"""The cost of a plan on a terminal. Every amount has a footnote with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from corral.forecast.cost.cost_model import CostForecast, Item
from corral.report.formatting import count, lacking, summed, usd
from corral.report.tables import Footnotes, facts, heading, lines, table

_COLUMNS = ("", ">count", ">USD/h", ">USD/month", "")


def cost_view(cost: CostForecast) -> Iterator[RenderableType]:
    """The cost: idle, at full size, and when it is down."""
    footnotes = Footnotes()
    yield heading("Cost", "US dollars, before taxes; a range if spot prices vary")
    yield facts(_summary(cost))
    yield heading("Base", "as long as it is up")
    yield table(_COLUMNS, _items(cost.base, footnotes))
    yield heading("Cluster", "without jobs")
    yield table(_COLUMNS, _items(cost.cluster, footnotes))
    yield heading("Queues", "with all nodes")
    yield table(("queue", "market", ">nodes", ">USD/h per node", ">USD/h", ""), _queues(cost, footnotes))
    yield heading("By use", "not in the sums above")
    yield table(("", ">USD", "per", ""), _by_use(cost, footnotes))
    yield heading("Sources of the prices")
    yield footnotes.shown()
    if cost.unknown:
        yield lines([f"No known price for {'; '.join(cost.unknown)}: the sums do not include it."])
    if cost.unknown_by_use:
        yield lines([f"No known price for {'; '.join(cost.unknown_by_use)}: billed by use, in no sum."])


def _summary(cost: CostForecast) -> Iterator[tuple[str, str]]:
    base, cluster = cost.idle_base_usd_per_month, cost.idle_cluster_usd_per_hour
    most, retained = cost.maximum_usd_per_hour, cost.retained_usd_per_month
    yield "idle base", f"{summed(base)} a month{lacking(base)}"
    yield "idle cluster", f"{summed(cluster)} an hour, on top of the base{lacking(cluster)}"
    if cost.reserved:
        reserved = cost.reserved_usd_per_hour
        yield "reserved", f"{summed(reserved)} an hour, used or not, not included above{lacking(reserved)}"
    yield "all nodes", f"{summed(most)} an hour, including base and cluster{lacking(most)}"
    *data, last = dict.fromkeys(price.what.partition(":")[0] for price in cost.by_use if price.retained)
    stored = f"{', '.join(data)} and {last}" if data else last
    systems = [
        f"{item.named} for {usd(item.usd_per_month)}" for item in cost.retained if item.unit and item.usd_per_hour
    ]
    within = f", including {'; '.join(systems)}" if systems else ""
    yield "when down", f"{summed(retained)} a month{lacking(retained)}{within}, plus the data stored in {stored}"


def _items(items: Sequence[Item], footnotes: Footnotes) -> Iterator[Sequence[str]]:
    for item in items:
        number = f"{count(item.count)} {item.unit}".strip()
        yield item.what, number, usd(item.usd_per_hour), usd(item.usd_per_month), footnotes.mark(item.source)


def _queues(cost: CostForecast, footnotes: Footnotes) -> Iterator[Sequence[str]]:
    for queue in cost.queues:
        if not queue.starts:
            yield queue.queue, queue.market.value, "0", "limit too low", "-", footnotes.mark(queue.source)
            continue
        amounts = usd(queue.usd_per_node_hour), usd(queue.usd_per_hour)
        yield queue.queue, queue.market.value, count(queue.nodes), *amounts, footnotes.mark(queue.source)


def _by_use(cost: CostForecast, footnotes: Footnotes) -> Iterator[Sequence[str]]:
    for price in cost.by_use:
        yield price.what, "?" if price.usd is None else f"{price.usd:.3f}", price.unit, footnotes.mark(price.source)
