"""The actions that a call requires besides its own: what AWS checks when a service acts with the caller's permissions.

Sources: Service Authorization Reference, "Dependent actions" of Amazon FSx and Amazon EFS, and the
key elasticloadbalancing:CreateAction; EFS API reference,
CreateMountTarget, DeleteMountTarget, ModifyMountTargetSecurityGroups; FSx API reference,
DeleteFileSystemLustreConfiguration; API references of IAM (AddRoleToInstanceProfile), KMS (CreateKey), Route 53
(CreateHostedZone) and Secrets Manager (CreateSecret, UpdateSecret). FSx creates the interfaces of its servers with its
service-linked role: no permission of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from corral.box.access.policy_evaluator import RequiredAction
from corral.box.access.request_keys import request_tags
from corral.box.access.service_reference import resource_arn
from corral.box.access.tagged_resources import TaggedResource, kms_key, mount_target, tag_context
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api_calls import Call
from corral.model.partitions import partition_of, service_principal

Fields = Mapping[str, Any]
_Pairs = Iterator[tuple[str, TaggedResource]]  # actions, each with its resource


def dependent_actions(
    name: str, call: Call, fields: Fields, path: str, base: Mapping[str, str]
) -> Iterator[RequiredAction]:
    """The dependent actions of a call of this IAM action; none for an action without them."""
    if (find := DEPENDENT.get(name)) is not None:
        for action, resource in find(call, fields, path):
            yield RequiredAction(action=action, resource=resource.arn, context={**base, **resource.context})


def _new_lustre(call: Call, fields: Fields, _: str) -> _Pairs:
    for subnet_id in fields.get("SubnetIds") or ():
        for zone in _ec2(call).subnets.values():
            if subnet_id in zone:
                yield "ec2:GetSecurityGroupsForVpc", _of_ec2(call, "vpc", zone[subnet_id].vpc_id)
    yield from _tagged(call, fields, "fsx", "file-system/*")


def _new_link(call: Call, fields: Fields, _: str) -> _Pairs:
    yield from _tagged(call, fields, "fsx", "association/*")


def _deleted_lustre(call: Call, fields: Fields, _: str) -> _Pairs:
    """FSx takes no last backup of Lustre unless the call requests one."""
    if (fields.get("LustreConfiguration") or {}).get("SkipFinalBackup") is False:
        arn = f"arn:{PARTITION}:fsx:{call.region}:{ACCOUNT}:file-system/{fields.get('FileSystemId', '')}"
        yield "fsx:CreateBackup", TaggedResource(arn=arn)


def _new_home(call: Call, fields: Fields, _: str) -> _Pairs:
    for action, resource in _tagged(call, fields, "elasticfilesystem", "file-system/*"):
        yield action, replace(resource, context={"elasticfilesystem:createaction": call.action})


def _new_balancing(call: Call, fields: Fields, _: str) -> _Pairs:
    """The tags of a new load balancer, target group or listener."""
    if request_tags(fields):
        kinds = {"CreateLoadBalancer": "loadbalancer/net/", "CreateTargetGroup": "targetgroup"}
        arn = str(fields.get("LoadBalancerArn", "")).replace(":loadbalancer/", ":listener/") + "/*"
        if call.action in kinds:
            name = str(fields.get("Name", ""))
            arn = resource_arn("elasticloadbalancing", kinds[call.action], call.region, name, "*")
        creating = {"elasticloadbalancing:createaction": call.action}
        yield "elasticloadbalancing:AddTags", TaggedResource(arn=arn, context=creating)


def _new_mount_target(call: Call, fields: Fields, _: str) -> _Pairs:
    for action in ("ec2:DescribeSubnets", "ec2:DescribeNetworkInterfaces"):
        yield action, TaggedResource(arn="*")
    yield "ec2:CreateNetworkInterface", _of_ec2(call, "network-interface", "*")
    yield "ec2:CreateNetworkInterface", _of_ec2(call, "subnet", str(fields.get("SubnetId", "")))
    for group_id in fields.get("SecurityGroups") or ():
        yield "ec2:CreateNetworkInterface", _of_ec2(call, "security-group", group_id)


def _mount_target(action: str) -> Callable[[Call, Fields, str], _Pairs]:
    """An action on the interface of the mount target, which EFS does not tag."""

    def find(call: Call, _: Fields, path: str) -> _Pairs:
        if (target := mount_target(call, path)) is not None:
            yield action, _of_ec2(call, "network-interface", target.network_interface_id)

    return find


def _new_key(call: Call, fields: Fields, _: str) -> _Pairs:
    """The tags of a key, and its policy, which the caller has to be able to replace unless that check is skipped."""
    key = TaggedResource(arn=f"arn:{partition_of(call.region).name}:kms:{call.region}:{ACCOUNT}:key/*")
    if fields.get("Tags"):
        yield "kms:TagResource", key
    if fields.get("Policy") and not fields.get("BypassPolicyLockoutSafetyCheck"):
        yield "kms:PutKeyPolicy", key


def _encrypted_secret(call: Call, fields: Fields, _: str) -> _Pairs:
    """The use of a key other than AWS's own."""
    name, domain = str(fields.get("KmsKeyId") or ""), partition_of(call.region).dns_suffix
    for key in kms_key(call.region, name) if name and name != "alias/aws/secretsmanager" else ():
        through = {**key.context, "kms:viaservice": f"secretsmanager.{call.region}.{domain}"}
        for action in ("kms:GenerateDataKey", "kms:Decrypt"):
            yield action, TaggedResource(arn=key.arn, context=through)


