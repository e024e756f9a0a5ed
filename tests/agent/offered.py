"""Queues and the launch templates of their offers in the box, some of which have little capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from box.vpc_fixtures import Clients, LaunchNetwork, node_template
from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.deployed import Deployed, DeployedTemplate
from corral.model.enums import Market
from render.plans import cpu, deployed, train


def offer(key: str) -> OfferPlan:
    return OfferPlan(
        key=key,
        pool=0,
        market=Market.ON_DEMAND,
        zone_id="use1-az1",
        max_price_usd_per_hour=None,
        placement_group=None,
    )


def with_efa(*offers: str) -> QueuePlan:
    """Queue `train` with these offers."""
    return replace(train(), offers=tuple(offer(key) for key in offers))


def without_efa(*offers: str) -> QueuePlan:
    """Queue `cpu` with these offers."""
    return replace(cpu(), max_nodes=400, offers=tuple(offer(key) for key in offers))


def offering(
    aws: Clients, launch_network: LaunchNetwork, capacities: Mapping[str, int | None], cluster: str = "dev"
) -> Deployed:
    """A launch template for each offer: in a reservation of this capacity, or unlimited for None."""
    made = {key: _template(aws, launch_network, key, capacity, cluster) for key, capacity in capacities.items()}
    return replace(deployed(), templates=made)


def tags(aws: Clients) -> list[dict[str, str]]:
    """The cluster's own tags of every live instance, by launch and launch index."""
    wanted = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    reservations = aws("ec2").describe_instances(Filters=wanted)["Reservations"]
    instances = [one for held in reservations for one in held["Instances"]]
    own = ([tag for tag in one["Tags"] if tag["Key"].startswith("corral:")] for one in instances)
    return [{tag["Key"]: tag["Value"] for tag in held} for held in own]


def _template(
    aws: Clients, launch_network: LaunchNetwork, key: str, capacity: int | None, cluster: str
) -> DeployedTemplate:
    left_out = ("InstanceMarketOptions", "Placement", "CapacityReservationSpecification")
    data: dict[str, Any] = {
        name: value for name, value in node_template(launch_network).items() if name not in left_out
    }
    tags = {"corral:cluster": cluster, "corral:offer": key}
    data["TagSpecifications"] = [
        {"ResourceType": "instance", "Tags": [{"Key": name, "Value": value} for name, value in tags.items()]}
    ]
    if capacity is not None:
        data["CapacityReservationSpecification"] = {"CapacityReservationTarget": _reservation(aws, capacity)}
    made = aws("ec2").create_launch_template(LaunchTemplateName=f"{cluster}-{key}", LaunchTemplateData=data)
    return DeployedTemplate(id=made["LaunchTemplate"]["LaunchTemplateId"], version="1")


def _reservation(aws: Clients, free: int) -> dict[str, str]:
    """The target of a launch into a reservation with this free capacity; 0 for a full one."""
    made = aws("ec2").create_capacity_reservation(
        InstanceType="p4d.24xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-east-1b",
        InstanceMatchCriteria="targeted",
        InstanceCount=max(free, 1),
    )
    target = {"CapacityReservationId": str(made["CapacityReservation"]["CapacityReservationId"])}
    if not free:
        aws("ec2").cancel_capacity_reservation(**target)
    return target
