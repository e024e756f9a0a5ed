"""What an up would take the ground from: machines whose queue goes or shrinks, and what stands in subnets that go.

AWS deletes no subnet in which something stands, but lets go of what belongs to it before it says so; and a machine of
a queue that is no more would run on unseen. Both are refused before anything is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.engine.errors import REFUSED, EngineError
from corral.engine.stack import Stack, resources
from corral.engine.workplace import account_of
from corral.model.base import BasePlan
from corral.model.zones import is_zone_id
from corral.plan.base import plan_base
from corral.spec.files import Environment

SUBNET = "aws:ec2/subnet:Subnet"
_SHOWN = 8  # lines of a refusal; the rest is counted


@dataclass(frozen=True, slots=True)
class Shrinking:
    """The two stacks of an environment with the states that they have now, and what the environment is to be."""

    environment: Environment
    base: Stack
    cluster: Stack
    base_state: Mapping[str, Any] | None
    cluster_state: Mapping[str, Any] | None


def refuse_to_strand(now: Shrinking, *, end_machines: bool = False) -> None:
    """Raises EngineError for all that would lose its ground. With `end_machines`, machines of queues are ended first.

    Nothing is asked of AWS where neither stack exists.
    """
    if resources(now.cluster_state):
        _queues(now, end_machines=end_machines)
    if leaving := leaving_subnets(resources(now.base_state), plan_base(now.environment.base)):
        _subnets(now, leaving)


def leaving_subnets(state: Iterable[Mapping[str, Any]], plan: BasePlan) -> Mapping[str, str]:
    """The ids of the subnets in the state that the plan has no more, with their zones as the plan would name them."""
    by_id = is_zone_id(plan.zones[0].zone_id)  # a base names all of its zones in one way
    stay = {(zone.zone_id, str(zone.private)) for zone in plan.zones}
    if plan.public:
        stay.add((plan.public.zone_id, str(plan.public.cidr)))
    found = [(str(one["id"]), one.get("outputs") or {}) for one in state if one["type"] == SUBNET and one.get("id")]
    named = "availabilityZoneId" if by_id else "availabilityZone"
    places = {id: (known.get(named), known.get("cidrBlock")) for id, known in found}
    return {id: str(place[0]) for id, place in places.items() if place not in stay}


def _queues(now: Shrinking, *, end_machines: bool) -> None:
    from corral.inventory import machines

    stack, account = now.cluster, account_of(now.cluster)
    queues = {queue.name: queue.nodes.max for queue in now.environment.cluster.queues}
    found = machines.stranded(machines.launched_machines(account, stack.name), queues)
    if not found:
        return
    every = [machine for queue in found.values() for machine in queue]
    if not end_machines:
        lines = [_queue_line(name, len(found[name]), queues.get(name)) for name in found]
        listed = [f"  {machine.id}  {machine.type}  {machine.zone}" for machine in every]
        end = "let their jobs end and the machines go idle, or end them now: corral up --end-machines"
        hints = (*_some(listed), end)
        raise EngineError(f"{stack.title}: {'; '.join(lines)}: nothing was changed", hints, REFUSED)
    stack.printer.say(f"{stack.title}: ending {len(every)} machines of queues that go or shrink: {', '.join(found)}")
    try:
        machines.end_machines(account, stack.name, every)
    except TimeoutError as error:
        raise EngineError(f"{stack.title}: {error}", ("try again in some minutes",)) from None


def _queue_line(name: str, running: int, maximum: int | None) -> str:
    they = f"{running} of its machines {'runs' if running == 1 else 'run'}"
    return f"queue {name} would {'go' if maximum is None else f'have {maximum} nodes'} while {they}"


def _subnets(now: Shrinking, leaving: Mapping[str, str]) -> None:
    from corral.inventory.tenants import tenants

    found = tenants(account_of(now.base), leaving)
    if not found:
        return
    zones = ", ".join(sorted({leaving[tenant.subnet] for tenant in found}))
    listed = [f"  {leaving[tenant.subnet]}  {tenant.id}  {tenant.name}".rstrip() for tenant in found]
    stand = "1 thing stands" if len(found) == 1 else f"{len(found)} things stand"
    first = "first move them with the subnet still there, or take their cluster down; then try again"
    sentence = f"{now.base.title}: a subnet would go while {stand} in it ({zones}): nothing was changed"
    raise EngineError(sentence, (*_some(listed), first), REFUSED)


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"  and {more} more"] if more > 0 else []))
