"""Deletes leftovers in the order in which AWS lets them go, again and again until what holds them is gone too.

Kept data is refused here as well: only `kept` deletes that, by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory import buckets, named, unbinding
from corral.inventory.things import Kind, Thing

PATIENCE_S = 900  # an FSx file system takes minutes to go, and its interfaces hold the subnet until then
PAUSE_S = 5  # between two attempts

Delete = Callable[[Any, Thing], object]
_DELETE: dict[Kind, Delete] = {
    Kind.INSTANCE: lambda aws, it: aws.client("ec2").terminate_instances(InstanceIds=[it.id]),
    Kind.LUSTRE: lambda aws, it: aws.client("fsx").delete_file_system(FileSystemId=it.id),
    Kind.NAT_GATEWAY: lambda aws, it: aws.client("ec2").delete_nat_gateway(NatGatewayId=it.id),
    Kind.ENDPOINT: lambda aws, it: aws.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[it.id]),
    Kind.INTERFACE: lambda aws, it: aws.client("ec2").delete_network_interface(NetworkInterfaceId=it.id),
    Kind.VOLUME: lambda aws, it: aws.client("ec2").delete_volume(VolumeId=it.id),
    Kind.ADDRESS: lambda aws, it: aws.client("ec2").release_address(AllocationId=it.id),
    Kind.LAUNCH_TEMPLATE: lambda aws, it: aws.client("ec2").delete_launch_template(LaunchTemplateId=it.id),
    Kind.PLACEMENT_GROUP: lambda aws, it: aws.client("ec2").delete_placement_group(GroupName=it.id),
    Kind.SECURITY_GROUP: unbinding.delete_security_group,
    Kind.SUBNET: unbinding.delete_subnet,
    Kind.ROUTE_TABLE: unbinding.delete_route_table,
    Kind.INTERNET_GATEWAY: unbinding.delete_internet_gateway,
    Kind.VPC: lambda aws, it: aws.client("ec2").delete_vpc(VpcId=it.id),
    Kind.DNS_ZONE: unbinding.delete_zone,
    Kind.ALARM: lambda aws, it: aws.client("cloudwatch").delete_alarms(AlarmNames=[it.id]),
    Kind.TOPIC: lambda aws, it: aws.client("sns").delete_topic(TopicArn=it.id),
    Kind.LOG_GROUP: lambda aws, it: aws.client("logs").delete_log_group(logGroupName=it.id),
    Kind.PARAMETER: lambda aws, it: aws.client("ssm").delete_parameter(Name=it.id),
    Kind.SECRET: lambda aws, it: aws.client("secretsmanager").delete_secret(
        SecretId=it.id, ForceDeleteWithoutRecovery=True
    ),
    Kind.INSTANCE_PROFILE: unbinding.delete_instance_profile,
    Kind.ROLE: unbinding.delete_role,
    Kind.POLICY: lambda aws, it: aws.client("iam").delete_policy(PolicyArn=it.id),
    Kind.BUDGET: lambda aws, it: aws.client("budgets").delete_budget(AccountId=named.account_of(aws), BudgetName=it.id),
    Kind.FILES: lambda aws, it: buckets.delete_files(aws, it.id),
    Kind.ALIAS: lambda aws, it: aws.client("kms").delete_alias(AliasName=it.id),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What became of a thing: `refusal` is AWS's word where it is still there."""

    thing: Thing
    refusal: str | None


def delete_things(
    session: Any,
    things: Iterable[Thing],
    each: Callable[[Thing], object] | None = None,
    *,
    pause: Callable[[], None] = lambda: time.sleep(PAUSE_S),
) -> tuple[Deletion, ...]:
    """What became of each thing, in the order of deletion; `each` is called with every thing that has gone.

    Raises ValueError for a thing that holds kept data, before anything is deleted.
    """
    order = {kind: number for number, kind in enumerate(Kind)}
    waiting = sorted(things, key=lambda thing: order[thing.kind])
    for thing in waiting:
        if not can_delete(thing):
            raise ValueError(f"{thing.kind} {thing.id} is not for sweeping")
    done: list[Deletion] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        held: list[Deletion] = []
        for thing in waiting:
            one = Deletion(thing=thing, refusal=_try(session, thing))
            (held if one.refusal else done).append(one)
            if each and not one.refusal:
                each(thing)
        if not held or time.monotonic() > deadline:
            return (*done, *held)
        waiting = [one.thing for one in held]
        pause()


def can_delete(thing: Thing) -> bool:
    """True for what a sweep may delete."""
    return thing.keep is None and thing.kind in _DELETE


def _try(session: Any, thing: Thing) -> str | None:
    try:
        _DELETE[thing.kind](session, thing)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if _is_gone(code):
            return None
        if code.startswith(("AccessDenied", "Unauthorized")):
            raise
        return f"{code}: {error.response.get('Error', {}).get('Message', '')}"
    return None


def _is_gone(code: str) -> bool:
    return "NotFound" in code or code in ("NoSuchEntity", "NoSuchHostedZone", "InvalidPlacementGroup.Unknown")
