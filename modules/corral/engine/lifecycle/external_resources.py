"""Creates stand-ins in the box for resources that the user owns: data buckets, an existing VPC, reserved capacity.

On AWS these must exist before a cluster refers to them. In the box, `up` creates the missing ones with the ids that the
environment names, and reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from corral.engine.bootstrap.bucket_steps import bucket_location
from corral.engine.bootstrap.iam_steps import create_boundary
from corral.engine.bootstrap.step import BOUNDARY, BootstrapTarget
from corral.engine.lifecycle.session import EngineSession, stack_account
from corral.engine.pulumi.engine_account import Account
from corral.engine.pulumi.stack import Stack
from corral.inventory.untagged import account_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.enums import Market
from corral.model.partitions import linked_service
from corral.model.tags import FIXED_ID_TAG
from corral.model.zones import is_zone_id
from corral.preflight.bucket_check import linked
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.queues import PoolSpec, QueueSpec
from corral.spec.yaml.environment import Environment

_BUCKETS = "the buckets"
_WIDEST, _NARROWEST = 16, 28  # prefix lengths of a VPC
_BLOCK_HOURS = 7 * 24
_MAX_BLOCK_COUNT = 64  # instances in a block. Source: EC2 User Guide, "Capacity Blocks for ML"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedCapacity:
    """A capacity reservation or block. `count`: instances. `group`: its placement group."""

    id: str
    instance_type: str
    zone: str
    count: int
    is_block: bool
    group: str | None = None


def reserved_capacity(cluster: ClusterSpec) -> tuple[ReservedCapacity, ...]:
    """The reservations and capacity blocks that the cluster launches into.

    Together, those of a pool hold the pool's count, or by default the queue's maximum; a block at most what AWS sells.
    """
    pools = ((queue, pool) for queue in cluster.queues for pool in queue.capacity if pool.market.is_reserved)
    return tuple(one for queue, pool in pools for one in _reserved(queue, pool))


def enclosing_cidr(subnets: tuple[IPv4Network, ...]) -> IPv4Network:
    """The smallest CIDR of a VPC that holds these subnets and a small public one."""
    around = subnets[0]
    while not all(subnet.subnet_of(around) for subnet in subnets) or _free_range(around, subnets) is None:
        if around.prefixlen == _WIDEST:
            raise ValueError(f"no VPC can hold {', '.join(map(str, subnets))} and a public subnet")
        around = around.supernet()
    return around


def create_stand_ins(
    session: EngineSession, stack: Stack, environment: Environment, base: BasePlan, cluster: ClusterPlan
) -> None:
    """Creates the missing stand-ins in the box, as the account's owner. Does nothing elsewhere.

    Reports each kind that the box refuses.
    """
    from botocore.exceptions import ClientError

    if not session.in_box:
        return
    for what, made in _kinds(stack_account(stack, session.owner), environment, base, cluster):
        try:
            for sentence in made:
                session.display.write(sentence)
        except ClientError as error:
            session.display.write(_refused_text(what, error))


def create_stand_ins_for_check(
    account: Account, environment: Environment, base: BasePlan, cluster: ClusterPlan
) -> Iterator[str]:
    """Creates the missing stand-ins in a box. Yields an error for each kind that the box refuses to create.

    If one of the buckets exists, the others existed too: a deleted bucket stays deleted, for the check to find.
    """
    from botocore.exceptions import ClientError

    names = tuple(linked(cluster))
    for what, made in _kinds(account, environment, base, cluster):
        try:
            if what == _BUCKETS and not _bucket_names(account).isdisjoint(names):
                continue
            for _ in made:
                pass
        except ClientError as error:
            yield _refused_text(what, error)


def _kinds(
    account: Account, environment: Environment, base: BasePlan, cluster: ClusterPlan
) -> Iterator[tuple[str, Iterator[str]]]:
    """Each kind of stand-in, with an iterator that creates the missing ones and yields a line for each."""
    yield _BUCKETS, create_buckets(account, linked(cluster))
    yield "the VPC", _create_vpc(account, base)
    yield "the service-linked role of spot", create_spot_role(account)
    yield "the permissions boundary", create_role_boundary(account)
    yield "reserved capacity", create_capacity(account, reserved_capacity(environment.cluster))


def _bucket_names(account: Account) -> frozenset[str]:
    return frozenset(bucket["Name"] for bucket in account.client("s3").list_buckets()["Buckets"])


def _refused_text(what: str, error: Any) -> str:
    found = error.response["Error"]
    text = f"{error.operation_name}: {found.get('Code', '')}: {' '.join(str(found.get('Message', '')).split())}"
    return f"the box cannot create {what} in place of yours: {text}"


def create_buckets(account: Account, names: Iterable[str]) -> Iterator[str]:
    """Creates the missing buckets in the account's region. Yields a line for each."""
    s3, there = account.client("s3"), _bucket_names(account)
    for name in names:
        if name not in there:
            s3.create_bucket(Bucket=name, **bucket_location(account.region_name))
            yield f"created an empty s3://{name} in the box, as a stand-in for your bucket"


