"""Decide when reserved capacity is worth waiting for. Pure: its capacity, instances and backoffs in.

EC2 cleans the capacity of an instance that has ended for minutes, before another can be launched into the reservation
or capacity block (EC2 User Guide, "Launch instances using Capacity Blocks"). It is paid for meanwhile, and the
other machines of a job wait in the same reservation: moving them to another market would end all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance, ReservedCapacity
from corral.agent.cluster.state import AutoscalerState, Backoff
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.timeouts import RESUME_TIMEOUT_S

# How long a launch waits. A machine needs the rest of slurmctld's ResumeTimeout to boot.
WAIT_S = RESUME_TIMEOUT_S / 2
CLEANED_WITHIN_S = 900.0  # after a termination; "several minutes" are documented
# Of an offer whose block has not begun, or is about to end: waiting gains nothing.
_OF_BLOCK_TIMES = frozenset({LaunchErrorKind.NOT_BEGUN, LaunchErrorKind.CAPACITY})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationUsage:
    """Instances that a reservation has capacity for: in total, now, and once EC2 has cleaned it."""

    total: int
    free: int
    cleaning: int


def reserved_offers(plan: ClusterPlan) -> frozenset[str]:
    """The offers of all queues with reserved capacity."""
    return frozenset(offer.key for queue in plan.queues for offer in queue.offers if offer.reservation)


def refusing_reservations(queue: QueuePlan, backoffs: Mapping[str, Backoff]) -> Mapping[str, str]:
    """The reservations of a queue that have refused a launch, by offer."""
    return {
        offer.key: offer.reservation
        for offer in queue.offers
        if offer.reservation and offer.key in backoffs and backoffs[offer.key].kind not in _OF_BLOCK_TIMES
    }


def usage_of(
    refusing: Mapping[str, str],
    capacities: Mapping[str, ReservedCapacity],
    offers: Iterable[OfferPlan],
    shown: Sequence[Instance],
    state: AutoscalerState,
    now: float,
) -> Mapping[str, ReservationUsage]:
    """The usage of the reservations of these offers.

    `capacities`: by reservation. `offers`: all of the cluster, which may share a reservation.
    """
    sharing: dict[str, set[str]] = {}
    for offer in offers:
        if offer.reservation:
            sharing.setdefault(offer.reservation, set()).add(offer.key)
    found: dict[str, ReservationUsage] = {}
    for key, reservation in refusing.items():
        if held := capacities.get(reservation):
            own = [one for one in shown if one.offer in sharing.get(reservation, ())]
            running = sum(1 for one in own if one.active and one.instance_id not in state.ended)
            ended = sum(1 for one in own if _is_cleaned(one, state, now))
            cleaning = max(0, min(ended, held.total - running - held.free))
            found[key] = ReservationUsage(total=held.total, free=held.free, cleaning=cleaning)
    return found


def renew_backoffs(
    state: AutoscalerState, usage: Mapping[str, ReservationUsage], until: float, now: float
) -> AutoscalerState:
    """The state with offers backing off until then whose reservation has no free capacity: launches would fail."""
    renewed = {
        key: replace(state.backoffs[key], until=until)
        for key, held in usage.items()
        if not held.free and state.backoffs[key].kind is LaunchErrorKind.RESERVED and state.backoffs[key].until <= now
    }
    return replace(state, backoffs={**state.backoffs, **renewed}) if renewed else state


def home_of(
    allocated: Sequence[str],
    wanted: int,
    held: Sequence[Instance],
    backoffs: Mapping[str, Backoff],
    usage: Mapping[str, ReservationUsage],
) -> str:
    """The offer whose reservation has machines of the job and room for all of it; empty if there is none.

    `allocated`: the job's nodes with machines; `wanted`: how many more it needs.
    """
    used = {one.offer for one in held if one.active and one.node in set(allocated)}
    homes = [key for key in sorted(used) if key in usage and usage[key].total >= len(allocated) + wanted]
    return next((key for key in homes if backoffs[key].kind not in _OF_BLOCK_TIMES), "")


def is_awaited(
    suitable: Sequence[str],
    missing: int,
    needed: int,
    home: str,
    requested_at: float,
    backoffs: Mapping[str, Backoff],
    usage: Mapping[str, ReservationUsage],
    now: float,
) -> bool:
    """Whether to wait: for the first reservation before any other available offer with enough capacity once cleaned.

    `missing`: how many nodes; `needed`: how many of them at once, since a machine that waits for others may be
    suspended meanwhile, and its capacity be cleaned in turn. Without an available offer a job also waits for its
    `home`, until others free capacity there.
    """
    if now >= requested_at + WAIT_S:
        return False
    for key in suitable:
        is_available = key not in backoffs or backoffs[key].until <= now
        held = usage.get(key)
        if held and held.cleaning and backoffs[key].kind is LaunchErrorKind.RESERVED:
            soon = held.free + held.cleaning
            if held.free < needed <= soon if is_available else missing <= soon:
                return True
        if is_available:
            return False
    return home in suitable


def _is_cleaned(instance: Instance, state: AutoscalerState, now: float) -> bool:
    ended_at = state.ended.get(instance.instance_id)
    return instance.state == "shutting-down" or (ended_at is not None and now - ended_at < CLEANED_WITHIN_S)
