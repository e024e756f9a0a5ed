"""Faults of running instances: interruptions, failures, frozen processes, network cuts. Hold the cloud's lock.

Sources: EC2 User Guide, "Spot Instance interruption notices", "EC2 instance rebalance recommendations" and "Capacity
Blocks for ML": EC2 sends an event 40 minutes before a block ends and terminates its instances from 30 minutes before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import InstanceState, StateReason

from corral.agent.node_identity import IdentityError, identity_at
from corral.box.account import ACCOUNT
from corral.box.ec2.instance_state import is_backed_by_machine
from corral.box.ec2.launch_faults import SHUTTING_DOWN, ScheduledTermination
from corral.box.ec2_capacity.reservations import BLOCK_DRAIN
from corral.box.faults import store
from corral.box.faults.records import Fault, FaultError, FaultScope, Freeze, NetworkCut
from corral.catalog.loader.suggestions import did_you_mean
from corral.model.tags import CLUSTER_TAG, NODES_TAG, QUEUE_TAG, is_head

_SHUTDOWN_TIME = timedelta(seconds=1)  # a killed instance is shutting-down for this time
_LOST = ("Server.InternalError", "An internal error caused the instance to terminate")
OF_MACHINES = (Freeze, NetworkCut)
_ENDED = ("shutting-down", "terminated")
_SEE = "`corral status` lists nodes and instances"


def running() -> Iterator[Any]:
    """The instances that run or start, in all regions."""
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    return (one for backend in backends for one in backend.all_instances() if one.is_active)


def find_instances(which: str) -> list[Any]:
    """The running instances with this node, queue or instance id. Raises FaultError if there are none."""
    return _matching(which, running(), "running instance")


def find_spot_instances(which: str) -> list[Any]:
    """The running spot instances with this node, queue or instance id. Raises FaultError if there are none."""
    return _matching(which, (one for one in running() if one.lifecycle == "spot"), "running spot instance")


def find_heads(cluster: str | None) -> list[Any]:
    """The running heads: all, or the one of a cluster. Raises FaultError if there are none."""
    held = {one: _tags(one)[CLUSTER_TAG] for one in running() if _is_head(_tags(one))}
    found = [one for one in held if cluster in (None, held[one])]
    if not found:
        hint = did_you_mean(cluster, held.values()) if cluster else None
        raise FaultError(f"no running head{f' of {cluster!r}' if cluster else ''} - {hint or _SEE}")
    return _sorted(found)


def find_block_instances(which: str) -> list[Any]:
    """The running instances in capacity blocks with this name. Raises FaultError if there are none."""
    held = (one for one in running() if one.capacity_block_id)
    return _matching(which, held, "running instance of a capacity block")


def give_notice(instances: Iterable[Any], after: timedelta) -> None:
    """Announce that spot reclaims the instances after this time."""
    for instance in instances:
        instance.interruption = utcnow() + after


def recommend_rebalance(instances: Iterable[Any], _after: timedelta) -> None:
    """Send the instances a rebalance recommendation."""
    for instance in instances:
        instance.rebalance = utcnow()


def kill(instances: Iterable[Any], _after: timedelta) -> None:
    """Terminate the instances at once, as a host failure does."""
    code, text = _LOST
    for instance in instances:
        instance._state = InstanceState(SHUTTING_DOWN.name, SHUTTING_DOWN.code)
        instance.scheduled_termination = ScheduledTermination(at=utcnow() + _SHUTDOWN_TIME, code=code, text=text)
        set_state_reason(instance, code, text)


def end_block(instances: Iterable[Any], after: timedelta) -> None:
    """Move the end of the capacity blocks: AWS begins to terminate their instances after this time."""
    for instance in instances:
        reservation = instance.ec2_backend.capacity_reservations[instance.capacity_reservation_id]
        reservation.end = utcnow() + after + BLOCK_DRAIN


def freeze(instances: Iterable[Any], _after: timedelta) -> None:
    """Freeze all processes of the instances."""
    _add(Freeze, instances)


def cut_network(instances: Iterable[Any], _after: timedelta) -> None:
    """Cut the instances off from the network."""
    _add(NetworkCut, instances)


Find = Callable[[str], list[Any]]
Do = Callable[[Iterable[Any], timedelta], None]
# By kind: how to find the instances, what to do with them, and the default delay.
ACTIONS: Mapping[str, tuple[Find, Do, timedelta]] = {
    "spot-notice": (find_spot_instances, give_notice, timedelta(minutes=2)),
    "rebalance": (find_spot_instances, recommend_rebalance, timedelta()),
    "kill": (find_instances, kill, timedelta()),
    "kill-head": (lambda cluster: find_heads(cluster or None), kill, timedelta()),
    "freeze": (find_instances, freeze, timedelta()),
    "network-cut": (find_instances, cut_network, timedelta()),
    "block-end": (find_block_instances, end_block, timedelta(minutes=10)),
}


def terminate_due(now: datetime) -> bool:
    """Terminate due instances: interrupted, failed after launch, or in an expired block; and set others to running
    that AWS has started by now. True if there were any."""
    ended = end_blocks(now)
    for _, backend in list(ec2_backends[ACCOUNT].items()):
        for instance in backend.all_instances():
            ended |= _terminate_if_due(instance, now) or instance.finish_pending(now)
    return _drop_stale_faults() or ended


def end_blocks(now: datetime) -> bool:
    """Terminate the instances of expired capacity blocks. True if there were any."""
    ended = [backend.end_blocks(now) for _, backend in list(ec2_backends[ACCOUNT].items())]
    return any(ended)


def clear_notices(instances: Iterable[Any], kinds: Iterable[str]) -> None:
    """Withdraw the notices of these kinds."""
    attributes = [attribute for kind, attribute in NOTICES.items() if kind in kinds]
    for instance in instances:
        for attribute in attributes:
            setattr(instance, attribute, None)


NOTICES: Mapping[str, str] = {"spot-notice": "interruption", "rebalance": "rebalance"}


def set_state_reason(instance: Any, code: str, text: str) -> None:
    """Set the reason that EC2 shows for the termination."""
    instance.state_reason = StateReason(f"{code}: {text}", code)
    instance._reason = f"{code}: {text}"


def _drop_stale_faults() -> bool:
    """Drop the faults of terminated instances. True if there were any."""
    held = store.faults()
    if not any(isinstance(fault, OF_MACHINES) for fault in held):
        return False
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    alive = {one.id for backend in backends for one in backend.all_instances() if one.state not in _ENDED}
    kept = [fault for fault in held if not isinstance(fault, OF_MACHINES) or fault.scope.target in alive]
    store.save(kept)
    return len(kept) < len(held)


def _terminate_if_due(instance: Any, now: datetime) -> bool:
    if instance.state in ("terminated", "stopped"):
        return False
    if instance.is_ending:
        return _release_if_clean(instance, now)
    due = instance.scheduled_termination
    if instance.interruption and instance.interruption <= now:
        due = ScheduledTermination(
            at=now, code="Server.SpotInstanceTermination", text="Instance terminated by the Spot service"
        )
    if due is None or now < due.at:
        return False
    instance.terminate()
    set_state_reason(instance, due.code, due.text)
    return True


def _release_if_clean(instance: Any, now: datetime) -> bool:
    """Stop or terminate an instance that has been cleaned; one with a machine once its processes have ended."""
    if instance.cleaned_at is None or now < instance.cleaned_at:
        return False
    instance.cleaned_at = None
    if not is_backed_by_machine(instance):
        instance.mark_ended()
    return True


def _add(kind: type[Fault], instances: Iterable[Any]) -> None:
    held = store.faults()
    known = {fault.scope.target for fault in held if isinstance(fault, kind)}
    new = [kind(scope=FaultScope(target=one.id)) for one in instances if one.id not in known]
    store.save((*held, *new))


def _names(instance: Any) -> set[str]:
    """The names of the instance: its id, queue, node, capacity block and reservation."""
    tags = _tags(instance)
    names = {instance.id, tags.get(QUEUE_TAG, ""), instance.capacity_block_id, instance.capacity_reservation_id}
    with contextlib.suppress(IdentityError):  # not launched as a node
        names.add(identity_at(tags.get(NODES_TAG, ""), int(instance.ami_launch_index)).node)
    return names - {"", None}


def _tags(instance: Any) -> Mapping[str, str]:
    return instance.ec2_backend.tags.get(instance.id, {})  # type: ignore[no-any-return]


def _is_head(tags: Mapping[str, str]) -> bool:
    return is_head(tags) and CLUSTER_TAG in tags


def _matching(which: str, instances: Iterable[Any], noun: str) -> list[Any]:
    held = {one: _names(one) for one in instances}
    found = [one for one, names in held.items() if which in names]
    if not found:
        hint = did_you_mean(which, {name for names in held.values() for name in names})
        raise FaultError(f"no {noun} is {which!r} - {hint or _SEE}")
    return _sorted(found)


def _sorted(instances: Iterable[Any]) -> list[Any]:
    return sorted(instances, key=lambda one: str(one.id))