def create_spot_role(account: Account) -> Iterator[str]:
    """Creates spot's service-linked role in a new account, as `corral bootstrap` does. Yields a line for it.

    An account that has a role of some service has been used: there a missing one stays missing.
    """
    iam, spot = account.client("iam"), linked_service("spot")
    if not iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]:
        iam.create_service_linked_role(AWSServiceName=spot)
        yield f"created the service-linked role of {spot} in the box, as `corral bootstrap` does"


def create_role_boundary(account: Account) -> Iterator[str]:
    """Creates the boundary of clusters' roles, as `corral bootstrap` does. Yields a line for it."""
    target = BootstrapTarget(account=account_of(account), region=account.region_name)
    if create_boundary(account.client, target):
        yield f"created the policy {target.policies[BOUNDARY].name} in the box, as `corral bootstrap` does"


def create_capacity(account: Account, wanted: Sequence[ReservedCapacity]) -> Iterator[str]:
    """Creates the missing reservations and blocks with their placement groups. Yields a line for each."""
    if not wanted:
        return
    ec2 = account.client("ec2")
    there = {one["CapacityReservationId"] for one in ec2.describe_capacity_reservations()["CapacityReservations"]}
    for one in wanted:
        if one.id not in there:
            (_purchase_block if one.is_block else _create_reservation)(ec2, one)
            what = "capacity block" if one.is_block else "capacity reservation"
            yield f"created {one.id} in the box, as a stand-in for your {what} of {one.count} {one.instance_type}"


def _reserved(queue: QueueSpec, pool: PoolSpec) -> Iterator[ReservedCapacity]:
    is_block = pool.market is Market.CAPACITY_BLOCK
    (zone,) = pool.zones or ()  # a pool of these markets names exactly one
    each, rest = divmod(pool.count or queue.nodes.max, len(pool.ids))
    for number, id in enumerate(pool.ids):
        count = max(each + (number < rest), 1)
        yield ReservedCapacity(
            id=id,
            instance_type=queue.instance_type,
            zone=zone,
            count=min(count, _MAX_BLOCK_COUNT) if is_block else count,
            is_block=is_block,
            group=pool.placement_group,
        )


def _create_vpc(account: Any, base: BasePlan) -> Iterator[str]:
    ec2, wanted = account.client("ec2"), base.adopted_vpc
    if wanted is None or wanted in {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]}:
        return
    private = tuple(zone.private for zone in base.zones)
    around = enclosing_cidr(private)
    vpc = ec2.create_vpc(CidrBlock=str(around), **_fixed_id("vpc", wanted))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    for zone in base.zones:
        where = _zone(zone.zone_id)
        ec2.create_subnet(VpcId=vpc, CidrBlock=str(zone.private), **where, **_fixed_id("subnet", zone.subnet or ""))
    way_out = _free_range(around, private)
    _create_nat_route(ec2, vpc, str(way_out), _zone(base.zones[0].zone_id))
    yield f"created {wanted} in the box, as a stand-in for your VPC with {len(private)} private subnets"


def _create_nat_route(ec2: Any, vpc: str, cidr: str, where: dict[str, str]) -> None:
    """Creates a NAT gateway in a public subnet and the VPC's main route through it."""
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


def _create_reservation(ec2: Any, wanted: ReservedCapacity) -> None:
    ec2.create_capacity_reservation(
        InstanceType=wanted.instance_type,
        InstancePlatform="Linux/UNIX",
        InstanceCount=wanted.count,
        InstanceMatchCriteria="targeted",
        **_in_group(ec2, wanted.group),
        **_zone(wanted.zone),
        **_fixed_id("capacity-reservation", wanted.id),
    )


def _in_group(ec2: Any, group: str | None) -> dict[str, str]:
    """The argument with the ARN of the cluster placement group, which is created if missing."""
    if group is None:
        return {}
    there = {one["GroupName"]: one["GroupArn"] for one in ec2.describe_placement_groups()["PlacementGroups"]}
    made = there.get(group) or ec2.create_placement_group(GroupName=group, Strategy="cluster")["PlacementGroup"]
    return {"PlacementGroupArn": made if isinstance(made, str) else made["GroupArn"]}


def _purchase_block(ec2: Any, wanted: ReservedCapacity) -> None:
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    name = next((one["ZoneName"] for one in zones if one["ZoneId"] == wanted.zone), wanted.zone)
    offerings = ec2.describe_capacity_block_offerings(
        InstanceType=wanted.instance_type, InstanceCount=wanted.count, CapacityDurationHours=_BLOCK_HOURS
    )["CapacityBlockOfferings"]
    offering = next(one for one in offerings if one["AvailabilityZone"] == name)
    ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"],
        InstancePlatform="Linux/UNIX",
        **_fixed_id("capacity-reservation", wanted.id),
    )


def _fixed_id(kind: str, id: str) -> dict[str, Any]:
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": FIXED_ID_TAG, "Value": id}]}]}


def _zone(zone: str) -> dict[str, str]:
    return {"AvailabilityZoneId" if is_zone_id(zone) else "AvailabilityZone": zone}


def _free_range(around: IPv4Network, subnets: tuple[IPv4Network, ...]) -> IPv4Network | None:
    """The last small CIDR in the range that no subnet overlaps; None if there is none."""
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
