"""Finds the ids that a resource may have if an interrupted engine created it, by resource type, and completes it.

A resource named by the program or the engine has a known id, whether it exists or not; the next refresh decides.
Resources with ids from AWS are searched by their tags or by what they connect. The provider creates some resources with
several calls: a kill in between leaves one that looks complete, even to a refresh. This is the only module of the
recovery that knows resource types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from corral.model.partitions import partition_of

Properties = Mapping[str, Any]
Client = Callable[[str], Any]  # a boto3 client of the stack's region, by service
Search = Callable[[Client, Properties], list[str]]

# Ids that follow from the inputs, as the provider imports them (https://www.pulumi.com/registry/packages/aws, "Import"
# of each resource, read 2026-11).
BY_NAME = {
    "aws:s3/bucket:Bucket": "{bucket}",
    "aws:s3/bucketVersioning:BucketVersioning": "{bucket}",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": "{bucket}",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": "{bucket}",
    "aws:s3/bucketPolicy:BucketPolicy": "{bucket}",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": "{bucket}",
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": "{bucket}",
    "aws:s3/bucketObjectv2:BucketObjectv2": "{key}",
    "aws:iam/role:Role": "{name}",
    "aws:iam/instanceProfile:InstanceProfile": "{name}",
    "aws:iam/policy:Policy": "arn:{partition}:iam::{account}:policy{path}{name}",
    "aws:iam/rolePolicy:RolePolicy": "{role}:{name}",
    "aws:kms/alias:Alias": "{name}",
    "aws:cloudwatch/logGroup:LogGroup": "{name}",
    "aws:cloudwatch/metricAlarm:MetricAlarm": "{name}",
    "aws:sns/topic:Topic": "arn:{partition}:sns:{region}:{account}:{name}",
    "aws:budgets/budget:Budget": "{account}:{name}",
    "aws:ssm/parameter:Parameter": "{name}",
    "aws:ec2/placementGroup:PlacementGroup": "{name}",
    "aws:ec2/route:Route": "{routeTableId}_{destination}",
    "aws:ec2/volumeAttachment:VolumeAttachment": "{deviceName}:{volumeId}:{instanceId}",
    "aws:efs/backupPolicy:BackupPolicy": "{fileSystemId}",
    "aws:route53/record:Record": "{zoneId}_{name}_{type}",
}
# Resources that EC2 tags at creation: the call that lists them, the key of the list in its response, the key of the id.
BY_EC2_TAGS = {
    "aws:ec2/vpc:Vpc": ("describe_vpcs", "Vpcs", "VpcId"),
    "aws:ec2/subnet:Subnet": ("describe_subnets", "Subnets", "SubnetId"),
    "aws:ec2/internetGateway:InternetGateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "aws:ec2/eip:Eip": ("describe_addresses", "Addresses", "AllocationId"),
    "aws:ec2/natGateway:NatGateway": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "aws:ec2/routeTable:RouteTable": ("describe_route_tables", "RouteTables", "RouteTableId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    "aws:ec2/securityGroup:SecurityGroup": ("describe_security_groups", "SecurityGroups", "GroupId"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "aws:ec2/networkInterface:NetworkInterface": (
        "describe_network_interfaces",
        "NetworkInterfaces",
        "NetworkInterfaceId",
    ),
    "aws:ebs/volume:Volume": ("describe_volumes", "Volumes", "VolumeId"),
}
ENDED = frozenset(
    {"deleted", "deleting", "failed", "terminated", "shutting-down"}
)  # states that EC2 shows for up to an hour


def candidates(resource: Mapping[str, Any], client: Client, region: str) -> list[str]:
    """The ids that the resource of an unfinished creation may have, the most likely first."""
    token, inputs = str(resource["type"]), dict(resource.get("inputs") or {})
    if form := BY_NAME.get(token):
        return _composed(form, inputs, client, region)
    if listing := BY_EC2_TAGS.get(token):
        return _by_ec2_tags(client, inputs, *listing)
    search = SEARCHES.get(token)
    return _found(search, client, inputs) if search else []


def _found(search: Search, client: Client, inputs: Properties) -> list[str]:
    """What the search finds; nothing if what the resource would belong to does not exist."""
    from botocore.exceptions import ClientError

    try:
        return search(client, inputs)
    except ClientError as error:
        if str(error.response["Error"]["Code"]).endswith(("NotFound", "NotFoundException")):
            return []
        raise


def finish_creation(resource: Mapping[str, Any], ids: Sequence[str], client: Client) -> None:
    """Completes the resources with these ids, which the interrupted creation may have created."""
    if resource["type"] == "aws:ec2/securityGroup:SecurityGroup":
        for id in ids:
            _close_security_group(client("ec2"), id)


def _close_security_group(ec2: Any, id: str) -> None:
    """EC2 creates a group with a rule that allows all outbound traffic, which the provider then removes.

    If it remains, creating the same rule as a resource fails: InvalidPermission.Duplicate. The group has no rules of
    its own yet. Source: VPC User Guide, "Default rules for security groups that you create".
    """
    filters = [{"Name": "group-id", "Values": [id]}]
    rules = ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
    if outward := [rule["SecurityGroupRuleId"] for rule in rules if rule["IsEgress"]]:
        ec2.revoke_security_group_egress(GroupId=id, SecurityGroupRuleIds=outward)


def _composed(form: str, inputs: dict[str, Any], client: Client, region: str) -> list[str]:
    facts = {"path": "/", "region": region, "partition": partition_of(region).name, **inputs}
    facts["destination"] = inputs.get("destinationCidrBlock") or inputs.get("destinationPrefixListId")
    wanted = {name for _, name, _, _ in Formatter().parse(form) if name}
    if "account" in wanted:
        facts["account"] = client("sts").get_caller_identity()["Account"]
    return [form.format(**facts)] if all(facts.get(name) for name in wanted) else []


def _by_ec2_tags(client: Client, inputs: Properties, operation: str, key: str, id_key: str) -> list[str]:
    ec2 = client("ec2")
    pages = ec2.get_paginator(operation).paginate() if ec2.can_paginate(operation) else [getattr(ec2, operation)()]
    found = [one for page in pages for one in page[key] if one.get("State") not in ENDED]
    return sorted(one[id_key] for one in found if _is_requested(one, inputs))


def _is_requested(found: Mapping[str, Any], inputs: Properties) -> bool:
    """True if all requested tags are present, and the requested key encrypts it: tags are not enough for data.

    A resource requested without tags cannot be recognised.
    """
    wanted = inputs.get("tagsAll") or inputs.get("tags") or {}
    tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags") or found.get("TagSet") or ()}
    has_key = "kmsKeyId" not in inputs or found.get("KmsKeyId") == inputs["kmsKeyId"]
    return bool(wanted) and wanted.items() <= tags.items() and has_key


def _instances(client: Client, inputs: Properties) -> list[str]:
    pages = client("ec2").get_paginator("describe_instances").paginate()
    listed = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    found = [one for one in listed if one["State"]["Name"] not in ENDED]
    return sorted(one["InstanceId"] for one in found if _is_requested(one, inputs))


def _table_associations(client: Client, inputs: Properties) -> list[str]:
    tables = client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])["RouteTables"]
    joined = [one for table in tables for one in table["Associations"]]
    return [one["RouteTableAssociationId"] for one in joined if one.get("SubnetId") == inputs["subnetId"]]


def _reservations(client: Client, inputs: Properties) -> list[str]:
    found = client("ec2").get_subnet_cidr_reservations(SubnetId=inputs["subnetId"])["SubnetIpv4CidrReservations"]
    return [one["SubnetCidrReservationId"] for one in found if one["Cidr"] == inputs["cidrBlock"]]


def _rules(*, egress: bool) -> Search:
    def search(client: Client, inputs: Properties) -> list[str]:
        group = [{"Name": "group-id", "Values": [inputs["securityGroupId"]]}]
        found = client("ec2").describe_security_group_rules(Filters=group)["SecurityGroupRules"]
        return [one["SecurityGroupRuleId"] for one in found if one["IsEgress"] == egress and _same_traffic(one, inputs)]

    return search


def _same_traffic(rule: Mapping[str, Any], inputs: Properties) -> bool:
    peer = rule.get("ReferencedGroupInfo", {}).get("GroupId")
    ports = (-1, -1) if inputs["ipProtocol"] == "-1" else (inputs.get("fromPort"), inputs.get("toPort"))
    return (
        str(rule["IpProtocol"]) == str(inputs["ipProtocol"])
        and (rule.get("FromPort", -1), rule.get("ToPort", -1)) == ports
        and rule.get("CidrIpv4") == inputs.get("cidrIpv4")
        and rule.get("PrefixListId") == inputs.get("prefixListId")
        and peer == inputs.get("referencedSecurityGroupId")
    )


def _efs(client: Client, inputs: Properties) -> list[str]:
    found = client("efs").describe_file_systems()["FileSystems"]
    return [one["FileSystemId"] for one in found if _is_requested(one, inputs)]


def _mount_targets(client: Client, inputs: Properties) -> list[str]:
    found = client("efs").describe_mount_targets(FileSystemId=inputs["fileSystemId"])["MountTargets"]
    return [one["MountTargetId"] for one in found if one["SubnetId"] == inputs["subnetId"]]


def _lustre(client: Client, inputs: Properties) -> list[str]:
    found = client("fsx").describe_file_systems()["FileSystems"]
    alive = [one for one in found if one["Lifecycle"] != "DELETING"]
    return [one["FileSystemId"] for one in alive if _is_requested(one, inputs)]


def _lustre_links(client: Client, inputs: Properties) -> list[str]:
    of_system = [{"Name": "file-system-id", "Values": [inputs["fileSystemId"]]}]
    found = client("fsx").describe_data_repository_associations(Filters=of_system)["Associations"]
    return [one["AssociationId"] for one in found if one["FileSystemPath"] == inputs["fileSystemPath"]]


def _keys(client: Client, inputs: Properties) -> list[str]:
    filters = [{"Key": key, "Values": [value]} for key, value in (inputs.get("tagsAll") or {}).items()]
    if not filters:
        return []
    arguments = {"ResourceTypeFilters": ["kms:key"], "TagFilters": filters}
    found = client("resourcegroupstaggingapi").get_resources(**arguments)["ResourceTagMappingList"]
    return sorted(one["ResourceARN"].rpartition("/")[2] for one in found)


def _secrets(client: Client, inputs: Properties) -> list[str]:
    manager = client("secretsmanager")
    try:
        found = manager.describe_secret(SecretId=inputs["name"])
    except manager.exceptions.ResourceNotFoundException:
        return []
    return [] if found.get("DeletedDate") else [found["ARN"]]


def _balancers(client: Client, inputs: Properties) -> list[str]:
    found = client("elbv2").describe_load_balancers(Names=[inputs["name"]])["LoadBalancers"]
    return [one["LoadBalancerArn"] for one in found]


def _target_groups(client: Client, inputs: Properties) -> list[str]:
    found = client("elbv2").describe_target_groups(Names=[inputs["name"]])["TargetGroups"]
    return [one["TargetGroupArn"] for one in found]


def _listeners(client: Client, inputs: Properties) -> list[str]:
    found = client("elbv2").describe_listeners(LoadBalancerArn=inputs["loadBalancerArn"])["Listeners"]
    return [one["ListenerArn"] for one in found if one["Port"] == inputs["port"]]


def _no_import(client: Client, inputs: Properties) -> list[str]:
    """The provider imports no target of a load balancer. To register one again changes nothing."""
    return []


def _zones(client: Client, inputs: Properties) -> list[str]:
    wanted = inputs["name"].rstrip(".") + "."
    pages = client("route53").get_paginator("list_hosted_zones").paginate()
    return [one["Id"].rpartition("/")[2] for page in pages for one in page["HostedZones"] if one["Name"] == wanted]


def _subscriptions(client: Client, inputs: Properties) -> list[str]:
    found = client("sns").list_subscriptions_by_topic(TopicArn=inputs["topic"])["Subscriptions"]
    wanted = (inputs["protocol"], inputs["endpoint"])
    return [one["SubscriptionArn"] for one in found if (one["Protocol"], one["Endpoint"]) == wanted]


SEARCHES: Mapping[str, Search] = {
    "aws:ec2/instance:Instance": _instances,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _table_associations,
    "aws:ec2/subnetCidrReservation:SubnetCidrReservation": _reservations,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rules(egress=False),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rules(egress=True),
    "aws:efs/fileSystem:FileSystem": _efs,
    "aws:efs/mountTarget:MountTarget": _mount_targets,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _lustre_links,
    "aws:kms/key:Key": _keys,
    "aws:secretsmanager/secret:Secret": _secrets,
    "aws:lb/loadBalancer:LoadBalancer": _balancers,
    "aws:lb/targetGroup:TargetGroup": _target_groups,
    "aws:lb/listener:Listener": _listeners,
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": _no_import,
    "aws:route53/zone:Zone": _zones,
    "aws:sns/topicSubscription:TopicSubscription": _subscriptions,
}
