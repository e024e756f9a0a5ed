"""What an environment refers to and the user owns: data buckets, an adopted VPC, reserved capacity.

On AWS all of it is there before any cluster, and a reference to what is not there is refused. In the box `up` makes
what is missing, under the ids that the environment names, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from corral.engine.account import Account
from corral.engine.bootstrap_steps import bucket_place
from corral.engine.stack import Stack
from corral.engine.workplace import Workplace, account_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.markets import Market
from corral.model.urls import WISHED_ID
from corral.model.zones import is_zone_id
from corral.preflight.buckets import linked
from corral.spec.cluster import ClusterSpec
from corral.spec.files import Environment
from corral.spec.queues import PoolSpec, QueueSpec

_BUCKETS = "the buckets"
_WIDEST, _NARROWEST = 16, 28  # prefix lengths of a VPC
_BLOCK_HOURS = 7 * 24
_BLOCK_MOST = 64  # instances in a block. Source: EC2 User Guide, "Capacity Blocks for ML"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Reserved capacity of one id. `count`: instances. `group`: the placement group that it is made in."""

    id: str
    instance_type: str
    zone: str
    count: int
    is_block: bool
    group: str | None = None


def reserved(cluster: ClusterSpec) -> tuple[Reserved, ...]:
    """The reservations and capacity blocks that the cluster launches into.

    Those of a pool hold together what the pool counts, or else what its queue grows to; a block no more than AWS sells.
    """
    pools = ((queue, pool) for queue in cluster.queues for pool in queue.capacity if pool.market.is_reserved)
    return tuple(one for queue, pool in pools for one in _reserved(queue, pool))


def vpc_range(subnets: tuple[IPv4Network, ...]) -> IPv4Network:
    """The smallest range of a VPC that holds these subnets and one more small one beside them."""
    around = subnets[0]
    while not all(subnet.subnet_of(around) for subnet in subnets) or _free_range(around, subnets) is None:
        if around.prefixlen == _WIDEST:
            raise ValueError(f"no VPC can hold {', '.join(map(str, subnets))} and a subnet for its way out")
        around = around.supernet()
    return around


def lay_out(place: Workplace, stack: Stack, environment: Environment, base: BasePlan, cluster: ClusterPlan) -> None:
    """Makes what is missing. Outside the box it does nothing."""
    if not place.in_box:
        return
    for _, made in _things(account_of(stack), environment, base, cluster):
        for sentence in made:
            place.printer.say(sentence)


def lay_for_check(account: Account, environment: Environment, base: BasePlan, cluster: ClusterPlan) -> Iterator[str]:
    """Makes what is missing in an account that is a box's; a sentence for each kind that the box refuses.

    Where one of the buckets is there, the others have been: what somebody took away stays away, for a check to see.
    """
    from botocore.exceptions import ClientError

    names = tuple(linked(cluster))
    for what, made in _things(account, environment, base, cluster):
        try:
            if what == _BUCKETS and not _buckets(account).isdisjoint(names):
                continue
            for _ in made:
                pass
        except ClientError as error:
            yield f"{what}, which the box makes in your place, cannot be made: {_words(error)}"


def _things(
    account: Account, environment: Environment, base: BasePlan, cluster: ClusterPlan
) -> Iterator[tuple[str, Iterator[str]]]:
    """What is the user's own by kinds, and what makes of it what is missing, telling each."""
    yield _BUCKETS, make_buckets(account, linked(cluster))
    yield "the VPC", _vpc(account, base)
    yield "reserved capacity", make_capacity(account, reserved(environment.cluster))


def _buckets(account: Account) -> frozenset[str]:
    return frozenset(bucket["Name"] for bucket in account.client("s3").list_buckets()["Buckets"])


def _words(error: Any) -> str:
    said = error.response["Error"]
    return f"{error.operation_name}: {said.get('Code', '')}: {' '.join(str(said.get('Message', '')).split())}"


def make_buckets(account: Account, names: Iterable[str]) -> Iterator[str]:
    """Makes the buckets that are missing, in the account's region; a sentence for each."""
    s3, there = account.client("s3"), _buckets(account)
    for name in names:
        if name not in there:
            s3.create_bucket(Bucket=name, **bucket_place(account.region_name))
            yield f"the box has no s3://{name}, which stands for your data: made an empty one"


def make_capacity(account: Account, wanted: Sequence[Reserved]) -> Iterator[str]:
    """Makes the reservations and blocks that are missing, with the groups that they are in; a sentence for each."""
    if not wanted:
        return
    ec2 = account.client("ec2")
    there = {one["CapacityReservationId"] for one in ec2.describe_capacity_reservations()["CapacityReservations"]}
    for one in wanted:
        if one.id not in there:
            (_buy if one.is_block else _reserve)(ec2, one)
            what = "capacity block" if one.is_block else "capacity reservation"
            yield f"the box has no {one.id}, which stands for your {what}: made one of {one.count} {one.instance_type}"


