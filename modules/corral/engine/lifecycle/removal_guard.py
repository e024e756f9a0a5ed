"""Refuses a deployment that would delete placement groups or subnets in use.

AWS deletes neither while something uses it, but detaches what belongs to a subnet before it refuses. So the deployment
is refused before it starts. Queues that shrink, or that are removed without a placement group, are the head's task: it
keeps busy nodes until they are idle (docs/apply.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.engine.engine_errors import REFUSED, EngineError
from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack, resources
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.tags import QUEUE_TAG
from corral.model.zones import is_zone_id

SUBNET = "aws:ec2/subnet:Subnet"
GROUP = "aws:ec2/placementGroup:PlacementGroup"
_SHOWN = 8  # lines of a refusal; the rest is counted


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """The stacks of an environment with their current states, and its new plans."""

    planned_base: BasePlan
    planned_cluster: ClusterPlan
    base: Stack
    cluster: Stack
    base_state: Mapping[str, Any] | None
    cluster_state: Mapping[str, Any] | None


def refuse_removals_in_use(change: EnvironmentChange, *, terminate_instances: bool = False) -> None:
    """Raises EngineError if something uses what would be deleted.

    With `terminate_instances`, terminates the instances in placement groups instead. Queries AWS only if a group or
    subnet would be deleted.
    """
    if groups := removed_groups(resources(change.cluster_state), change.planned_cluster):
        _groups(change, groups, terminate_instances=terminate_instances)
    if subnets := removed_subnets(resources(change.base_state), change.planned_base):
        _subnets(change, subnets)


def removed_subnets(state: Iterable[Mapping[str, Any]], plan: BasePlan) -> Mapping[str, str]:
    """The ids of subnets in the state that the plan lacks, with their zones as the plan names them."""
    by_id = is_zone_id(plan.zones[0].zone_id)  # a base names all of its zones in one way
    stay = {(zone.zone_id, str(zone.private)) for zone in plan.zones}
    if plan.public:
        stay.add((plan.public.zone_id, str(plan.public.cidr)))
    found = [(str(one["id"]), one.get("outputs") or {}) for one in state if one["type"] == SUBNET and one.get("id")]
    named = "availabilityZoneId" if by_id else "availabilityZone"
    subnets = {id: (known.get(named), known.get("cidrBlock")) for id, known in found}
    return {id: str(zone) for id, (zone, cidr) in subnets.items() if (zone, cidr) not in stay}


def removed_groups(state: Iterable[Mapping[str, Any]], plan: ClusterPlan) -> frozenset[str]:
    """The names of placement groups in the state that the plan lacks."""
    stay = tuple(f"-group-{group.key}" for group in plan.placement_groups)
    found = (one for one in state if one["type"] == GROUP and one.get("id"))
    return frozenset(str(one["id"]) for one in found if not str(one["urn"]).endswith(stay))


def _groups(change: EnvironmentChange, removed: frozenset[str], *, terminate_instances: bool) -> None:
    from corral.inventory import compute_instances

    stack, account = change.cluster, stack_account(change.cluster)
    found = compute_instances.list_compute_instances(account, stack.name, groups=removed)
    if not found:
        return
    queues = ", ".join(sorted({machine.tags[QUEUE_TAG] for machine in found}))
    they = "1 instance" if len(found) == 1 else f"{len(found)} instances"
    if not terminate_instances:
        listed = [f"  {machine.id}  {machine.type}  {machine.zone}" for machine in found]
        command = f"corral up {stack.name}{stack.account_option} --terminate-instances"
        end = f"wait until they are idle and terminate, or terminate them now: {command}"
        stand = f"cannot delete a placement group of {queues} with {they} in it"
        raise EngineError(f"{stack.title}: {stand}: nothing was changed", (*_some(listed), end), REFUSED)
    stack.display.write(f"{stack.title}: terminating {they} in deleted placement groups of {queues}")
    try:
        compute_instances.terminate_compute_instances(account, stack.name, found)
    except TimeoutError as error:
        raise EngineError(f"{stack.title}: {error}", ("try again in some minutes",)) from None


def _subnets(change: EnvironmentChange, removed: Mapping[str, str]) -> None:
    from corral.inventory.subnet_users import list_subnet_users

    found = list_subnet_users(stack_account(change.base), removed)
    if not found:
        return
    zones = ", ".join(sorted({removed[user.subnet] for user in found}))
    listed = [f"  {removed[user.subnet]}  {user.id}  {user.name}".rstrip() for user in found]
    users = "1 resource" if len(found) == 1 else f"{len(found)} resources"
    first = "move them to another subnet or delete their cluster first, then try again"
    sentence = f"{change.base.title}: cannot delete a subnet with {users} in it ({zones}): nothing was changed"
    raise EngineError(sentence, (*_some(listed), first), REFUSED)


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"  and {more} more"] if more > 0 else []))
