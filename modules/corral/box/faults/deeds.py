"""What is done to machines that run: each deed to the instances that somebody named. Hold the cloud's lock.

Sources: EC2 User Guide, "Spot Instance interruption notices" and "EC2 instance rebalance recommendations"; of Capacity
Blocks, "Capacity Blocks for ML": an event comes 40 minutes before the end, and what runs is ended from 30 minutes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import InstanceState, StateReason

from corral.agent.identity import NODES_TAG, IdentityError, identity_in
from corral.box.control import ACCOUNT
from corral.box.ec2_reservations import CLEANING
from corral.box.faults import book
from corral.box.faults.launching import SHUTTING_DOWN, Fate
from corral.box.faults.names import QUEUE_TAG
from corral.box.faults.records import Fault, FaultError, Hang, Partition, Where
from corral.catalog.names import did_you_mean

CLUSTER_TAG = "corral:cluster"
_DYING = timedelta(seconds=1)  # how long a killed instance is shutting down
_LOST = ("Server.InternalError", "An internal error caused the instance to terminate")
OF_MACHINES = (Hang, Partition)
_ENDED = ("shutting-down", "terminated")
_SEE = "`corral status` lists nodes and instances"


def running() -> Iterator[Any]:
    """The instances that run or are coming, in all regions."""
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    return (one for backend in backends for one in backend.all_instances() if one.is_on)


def named(which: str) -> list[Any]:
    """The running instances that are meant: a node, a queue, one by its id. Raises FaultError where there are none."""
    return _meant(which, running(), "machine that runs")


def on_spot(which: str) -> list[Any]:
    """The running spot instances that are meant. Raises FaultError where there are none."""
    return _meant(which, (one for one in running() if one.lifecycle == "spot"), "spot machine that runs")


def heads(cluster: str | None) -> list[Any]:
    """The heads that run, or the one of a cluster. Raises FaultError where there are none."""
    held = {one: _tags(one)[CLUSTER_TAG] for one in running() if _is_head(_tags(one))}
    found = [one for one in held if cluster in (None, held[one])]
    if not found:
        hint = did_you_mean(cluster, held.values()) if cluster else None
        raise FaultError(f"no head runs{f' for {cluster!r}' if cluster else ''} - {hint or _SEE}")
    return _sorted(found)


def in_blocks(which: str) -> list[Any]:
    """The running instances of a capacity block that are meant. Raises FaultError where there are none."""
    held = (one for one in running() if one.capacity_block_id)
    return _meant(which, held, "machine that runs in a capacity block")


def give_notice(instances: Iterable[Any], after: timedelta) -> None:
    """Has the spot market take the machines back after this time."""
    for instance in instances:
        instance.interruption = utcnow() + after


def recommend_rebalance(instances: Iterable[Any], _after: timedelta) -> None:
    """Says that the machines are at a higher risk of being taken back."""
    for instance in instances:
        instance.rebalance = utcnow()


def kill(instances: Iterable[Any], _after: timedelta) -> None:
    """Ends the machines at once, as a broken host does."""
    code, text = _LOST
    for instance in instances:
        instance._state = InstanceState(SHUTTING_DOWN.name, SHUTTING_DOWN.code)
        instance.fate = Fate(at=utcnow() + _DYING, code=code, text=text)
        show_reason(instance, code, text)


def end_block(instances: Iterable[Any], after: timedelta) -> None:
    """Moves the ends of the blocks, so that AWS begins to end what runs in them after this time."""
    for instance in instances:
        reservation = instance.ec2_backend.capacity_reservations[instance.capacity_reservation_id]
        reservation.end = utcnow() + after + CLEANING


def hang(instances: Iterable[Any], _after: timedelta) -> None:
    """Lets all processes of the machines stand still."""
    _keep(Hang, instances)


def part(instances: Iterable[Any], _after: timedelta) -> None:
    """Unplugs the machines' network cards."""
    _keep(Partition, instances)