def _passed_role(call: Call, fields: Fields, _: str) -> _Pairs:
    """The role of an instance profile: EC2 gets it (likely: no document names the service)."""
    from moto.iam.models import iam_backends

    for role in iam_backends[ACCOUNT]["aws"].roles.values():
        if role.name == fields.get("RoleName"):
            passing = {"iam:passedtoservice": service_principal("ec2", call.region)}
            yield "iam:PassRole", TaggedResource(arn=role.arn, context=passing)


def _zone_of_vpc(_: Call, fields: Fields, __: str) -> _Pairs:
    """A private zone looks at its VPC, in the region of that."""
    if (region := fields.get("VPCRegion")) is not None:
        yield "ec2:DescribeVpcs", TaggedResource(arn="*", context={"aws:requestedregion": str(region)})


def _tagged(call: Call, fields: Fields, service: str, resource: str) -> _Pairs:
    if fields.get("Tags"):
        yield (
            f"{service}:TagResource",
            TaggedResource(arn=f"arn:{PARTITION}:{service}:{call.region}:{ACCOUNT}:{resource}"),
        )


def _of_ec2(call: Call, kind: str, name: str) -> TaggedResource:
    tags = _ec2(call).tags.get(name, {})
    arn = f"arn:{PARTITION}:ec2:{call.region}:{ACCOUNT}:{kind}/{name}"
    return TaggedResource(arn=arn, context=tag_context(tags, ("aws", "ec2")))


def _ec2(call: Call) -> Any:
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT][call.region]


DEPENDENT: Mapping[str, Callable[[Call, Fields, str], _Pairs]] = {
    "fsx:CreateFileSystem": _new_lustre,
    "fsx:CreateDataRepositoryAssociation": _new_link,
    "fsx:DeleteFileSystem": _deleted_lustre,
    "elasticfilesystem:CreateFileSystem": _new_home,
    "elasticloadbalancing:CreateListener": _new_balancing,
    "elasticloadbalancing:CreateLoadBalancer": _new_balancing,
    "elasticloadbalancing:CreateTargetGroup": _new_balancing,
    "elasticfilesystem:CreateMountTarget": _new_mount_target,
    "elasticfilesystem:DeleteMountTarget": _mount_target("ec2:DeleteNetworkInterface"),
    "elasticfilesystem:ModifyMountTargetSecurityGroups": _mount_target("ec2:ModifyNetworkInterfaceAttribute"),
    "iam:AddRoleToInstanceProfile": _passed_role,
    "kms:CreateKey": _new_key,
    "route53:AssociateVPCWithHostedZone": _zone_of_vpc,
    "route53:CreateHostedZone": _zone_of_vpc,
    "secretsmanager:CreateSecret": _encrypted_secret,
    "secretsmanager:UpdateSecret": _encrypted_secret,
}
