"""Apply the active faults to a launch and to each of its instances. Hold the cloud's lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from moto.ec2.models.instances import InstanceState

from corral.box.api_errors import ApiError
from corral.box.delays import BOOT, CLEANING, GPU_TERMINATION, NEW_RESOURCE, TERMINATION, Delay, duration
from corral.box.ec2.launch import LaunchPlan
from corral.box.faults import api_faults, store
from corral.box.faults.matching import FaultContext, first_match, replaced
from corral.box.faults.records import (
    DelayedVisibility,
    FailAfterLaunch,
    HangBoot,
    LaunchFailure,
    MirrorError,
    NoCapacity,
    SlowBoot,
    SlowTermination,
)
from corral.box.zones import zones_offering
from corral.model.enums import Market
from corral.model.node_names import expand
from corral.model.tags import NODES_TAG, QUEUE_TAG

PENDING, SHUTTING_DOWN = InstanceState("pending", 0), InstanceState("shutting-down", 32)
NEVER = "infinity"  # an argument of sleep(1)
GPU_FAMILIES = ("p4", "p5", "p6")  # whose hosts are cleaned for long
_CALL = "ec2:RunInstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledTermination:
    """When an instance terminates, and the reason that EC2 shows."""

    at: datetime
    code: str
    text: str


# Source: EC2 user guide, "Instance terminates immediately", and API reference, StateReason.
REASONS: Mapping[LaunchFailure, tuple[str, str]] = {
    LaunchFailure.CAPACITY: ("Server.InsufficientInstanceCapacity", "There was insufficient capacity available"),
    LaunchFailure.SPOT: ("Server.SpotInstanceTermination", "Spot instance termination"),
    LaunchFailure.VOLUME: ("Client.InternalError", "Client error on launch"),
}


def limit_to_capacity(launch: LaunchPlan, now: datetime) -> LaunchPlan:
    """The launch, limited to the remaining capacity. Raises ApiError if that is below its minimum."""
    occasion = _context(launch)
    api_faults.raise_api_faults(occasion, now)
    held = store.faults()
    short = first_match(held, NoCapacity, occasion, now)
    if short is None:
        return launch
    given = min(launch.count, short.remaining)
    if given < int(launch.parameters["MinCount"]):
        store.consume(NoCapacity, occasion, now)
        raise _no_capacity(launch, occasion.market)
    store.save(replaced(held, short, replace(short, remaining=short.remaining - given)))
    return replace(launch, count=given)


def apply_launch_faults(instance: Any, launch: LaunchPlan, now: datetime) -> None:
    """Apply the matching faults to a new instance, now or by scheduling them."""
    occasion = _context(launch, int(instance.ami_launch_index))
    late = store.consume(DelayedVisibility, occasion, now)
    if hidden := late.after if late else duration(NEW_RESOURCE):
        instance.visible_from = now + hidden
        vars(instance.ec2_backend).setdefault("late_instances", set()).add(instance.id)
    instance.has_mirror_errors = bool(store.consume(MirrorError, occasion, now))
    if failure := store.consume(FailAfterLaunch, occasion, now):
        code, text = REASONS[failure.reason]
        instance.scheduled_termination = ScheduledTermination(at=now + failure.after, code=code, text=text)
        instance._state = InstanceState(PENDING.name, PENDING.code)
    elif store.consume(HangBoot, occasion, now):
        instance.boot_wait = NEVER
    elif slow := store.consume(SlowBoot, occasion, now):
        instance.boot_wait = _seconds(slow.after)
    elif boot := duration(BOOT):
        instance.boot_wait = _seconds(boot)


def cleanup_delay(instance: Any, now: datetime) -> timedelta:
    """How long an instance that ends now is stopping or shutting-down: by a fault, or because the box is aws-like."""
    tags = instance.ec2_backend.tags.get(instance.id, {})
    node = _nodes(tags.get(NODES_TAG, ""), int(instance.ami_launch_index or 0))
    occasion = FaultContext(
        type=instance.instance_type,
        zone=instance.placement.zone,
        market=_market(instance.lifecycle, instance.capacity_reservation_id),
        names=frozenset({instance.id, tags.get(QUEUE_TAG, ""), *node} - {""}),
    )
    slow = store.consume(SlowTermination, occasion, now)
    return slow.after if slow else duration(cleaning_of(instance.instance_type, instance.capacity_reservation_id))


def cleaning_of(instance_type: str, reservation: str | None) -> Delay:
    """How long AWS cleans an instance of this type that ends. `reservation`: the one it runs in, if any."""
    if instance_type.startswith(GPU_FAMILIES):
        return GPU_TERMINATION
    return CLEANING if reservation else TERMINATION


def _context(launch: LaunchPlan, index: int | None = None) -> FaultContext:
    """The context of the whole launch, or of its instance with this index."""
    tags = launch.tags.get("instance", {})
    return FaultContext(
        call=_CALL,
        type=launch.instance_type,
        zone=launch.subnet.availability_zone,
        market=_market(launch.lifecycle, launch.reservation),
        names=frozenset({tags.get(QUEUE_TAG, ""), *_nodes(tags.get(NODES_TAG, ""), index)} - {""}),
    )


def _market(lifecycle: str | None, reservation: object) -> Market:
    if lifecycle:
        return Market(lifecycle)
    return Market.RESERVATION if reservation else Market.ON_DEMAND


def _nodes(folded: str, index: int | None) -> tuple[str, ...]:
    """The nodes of a launch, or the one with this index; empty if it was not launched for nodes."""
    try:
        names = expand(folded) if folded else ()
    except ValueError:
        return ()
    return names if index is None else names[index : index + 1]


def _no_capacity(launch: LaunchPlan, market: Market | None) -> ApiError:
    """Texts: on demand, runs-on/runs-on#73; spot, terraform-aws-modules/terraform-aws-eks; status 500,
    nib-health-funds/hammertime#29."""
    if launch.reservation:
        return ApiError("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible"
                       " and available capacity for this request.")  # fmt: skip
    if market is Market.SPOT:
        text = "There is no Spot capacity available that matches your request."
        return ApiError("InsufficientInstanceCapacity", text, 500)
    kind, zone = launch.instance_type, launch.subnet.availability_zone
    others = sorted(set(zones_offering(kind, zone[:-1])) - {zone})
    elsewhere = f" or choosing {', '.join(others)}" if others else ""
    return ApiError(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). Our"
        f" system will be working on provisioning additional capacity. You can currently get {kind} capacity by not"
        f" specifying an Availability Zone in your request{elsewhere}.",
        500,
    )


def _seconds(after: timedelta) -> str:
    return f"{after.total_seconds():g}"
