"""The outputs of the base's stack that a cluster uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pulumi
from pulumi.output import UNKNOWN

from corral.model.cluster import ClusterPlan


class BaseOutputs:
    """The outputs of a base that a cluster uses. Fails the program if the base is not deployed.

    In a preview, a zone that the same `up` adds to the base is unknown.
    """

    def __init__(self, plan: ClusterPlan) -> None:
        base = f"{pulumi.get_organization()}/corral-base/{plan.base}"
        self._stack = pulumi.StackReference("base", stack_name=base)
        self.subnets = self._by_zone(plan, "subnets")
        self.zone_names = self._by_zone(plan, "zone_names")
        self.vpc_id, self.bucket, self.bucket_arn = self._id("vpc"), self._id("bucket"), self._id("bucket_arn")
        self.key_arn, self.public_key = self._id("key_arn"), self._id("public_key")
        self.home = self._id("home") if plan.home else None
        self.home_group = self._id("home_group") if plan.home else None
        retained = [system.name for system in plan.lustre if system.retained]
        self.lustre_group = self._id("lustre_group") if retained else None
        self.lustre = {name: self._retained_lustre(name) for name in retained}
        self.balancer_subnets = self._balancer_subnets(plan)

    def _id(self, name: str) -> pulumi.Output[str]:
        return self._stack.require_output(name).apply(str)

    def _balancer_subnets(self, plan: ClusterPlan) -> list[pulumi.Output[str]]:
        """The subnets of the login nodes' load balancer: those of its zones, or the public one; none without it."""
        balancer = plan.login.load_balancer if plan.login else None
        if balancer is None:
            return []
        if balancer.is_internal:
            return [self.subnets[zone] for zone in balancer.zones]
        return [self._stack.get_output("public_subnet").apply(_public_subnet)]

    def _retained_lustre(self, name: str) -> pulumi.Output[Sequence[str]]:
        """Return the id, DNS name, mount name and ARN of a file system of the base."""
        found: pulumi.Output[Sequence[str]] = self._stack.require_output("lustre").apply(partial(_of_name, name))
        return found

    def _by_zone(self, plan: ClusterPlan, name: str) -> dict[str, pulumi.Output[str]]:
        found = self._stack.require_output(name)
        zones = {plan.head.zone_id, *(s.zone_id for s in plan.lustre)}
        zones |= set(plan.login.zones.values()) if plan.login else set()
        zones |= {offer.zone_id for queue in plan.queues for offer in queue.offers}
        return {zone: found.apply(partial(_of_zone, zone)) for zone in sorted(zones)}


def _of_name(name: str, systems: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if name not in systems and pulumi.runtime.is_dry_run():
        return UNKNOWN  # type: ignore[return-value]
    if name not in systems:
        raise pulumi.RunError(f"the base has no Lustre {name} yet - deploy the base first")
    return systems[name]


def _public_subnet(id: str | None) -> str:
    """A base of an earlier release exports it with the `up` whose preview this may be."""
    if id is None and pulumi.runtime.is_dry_run():
        return UNKNOWN  # type: ignore[return-value]
    if id is None:
        raise pulumi.RunError("the base exports no public subnet yet - deploy the base first")
    return id


def _of_zone(zone: str, ids: Mapping[str, str]) -> str:
    if zone not in ids and pulumi.runtime.is_dry_run():
        return UNKNOWN  # type: ignore[return-value]  # pulumi passes it on as an output that is not known yet
    if zone not in ids:
        raise pulumi.RunError(f"the base has no subnet in {zone} yet - deploy the base first")
    return str(ids[zone])
