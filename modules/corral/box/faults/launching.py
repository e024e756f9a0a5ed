"""What the faults in force make of a launch and of each instance that it brings. Hold the cloud's lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from moto.ec2.models.instances import InstanceState

from corral.agent.identity import NODES_TAG
from corral.box.ec2_launch import Launch
from corral.box.ec2_zones import zones_offering
from corral.box.faults import book, refusing
from corral.box.faults.matching import Occasion, exchanged, first
from corral.box.faults.names import QUEUE_TAG
from corral.box.faults.records import Death, DiesAfterLaunch, HangBoot, Late, Market, NoCapacity, SlowBoot
from corral.box.refusals import Refused
from corral.model.node_names import expand

PENDING, SHUTTING_DOWN = InstanceState("pending", 0), InstanceState("shutting-down", 32)
NEVER = "infinity"  # of seconds, as sleep has them
_CALL = "ec2:RunInstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """When an instance ends, and the reason that EC2 then shows."""

    at: datetime
    code: str
    text: str


# Source: EC2 user guide, "Instance terminates immediately", and API reference, StateReason.
REASONS: Mapping[Death, tuple[str, str]] = {
    Death.CAPACITY: ("Server.InsufficientInstanceCapacity", "There was insufficient capacity available"),
    Death.SPOT: ("Server.SpotInstanceTermination", "Spot instance termination"),
    Death.VOLUME: ("Client.InternalError", "Client error on launch"),
}


def admit(launch: Launch, now: datetime) -> Launch:
    """The launch, with as many instances as the faults leave room for. Raises Refused where that is too few."""
    occasion = _occasion(launch)
    refusing.judge(occasion, now)
    held = book.faults()
    short = first(held, NoCapacity, occasion, now)
    if short is None:
        return launch
    given = min(launch.count, short.room)
    if given < int(launch.asked["MinCount"]):
        book.strike(NoCapacity, occasion, now)
        raise _no_capacity(launch, occasion.market)
    book.keep(exchanged(held, short, replace(short, room=short.room - given)))
    return replace(launch, count=given)


def befall(instance: Any, launch: Launch, now: datetime) -> None:
    """Lets the faults that hit this new instance happen to it, at once or at their time."""
    occasion = _occasion(launch, int(instance.ami_launch_index))
    if late := book.strike(Late, occasion, now):
        instance.visible_from = now + late.after
        vars(instance.ec2_backend).setdefault("late_instances", set()).add(instance.id)
    if dies := book.strike(DiesAfterLaunch, occasion, now):
        code, text = REASONS[dies.reason]
        instance.fate = Fate(at=now + dies.after, code=code, text=text)
        instance._state = InstanceState(PENDING.name, PENDING.code)
    elif book.strike(HangBoot, occasion, now):
        instance.boot_wait = NEVER
    elif slow := book.strike(SlowBoot, occasion, now):
        instance.boot_wait = _seconds(slow.after)


def _occasion(launch: Launch, index: int | None = None) -> Occasion:
    """What the launch is about: all of it, or the instance at this place."""
    tags = launch.tags.get("instance", {})
    return Occasion(
        call=_CALL,
        type=launch.instance_type,
        zone=launch.subnet.availability_zone,
        market=_market(launch),
        names=frozenset({tags.get(QUEUE_TAG, ""), *_nodes(tags.get(NODES_TAG, ""), index)} - {""}),
    )


def _market(launch: Launch) -> Market:
    if launch.lifecycle:
        return Market(launch.lifecycle)
    return Market.RESERVATION if launch.reservation else Market.ON_DEMAND


def _nodes(folded: str, index: int | None) -> tuple[str, ...]:
    """The nodes of a launch, or the one at a place; none where it was not launched for nodes."""
    try:
        names = expand(folded) if folded else ()
    except ValueError:
        return ()
    return names if index is None else names[index : index + 1]


def _no_capacity(launch: Launch, market: Market | None) -> Refused:
    """Texts: on demand, runs-on/runs-on#73; spot, terraform-aws-modules/terraform-aws-eks; status 500,
    nib-health-funds/hammertime#29."""
    if launch.reservation:
        return Refused("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible"
                       " and available capacity for this request.")  # fmt: skip
    if market is Market.SPOT:
        text = "There is no Spot capacity available that matches your request."
        return Refused("InsufficientInstanceCapacity", text, 500)
    kind, zone = launch.instance_type, launch.subnet.availability_zone
    others = sorted(set(zones_offering(kind, zone[:-1])) - {zone})
    elsewhere = f" or choosing {', '.join(others)}" if others else ""
    return Refused(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). Our"
        f" system will be working on provisioning additional capacity. You can currently get {kind} capacity by not"
        f" specifying an Availability Zone in your request{elsewhere}.",
        500,
    )


def _seconds(after: timedelta) -> str:
    return f"{after.total_seconds():g}"
