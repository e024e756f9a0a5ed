"""What an up would take the ground from: machines in placement groups that go, and what stands in subnets that go.

AWS deletes neither while something is in it, but lets go of what belongs to a subnet before it says so. Both are
refused before anything is touched. A queue that shrinks, or goes without a placement group, is its head's business:
that keeps the nodes that work until they are free (docs/apply.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.engine.errors import REFUSED, EngineError
from corral.engine.stack import Stack, resources
from corral.engine.workplace import account_of
from corral.inventory.things import QUEUE_TAG
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.zones import is_zone_id

SUBNET = "aws:ec2/subnet:Subnet"
GROUP = "aws:ec2/placementGroup:PlacementGroup"
_SHOWN = 8  # lines of a refusal; the rest is counted


@dataclass(frozen=True, slots=True)
class Shrinking:
    """The two stacks of an environment with the states that they have now, and what the environment is to be."""

    planned_base: BasePlan
    planned_cluster: ClusterPlan
    base: Stack
    cluster: Stack
    base_state: Mapping[str, Any] | None
    cluster_state: Mapping[str, Any] | None


def refuse_to_strand(now: Shrinking, *, end_machines: bool = False) -> None:
    """Raises EngineError for all that would lose its ground. With `end_machines`, machines in groups are ended first.

    Nothing is asked of AWS where nothing goes.
    """
    if going := leaving_groups(resources(now.cluster_state), now.planned_cluster):
        _groups(now, going, end_machines=end_machines)
    if leaving := leaving_subnets(resources(now.base_state), now.planned_base):
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


def leaving_groups(state: Iterable[Mapping[str, Any]], plan: ClusterPlan) -> frozenset[str]:
    """The names of the placement groups in the state that the plan has no more."""
    stay = tuple(f"-group-{group.key}" for group in plan.placement_groups)
    found = (one for one in state if one["type"] == GROUP and one.get("id"))
    return frozenset(str(one["id"]) for one in found if not str(one["urn"]).endswith(stay))


def _groups(now: Shrinking, going: frozenset[str], *, end_machines: bool) -> None:
    from corral.inventory import machines

    stack, account = now.cluster, account_of(now.cluster)
    found = machines.launched_machines(account, stack.name, groups=going)
    if not found:
        return
    queues = ", ".join(sorted({machine.tags[QUEUE_TAG] for machine in found}))
    they = "1 machine" if len(found) == 1 else f"{len(found)} machines"
    if not end_machines:
        listed = [f"  {machine.id}  {machine.type}  {machine.zone}" for machine in found]
        command = f"corral up {stack.name}{stack.account_option} --end-machines"
        end = f"let their jobs end and the machines go idle, or end them now: {command}"
        stand = f"a placement group of {queues} would go while {they} {'is' if len(found) == 1 else 'are'} in it"
        raise EngineError(f"{stack.title}: {stand}: nothing was changed", (*_some(listed), end), REFUSED)
    stack.printer.say(f"{stack.title}: ending {they} in placement groups that go, of {queues}")
    try:
        machines.end_machines(account, stack.name, found)
    except TimeoutError as error:
        raise EngineError(f"{stack.title}: {error}", ("try again in some minutes",)) from None


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
