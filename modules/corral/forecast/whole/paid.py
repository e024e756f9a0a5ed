"""What a checkpoint costs beside the time that it takes: where that is much, fewer of them are best.

Daly's interval weighs the stall of a checkpoint against the work that an interruption loses, both in seconds. What
sending it costs - from zone to zone, or by the GB into a home - is the same as so many seconds of the nodes, and is
added to the stall.
"""

from __future__ import annotations

from corral.forecast.capacity import Supply
from corral.forecast.prices import PriceList
from corral.forecast.storage import Way
from corral.forecast.whole.crossing import Flow, crossing_usd
from corral.forecast.whole.elastic import elastic_usd
from corral.forecast.whole.saving import Saving
from corral.model.cluster import ClusterPlan, QueuePlan

_SECONDS_PER_HOUR = 3600


def checkpoint_paid_s(
    saving: Saving, cluster: ClusterPlan, queue: QueuePlan, supply: Supply, prices: PriceList, nodes: int
) -> tuple[float, float]:
    """Seconds of these nodes that cost as much as sending one checkpoint does, at least and at most.

    Nothing where a price is not known, or where nodes cost nothing.
    """
    size, node = saving.size.size_bytes, supply.usd_per_node_hour
    one = Flow(place=saving.place, way=Way.WRITE, low=size, high=size)
    sent = crossing_usd(cluster, queue, supply.market, iter([one]), prices)
    if saving.elastic and sent is not None:
        home = elastic_usd([one], prices)
        sent = sent.plus(home) if home else None
    if sent is None or node is None or not node.low:
        return 0.0, 0.0
    low, high = (usd * nodes / _SECONDS_PER_HOUR for usd in (node.low, node.high))
    return sent.low / high, sent.high / low