Find = Callable[[str], list[Any]]
Do = Callable[[Iterable[Any], timedelta], None]
# By kind: who is meant, what is done, and the time that counts where none is said.
DEEDS: Mapping[str, tuple[Find, Do, timedelta]] = {
    "spot-notice": (on_spot, give_notice, timedelta(minutes=2)),
    "rebalance": (on_spot, recommend_rebalance, timedelta()),
    "kill": (named, kill, timedelta()),
    "kill-head": (lambda cluster: heads(cluster or None), kill, timedelta()),
    "hang": (named, hang, timedelta()),
    "partition": (named, part, timedelta()),
    "block-end": (in_blocks, end_block, timedelta(minutes=10)),
}


def take_what_is_due(now: datetime) -> bool:
    """Ends what was to end by now: noticed, fated, or in a block that is over. True if anything did."""
    ended = end_blocks(now)
    for _, backend in list(ec2_backends[ACCOUNT].items()):
        for instance in backend.all_instances():
            ended |= _meet_fate(instance, now)
    return _forget_machines() or ended


def end_blocks(now: datetime) -> bool:
    """Ends what runs in blocks that are over. True if anything did."""
    ended = [backend.end_blocks(now) for _, backend in list(ec2_backends[ACCOUNT].items())]
    return any(ended)


def forgive(instances: Iterable[Any], kinds: Iterable[str]) -> None:
    """Takes notices and hints back."""
    attributes = [attribute for kind, attribute in NOTICES.items() if kind in kinds]
    for instance in instances:
        for attribute in attributes:
            setattr(instance, attribute, None)


NOTICES: Mapping[str, str] = {"spot-notice": "interruption", "rebalance": "rebalance"}


def show_reason(instance: Any, code: str, text: str) -> None:
    """Has EC2 say why the instance ended."""
    instance.state_reason = StateReason(f"{code}: {text}", code)
    instance._reason = f"{code}: {text}"


def _forget_machines() -> bool:
    """Drops the faults of machines that have ended. True if there were any."""
    held = book.faults()
    if not any(isinstance(fault, OF_MACHINES) for fault in held):
        return False
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    alive = {one.id for backend in backends for one in backend.all_instances() if one.state not in _ENDED}
    kept = [fault for fault in held if not isinstance(fault, OF_MACHINES) or fault.where.of in alive]
    book.keep(kept)
    return len(kept) < len(held)


def _meet_fate(instance: Any, now: datetime) -> bool:
    if instance.state in ("terminated", "stopped") or instance.leaves:
        return False
    fate = instance.fate
    if instance.interruption and instance.interruption <= now:
        fate = Fate(at=now, code="Server.SpotInstanceTermination", text="Instance terminated by the Spot service")
    if fate is None or now < fate.at:
        return False
    instance.terminate()
    show_reason(instance, fate.code, fate.text)
    return True


def _keep(kind: type[Fault], instances: Iterable[Any]) -> None:
    held = book.faults()
    known = {fault.where.of for fault in held if isinstance(fault, kind)}
    new = [kind(where=Where(of=one.id)) for one in instances if one.id not in known]
    book.keep((*held, *new))


def _names(instance: Any) -> set[str]:
    """What the instance can be called: its id, its queue, its node, its block."""
    tags = _tags(instance)
    names = {instance.id, tags.get(QUEUE_TAG, ""), instance.capacity_block_id, instance.capacity_reservation_id}
    with contextlib.suppress(IdentityError):  # not launched as a node
        names.add(identity_in(tags.get(NODES_TAG, ""), int(instance.ami_launch_index)).node)
    return names - {"", None}


def _tags(instance: Any) -> Mapping[str, str]:
    return instance.ec2_backend.tags.get(instance.id, {})  # type: ignore[no-any-return]


def _is_head(tags: Mapping[str, str]) -> bool:
    return QUEUE_TAG not in tags and CLUSTER_TAG in tags


def _meant(which: str, instances: Iterable[Any], noun: str) -> list[Any]:
    held = {one: _names(one) for one in instances}
    found = [one for one, names in held.items() if which in names]
    if not found:
        hint = did_you_mean(which, {name for names in held.values() for name in names})
        raise FaultError(f"no {noun} is {which!r} - {hint or _SEE}")
    return _sorted(found)


def _sorted(instances: Iterable[Any]) -> list[Any]:
    return sorted(instances, key=lambda one: str(one.id))
