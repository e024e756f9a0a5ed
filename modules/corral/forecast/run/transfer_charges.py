"""What a run pays to move bytes: between zones, to and from an elastic home, and through the NAT gateway.

* Between zones: checkpoints to and from a Lustre in another zone, and tokens from there. EFS has a mount target in each
  of the base's zones, so its traffic does not cross zones.
* A home with Elastic throughput: per GB read and GB written, in addition to storage. Source: Amazon EFS pricing page,
  "Elastic Throughput".
* The NAT gateway: container images and packages that machines download when they start. S3 has its own endpoint.

Traffic of the job, Slurm and logins is unknown in advance and not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corral.forecast.cost.cost_model import GATEWAY, CostForecast
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.pool_capacity import MarketCapacity
from corral.forecast.cost.price_source import PriceList, Service
from corral.forecast.data_loading import read_bytes_per_token
from corral.forecast.goodput import ProgressRange, RunProgress
from corral.forecast.run.checkpointing import HOME, CheckpointForecast
from corral.forecast.storage_speed import Direction
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.models.run import RunSpec

CROSSING = "cross-zone traffic: checkpoints, tokens"
ELASTIC = "EFS: checkpoints and tokens, written and read"
_ELASTIC_SERVICES = {Direction.READ: "efs-elastic-read-gb", Direction.WRITE: "efs-elastic-written-gb"}
_GB = 1e9
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Bytes that a run writes to or reads from a file system, with the fewest and the most interruptions.

    `high`: None if unbounded.
    """

    storage: str
    way: Direction
    low: float
    high: float | None


def flows(run: RunSpec, checkpoints: CheckpointForecast, found: ProgressRange) -> Iterator[Flow]:
    """The transfers: one write per checkpoint, one read per interruption, one read of all tokens.

    Tokens count only if the run file names their file system.
    """
    size = checkpoints.size.size_bytes
    for way, times in ((Direction.WRITE, _written), (Direction.READ, _read)):
        most = times(found.worst)
        low = (times(found.best) or 0.0) * size
        yield Flow(storage=checkpoints.storage, way=way, low=low, high=None if most is None else most * size)
    if run.loader and run.loader.source:
        tokens = run.tokens * read_bytes_per_token(run.loader, run.model.vocabulary)
        yield Flow(storage=run.loader.source, way=Direction.READ, low=tokens, high=tokens)


def crossing_usd(
    cluster: ClusterPlan, queue: QueuePlan, market: Market, found: Iterator[Flow], prices: PriceList
) -> Usd | None:
    """The cost of these transfers between zones.

    Minimum: only if no zone of the market is that of the file system. Maximum: if any zone differs. None if the price
    is unknown or the bytes are unbounded.
    """
    zones = {offer.zone_id for offer in queue.offers if offer.market is market}
    homes = {system.name: system.zone_id for system in cluster.lustre}
    low = high = 0.0
    for flow in found:
        home = homes.get(flow.storage)
        if home is None or zones <= {home}:
            continue
        if flow.high is None:
            return None
        low, high = low + (0.0 if home in zones else flow.low), high + flow.high
    price = prices.service(Service.CROSS_ZONE_GB)
    if not high:
        return Usd.exact(0.0)
    return Usd(low * price.usd / _GB, high * price.usd / _GB) if price else None


def elastic_usd(found: Iterable[Flow], prices: PriceList) -> Usd | None:
    """The cost of the home's transfers. None if a price is unknown or the bytes are unbounded."""
    usd = Usd.exact(0.0)
    for flow in found:
        if flow.storage != HOME:
            continue
        price = prices.service(_ELASTIC_SERVICES[flow.way])
        if price is None or flow.high is None:
            return None
        usd = usd.plus(Usd(flow.low, flow.high).times(price.usd / _GB))
    return usd


def downloads_what(run: RunSpec) -> str:
    """The name of the charge for downloads."""
    return f"NAT gateway: {run.download_gb:g} GB per machine start"


def downloads_usd(run: RunSpec, found: ProgressRange, cost: CostForecast, prices: PriceList) -> Usd | None:
    """The charge for downloads: all nodes start once, and one more per interruption. None if unknown or unbounded."""
    if not any(item.what == GATEWAY for item in cost.base):
        return Usd.exact(0.0)
    price, worst = prices.service(Service.NAT_GATEWAY_GB), found.worst
    least = found.best.interruptions or 0.0
    if price is None or worst.interruptions is None:
        return None
    each = price.usd * run.download_gb
    return Usd((run.nodes + least) * each, (run.nodes + worst.interruptions) * each)


def checkpoint_paid_s(
    checkpoints: CheckpointForecast,
    cluster: ClusterPlan,
    queue: QueuePlan,
    supply: MarketCapacity,
    prices: PriceList,
    nodes: int,
) -> tuple[float, float]:
    """The minimum and maximum seconds of these nodes that cost as much as sending one checkpoint.

    They are added to the stall of a checkpoint: Daly's interval weighs it against the work that an interruption loses,
    both in seconds, so checkpoints are rarer where sending one is expensive. 0 if a price is unknown, or if nodes cost
    nothing.
    """
    size, node = checkpoints.size.size_bytes, supply.usd_per_node_hour
    one = Flow(storage=checkpoints.storage, way=Direction.WRITE, low=size, high=size)
    sent = crossing_usd(cluster, queue, supply.market, iter([one]), prices)
    if checkpoints.elastic and sent is not None:
        home = elastic_usd([one], prices)
        sent = sent.plus(home) if home else None
    if sent is None or node is None or not node.low:
        return 0.0, 0.0
    low, high = (usd * nodes / _SECONDS_PER_HOUR for usd in (node.low, node.high))
    return sent.low / high, sent.high / low


def _written(run: RunProgress) -> float | None:
    """The number of checkpoints written; None if the run never ends."""
    return None if run.interruptions is None else run.work_s / run.interval_s


def _read(run: RunProgress) -> float | None:
    """The number of checkpoints read; None if the run never ends."""
    return run.interruptions
