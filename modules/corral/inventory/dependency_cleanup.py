"""Delete resources that AWS releases only after their own rules, records, policies or targets are deleted."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.ec2_resources import tags_of
from corral.inventory.resources import AwsResource
from corral.model.signing import SIGNING_KEY_WAITS_DAYS
from corral.model.tags import BASE_TAG


def delete_volume(session: Any, volume: AwsResource) -> None:
    """Delete the volume. Raises ClientError: NotFound if it went with its instance, also to a caller who is denied.

    A permission for volumes with a tag does not cover a volume that does not exist.
    """
    ec2 = session.client("ec2")
    try:
        ec2.delete_volume(VolumeId=volume.id)
    except ClientError:
        ec2.describe_volumes(VolumeIds=[volume.id])
        raise


def delete_security_group(session: Any, group: AwsResource) -> None:
    """Delete the group after its rules: two groups that refer to each other would block each other."""
    ec2 = session.client("ec2")
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group.id]}])
    for outwards, revoke in ((True, ec2.revoke_security_group_egress), (False, ec2.revoke_security_group_ingress)):
        ids = [r["SecurityGroupRuleId"] for r in rules["SecurityGroupRules"] if r["IsEgress"] is outwards]
        if ids:
            revoke(GroupId=group.id, SecurityGroupRuleIds=ids)
    ec2.delete_security_group(GroupId=group.id)


def delete_subnet(session: Any, subnet: AwsResource) -> None:
    """Delete the subnet after the mount targets of its base's home in it; the home stays."""
    efs = session.client("efs")
    for system in efs.describe_file_systems()["FileSystems"]:
        if tags_of(system["Tags"]).get(BASE_TAG) == subnet.base:
            for target in efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]:
                if target["SubnetId"] == subnet.id:
                    efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    session.client("ec2").delete_subnet(SubnetId=subnet.id)


def delete_route_table(session: Any, table: AwsResource) -> None:
    """Delete the table after its associations."""
    ec2 = session.client("ec2")
    for found in ec2.describe_route_tables(RouteTableIds=[table.id])["RouteTables"]:
        for association in found["Associations"]:
            if not association.get("Main"):
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_route_table(RouteTableId=table.id)


def delete_internet_gateway(session: Any, gateway: AwsResource) -> None:
    """Delete the gateway after detaching it from its VPC."""
    ec2 = session.client("ec2")
    for found in ec2.describe_internet_gateways(InternetGatewayIds=[gateway.id])["InternetGateways"]:
        for attachment in found["Attachments"]:
            ec2.detach_internet_gateway(InternetGatewayId=gateway.id, VpcId=attachment["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=gateway.id)


def delete_zone(session: Any, zone: AwsResource) -> None:
    """Delete the zone after its records, except the two that every zone has."""
    route53 = session.client("route53")
    for page in route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone.id):
        records = [r for r in page["ResourceRecordSets"] if r["Type"] not in ("NS", "SOA")]
        if records:
            changes = [{"Action": "DELETE", "ResourceRecordSet": record} for record in records]
            route53.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch={"Changes": changes})
    route53.delete_hosted_zone(Id=zone.id)


def delete_instance_profile(session: Any, profile: AwsResource) -> None:
    """Delete the profile after removing its role."""
    iam = session.client("iam")
    for role in iam.get_instance_profile(InstanceProfileName=profile.id)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile.id, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=profile.id)


def delete_role(session: Any, role: AwsResource) -> None:
    """Delete the role after its policies."""
    iam = session.client("iam")
    for policy in iam.list_attached_role_policies(RoleName=role.id)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=role.id, PolicyArn=policy["PolicyArn"])
    for name in iam.list_role_policies(RoleName=role.id)["PolicyNames"]:
        iam.delete_role_policy(RoleName=role.id, PolicyName=name)
    iam.delete_role(RoleName=role.id)


def delete_signing_key(session: Any, key: AwsResource) -> None:
    """Schedule the deletion of the key, unless it is."""
    kms = session.client("kms")
    if kms.describe_key(KeyId=key.id)["KeyMetadata"]["KeyState"] != "PendingDeletion":
        kms.schedule_key_deletion(KeyId=key.id, PendingWindowInDays=SIGNING_KEY_WAITS_DAYS)