def _reserved(queue: QueueSpec, pool: PoolSpec) -> Iterator[Reserved]:
    is_block = pool.market is Market.CAPACITY_BLOCK
    (zone,) = pool.zones or ()  # a pool of these markets names the one that it is in
    each, rest = divmod(pool.count or queue.nodes.max, len(pool.ids))
    for number, id in enumerate(pool.ids):
        count = max(each + (number < rest), 1)
        yield Reserved(
            id=id,
            instance_type=queue.instance_type,
            zone=zone,
            count=min(count, _BLOCK_MOST) if is_block else count,
            is_block=is_block,
            group=pool.placement_group,
        )


def _vpc(account: Any, base: BasePlan) -> Iterator[str]:
    ec2, wanted = account.client("ec2"), base.adopted_vpc
    if wanted is None or wanted in {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]}:
        return
    private = tuple(zone.private for zone in base.zones)
    around = vpc_range(private)
    vpc = ec2.create_vpc(CidrBlock=str(around), **_wished("vpc", wanted))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    for zone in base.zones:
        where = _zone(zone.zone_id)
        ec2.create_subnet(VpcId=vpc, CidrBlock=str(zone.private), **where, **_wished("subnet", zone.subnet or ""))
    way_out = _free_range(around, private)
    _way_out(ec2, vpc, str(way_out), _zone(base.zones[0].zone_id))
    yield f"the box has no {wanted}, which stands for your VPC: made one with {len(private)} private subnets"


def _way_out(ec2: Any, vpc: str, cidr: str, where: dict[str, str]) -> None:
    """A NAT gateway in a public subnet, and the VPC's main route through it."""
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, **where)["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    ec2.get_waiter("nat_gateway_available").wait(NatGatewayIds=[nat])
    (main,) = ec2.describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [vpc]}, {"Name": "association.main", "Values": ["true"]}]
    )["RouteTables"]
    ec2.create_route(RouteTableId=main["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)


def _reserve(ec2: Any, wanted: Reserved) -> None:
    ec2.create_capacity_reservation(
        InstanceType=wanted.instance_type,
        InstancePlatform="Linux/UNIX",
        InstanceCount=wanted.count,
        InstanceMatchCriteria="targeted",
        **_in_group(ec2, wanted.group),
        **_zone(wanted.zone),
        **_wished("capacity-reservation", wanted.id),
    )


def _in_group(ec2: Any, group: str | None) -> dict[str, str]:
    """The ARN of the cluster placement group of this name, which is made if it is missing."""
    if group is None:
        return {}
    there = {one["GroupName"]: one["GroupArn"] for one in ec2.describe_placement_groups()["PlacementGroups"]}
    made = there.get(group) or ec2.create_placement_group(GroupName=group, Strategy="cluster")["PlacementGroup"]
    return {"PlacementGroupArn": made if isinstance(made, str) else made["GroupArn"]}


def _buy(ec2: Any, wanted: Reserved) -> None:
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    name = next((one["ZoneName"] for one in zones if one["ZoneId"] == wanted.zone), wanted.zone)
    offerings = ec2.describe_capacity_block_offerings(
        InstanceType=wanted.instance_type, InstanceCount=wanted.count, CapacityDurationHours=_BLOCK_HOURS
    )["CapacityBlockOfferings"]
    offering = next(one for one in offerings if one["AvailabilityZone"] == name)
    ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"],
        InstancePlatform="Linux/UNIX",
        **_wished("capacity-reservation", wanted.id),
    )


def _wished(kind: str, id: str) -> dict[str, Any]:
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": WISHED_ID, "Value": id}]}]}


def _zone(zone: str) -> dict[str, str]:
    return {"AvailabilityZoneId" if is_zone_id(zone) else "AvailabilityZone": zone}


def _free_range(around: IPv4Network, subnets: tuple[IPv4Network, ...]) -> IPv4Network | None:
    """The last small range in it that no subnet takes."""
    if around.prefixlen >= _NARROWEST:
        return None
    tops = [around]
    while tops:
        top = tops.pop()
        if not any(top.overlaps(subnet) for subnet in subnets):
            return list(top.subnets(new_prefix=_NARROWEST))[-1] if top.prefixlen < _NARROWEST else top
        if top.prefixlen < _NARROWEST:
            tops += top.subnets()
    return None
