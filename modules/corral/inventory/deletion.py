"""Delete orphans in the order that AWS requires, and retry while others still depend on them.

Refuses retained data: only `retained_data` deletes that, by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory import buckets, dependency_cleanup, untagged
from corral.inventory.resources import AwsResource, ResourceKind

PATIENCE_S = 900  # FSx takes minutes to delete a file system, whose interfaces hold the subnet until then
PAUSE_S = 5  # between two attempts

Delete = Callable[[Any, AwsResource], object]
_DELETE: dict[ResourceKind, Delete] = {
    ResourceKind.INSTANCE: lambda aws, it: aws.client("ec2").terminate_instances(InstanceIds=[it.id]),
    ResourceKind.LUSTRE: lambda aws, it: aws.client("fsx").delete_file_system(FileSystemId=it.id),
    ResourceKind.LOAD_BALANCER: lambda aws, it: aws.client("elbv2").delete_load_balancer(LoadBalancerArn=it.id),
    ResourceKind.TARGET_GROUP: lambda aws, it: aws.client("elbv2").delete_target_group(TargetGroupArn=it.id),
    ResourceKind.NAT_GATEWAY: lambda aws, it: aws.client("ec2").delete_nat_gateway(NatGatewayId=it.id),
    ResourceKind.ENDPOINT: lambda aws, it: aws.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[it.id]),
    ResourceKind.INTERFACE: lambda aws, it: aws.client("ec2").delete_network_interface(NetworkInterfaceId=it.id),
    ResourceKind.VOLUME: dependency_cleanup.delete_volume,
    ResourceKind.ADDRESS: lambda aws, it: aws.client("ec2").release_address(AllocationId=it.id),
    ResourceKind.LAUNCH_TEMPLATE: lambda aws, it: aws.client("ec2").delete_launch_template(LaunchTemplateId=it.id),
    ResourceKind.PLACEMENT_GROUP: lambda aws, it: aws.client("ec2").delete_placement_group(GroupName=it.id),
    ResourceKind.SECURITY_GROUP: dependency_cleanup.delete_security_group,
    ResourceKind.SUBNET: dependency_cleanup.delete_subnet,
    ResourceKind.ROUTE_TABLE: dependency_cleanup.delete_route_table,
    ResourceKind.INTERNET_GATEWAY: dependency_cleanup.delete_internet_gateway,
    ResourceKind.VPC: lambda aws, it: aws.client("ec2").delete_vpc(VpcId=it.id),
    ResourceKind.DNS_ZONE: dependency_cleanup.delete_zone,
    ResourceKind.ALARM: lambda aws, it: aws.client("cloudwatch").delete_alarms(AlarmNames=[it.id]),
    ResourceKind.TOPIC: lambda aws, it: aws.client("sns").delete_topic(TopicArn=it.id),
    ResourceKind.LOG_GROUP: lambda aws, it: aws.client("logs").delete_log_group(logGroupName=it.id),
    ResourceKind.PARAMETER: lambda aws, it: aws.client("ssm").delete_parameter(Name=it.id),
    ResourceKind.SECRET: lambda aws, it: aws.client("secretsmanager").delete_secret(
        SecretId=it.id, ForceDeleteWithoutRecovery=True
    ),
    ResourceKind.INSTANCE_PROFILE: dependency_cleanup.delete_instance_profile,
    ResourceKind.ROLE: dependency_cleanup.delete_role,
    ResourceKind.POLICY: lambda aws, it: aws.client("iam").delete_policy(PolicyArn=it.id),
    ResourceKind.BUDGET: lambda aws, it: aws.client("budgets").delete_budget(
        AccountId=untagged.account_of(aws), BudgetName=it.id
    ),
    ResourceKind.FILES: lambda aws, it: buckets.delete_files(aws, it.id),
    ResourceKind.ALIAS: lambda aws, it: aws.client("kms").delete_alias(AliasName=it.id),
    ResourceKind.SIGNING_KEY: dependency_cleanup.delete_signing_key,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The outcome for a resource. `refusal`: the error of AWS if it still exists."""

    resource: AwsResource
    refusal: str | None


def delete_resources(
    session: Any,
    resources: Iterable[AwsResource],
    each: Callable[[AwsResource], object] | None = None,
    *,
    pause: Callable[[], None] = lambda: time.sleep(PAUSE_S),
) -> tuple[Deletion, ...]:
    """Delete the resources; return the outcomes in order of deletion. Calls `each` with every deleted resource.

    Raises ValueError for a resource with retained data, before anything is deleted.
    """
    order = {kind: number for number, kind in enumerate(ResourceKind)}
    waiting = sorted(resources, key=lambda resource: order[resource.kind])
    for resource in waiting:
        if not can_delete(resource):
            raise ValueError(f"{resource.kind} {resource.id} holds retained data or cannot be deleted")
    done: list[Deletion] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        held: list[Deletion] = []
        for resource in waiting:
            one = Deletion(resource=resource, refusal=_try(session, resource))
            (held if one.refusal else done).append(one)
            if each and not one.refusal:
                each(resource)
        if not held or time.monotonic() > deadline:
            return (*done, *held)
        waiting = [one.resource for one in held]
        pause()


def can_delete(resource: AwsResource) -> bool:
    """True if a cleanup may delete the resource."""
    return resource.keep is None and resource.kind in _DELETE


def _try(session: Any, resource: AwsResource) -> str | None:
    try:
        _DELETE[resource.kind](session, resource)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if _is_missing(code):
            return None
        if code.startswith(("AccessDenied", "Unauthorized")):
            raise
        return f"{code}: {error.response.get('Error', {}).get('Message', '')}"
    return None


def _is_missing(code: str) -> bool:
    return "NotFound" in code or code in ("NoSuchEntity", "NoSuchHostedZone", "InvalidPlacementGroup.Unknown")
