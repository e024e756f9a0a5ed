"""What a run sends between zones: checkpoints to and from a Lustre in another zone, and tokens from there.

EFS has a mount target in each of the base's zones, so nothing of it crosses one. What Slurm, logins and images send is
not known before, and little beside this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.loading import read_bytes_per_token
from corral.forecast.money import Usd
from corral.forecast.prices import PriceList, Service
from corral.forecast.reliability import CourseRange, RunCourse
from corral.forecast.storage import Way
from corral.forecast.whole.saving import Saving
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import Market
from corral.spec.run import RunSpec

WHAT = "cross-zone traffic: checkpoints, tokens"
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Bytes that a run writes to a file system or reads of it, with the fewest interruptions and with the most.

    `high` is None where nothing bounds it.
    """

    place: str
    way: Way
    low: float
    high: float | None


def flows(run: RunSpec, saving: Saving, found: CourseRange) -> Iterator[Flow]:
    """Each checkpoint is written once, and read once for each interruption; tokens are read once.

    Tokens count where the run file says from where they are read.
    """
    size = saving.size.size_bytes
    for way, times in ((Way.WRITE, _written), (Way.READ, _read)):
        most = times(found.worst)
        low = (times(found.best) or 0.0) * size
        yield Flow(place=saving.place, way=way, low=low, high=None if most is None else most * size)
    if run.loader and run.loader.source:
        tokens = run.tokens * read_bytes_per_token(run.loader, run.model.vocabulary)
        yield Flow(place=run.loader.source, way=Way.READ, low=tokens, high=tokens)


def crossing_usd(
    cluster: ClusterPlan, queue: QueuePlan, market: Market, found: Iterator[Flow], prices: PriceList
) -> Usd | None:
    """What these flows cost between zones: at least where no zone of the market is that of the file system.

    At most where any other is. None where the price is not known, or where nothing bounds the bytes.
    """
    zones = {offer.zone_id for offer in queue.offers if offer.market is market}
    homes = {system.name: system.zone_id for system in cluster.lustre}
    low = high = 0.0
    for flow in found:
        home = homes.get(flow.place)
        if home is None or zones <= {home}:
            continue
        if flow.high is None:
            return None
        low, high = low + (0.0 if home in zones else flow.low), high + flow.high
    price = prices.service(Service.CROSS_ZONE_GB)
    if not high:
        return Usd.exact(0.0)
    return Usd(low * price.usd / _GB, high * price.usd / _GB) if price else None


def _written(course: RunCourse) -> float | None:
    """How many checkpoints are written; None where the run never ends."""
    return None if course.interruptions is None else course.work_s / course.interval_s


def _read(course: RunCourse) -> float | None:
    """How many are read; None where the run never ends."""
    return course.interruptions
