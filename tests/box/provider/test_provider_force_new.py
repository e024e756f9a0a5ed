"""Replacing properties, computed properties and defaults: the tables compared with terraform-provider-aws.

Read off the provider's source by hand: its schemas are Go. `SCHEMAS` names the file of each type below
`internal/service` and has what that file says, in Pulumi's names, of the arguments that the stand-in knows. Left out:
a name that Pulumi makes up, tags and regions, which are alike for all types, and what the stand-in requires
(test_provider_tables lists where it is stricter), since what is always given is never decided by AWS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from corral.box.provider import lifecycle
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.property_schema import Prop
from corral.box.provider.resource import Resource
from corral.box.provider.tables import RESOURCES

SETTINGS = ProviderSettings(region="us-east-1")
COMMON = ("tags", "tagsAll", "region")
METADATA = "metadataOptions.httpTokens metadataOptions.httpPutResponseHopLimit metadataOptions.instanceMetadataTags"
EBS = "iops throughput volumeSize volumeType"


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A type in the provider's source: ForceNew, Computed and Default, the paths parted by spaces."""

    file: str
    replaces: str = ""
    computed: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


def below(block: str, names: str) -> str:
    """The paths of names in a block."""
    return " ".join(f"{block}.{name}" for name in names.split())


SCHEMAS = {
    "aws:budgets/budget:Budget": Schema(file="budgets/budget.go", replaces="name", computed="costFilters"),
    "aws:cloudwatch/logGroup:LogGroup": Schema(
        file="logs/group.go",
        replaces="name logGroupClass",
        computed="logGroupClass",
        defaults={"retentionInDays": 0, "skipDestroy": False},
    ),
    "aws:cloudwatch/metricAlarm:MetricAlarm": Schema(
        file="cloudwatch/metric_alarm.go",
        replaces="name",
        defaults={"actionsEnabled": True, "treatMissingData": "missing"},
    ),
    "aws:ebs/volume:Volume": Schema(
        file="ec2/ebs_volume.go",
        replaces="availabilityZone encrypted kmsKeyId snapshotId",
        computed="encrypted iops kmsKeyId size snapshotId throughput type",
    ),
    "aws:ec2/eip:Eip": Schema(file="ec2/ec2_eip.go", replaces="domain", computed="domain"),
    "aws:ec2/instance:Instance": Schema(
        file="ec2/ec2_instance.go",
        replaces="ami availabilityZone ebsOptimized keyName placementGroup primaryNetworkInterface.networkInterfaceId"
        " privateIp rootBlockDevice.encrypted rootBlockDevice.kmsKeyId subnetId tenancy",
        computed="availabilityZone disableApiTermination ebsOptimized iamInstanceProfile"
        f" instanceInitiatedShutdownBehavior keyName metadataOptions {METADATA} monitoring placementGroup"
        " primaryNetworkInterface primaryNetworkInterface.deleteOnTermination privateIp rootBlockDevice"
        f" {below('rootBlockDevice', f'{EBS} deviceName encrypted kmsKeyId volumeId')} subnetId tenancy"
        " userDataBase64 vpcSecurityGroupIds",
        defaults={
            "metadataOptions.httpEndpoint": "enabled",
            "metadataOptions.httpProtocolIpv6": "disabled",
            "rootBlockDevice.deleteOnTermination": True,
            "userDataReplaceOnChange": False,
        },
    ),
    "aws:ec2/internetGateway:InternetGateway": Schema(file="ec2/vpc_internet_gateway.go", computed="vpcId"),
    "aws:ec2/launchTemplate:LaunchTemplate": Schema(
        file="ec2/ec2_launch_template.go",
        replaces="name",
        computed=f"{below('blockDeviceMappings.ebs', EBS)} defaultVersion"
        f" instanceMarketOptions.spotOptions.validUntil metadataOptions {METADATA}"
        " metadataOptions.httpEndpoint metadataOptions.httpProtocolIpv6",
    ),
    "aws:ec2/natGateway:NatGateway": Schema(
        file="ec2/vpc_nat_gateway.go",
        replaces="allocationId connectivityType privateIp subnetId",
        computed="privateIp",
        defaults={"connectivityType": "public"},
    ),
    "aws:ec2/networkInterface:NetworkInterface": Schema(
        file="ec2/vpc_network_interface.go",
        replaces="interfaceType subnetId",
        computed="interfaceType privateIps securityGroups",
        defaults={"sourceDestCheck": True},
    ),
    "aws:ec2/placementGroup:PlacementGroup": Schema(
        file="ec2/ec2_placement_group.go",
        replaces="name partitionCount spreadLevel strategy",
        computed="partitionCount spreadLevel",
    ),
    "aws:ec2/route:Route": Schema(
        file="ec2/vpc_route.go",
        replaces="destinationCidrBlock destinationPrefixListId routeTableId",
        computed="networkInterfaceId",
    ),
    "aws:ec2/routeTable:RouteTable": Schema(file="ec2/vpc_route_table.go", replaces="vpcId"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Schema(
        file="ec2/vpc_route_table_association.go", replaces="gatewayId subnetId"
    ),
    "aws:ec2/securityGroup:SecurityGroup": Schema(
        file="ec2/vpc_security_group.go",
        replaces="description name vpcId",
        computed="vpcId",
        defaults={"description": "Managed by Pulumi", "revokeRulesOnDelete": False},
    ),
    "aws:ec2/subnet:Subnet": Schema(
        file="ec2/vpc_subnet.go",
        replaces="availabilityZone availabilityZoneId cidrBlock vpcId",
        computed="availabilityZone availabilityZoneId",
        defaults={"assignIpv6AddressOnCreation": False, "mapPublicIpOnLaunch": False},
    ),
    "aws:ec2/subnetCidrReservation:SubnetCidrReservation": Schema(
        file="ec2/vpc_subnet_cidr_reservation.go", replaces="cidrBlock description reservationType subnetId"
    ),
    "aws:ec2/volumeAttachment:VolumeAttachment": Schema(
        file="ec2/ebs_volume_attachment.go", replaces="deviceName instanceId volumeId"
    ),
    "aws:ec2/vpc:Vpc": Schema(
        file="ec2/vpc_.go",
        replaces="cidrBlock",
        computed="enableDnsHostnames enableNetworkAddressUsageMetrics",
        defaults={"enableDnsSupport": True, "instanceTenancy": "default"},
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Schema(
        file="ec2/vpc_endpoint.go",
        replaces="serviceName vpcEndpointType vpcId",
        computed="dnsOptions dnsOptions.dnsRecordIpType ipAddressType policy privateDnsEnabled routeTableIds"
        " securityGroupIds subnetIds",
        defaults={"vpcEndpointType": "Gateway"},
    ),
    "aws:efs/backupPolicy:BackupPolicy": Schema(file="efs/backup_policy.go", replaces="fileSystemId"),
    "aws:efs/fileSystem:FileSystem": Schema(
        file="efs/file_system.go",
        replaces="availabilityZoneName creationToken encrypted kmsKeyId performanceMode",
        computed="availabilityZoneName creationToken encrypted kmsKeyId performanceMode",
        defaults={"throughputMode": "bursting"},
    ),
    "aws:efs/mountTarget:MountTarget": Schema(
        file="efs/mount_target.go",
        replaces="fileSystemId ipAddress subnetId",
        computed="ipAddress securityGroups",
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": Schema(
        file="fsx/data_repository_association.go",
        replaces="dataRepositoryPath fileSystemId fileSystemPath",
        computed="importedFileChunkSize s3 s3.autoExportPolicy s3.autoExportPolicy.events s3.autoImportPolicy"
        " s3.autoImportPolicy.events",
        defaults={"batchImportMetaDataOnCreate": False, "deleteDataInFilesystem": False},
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Schema(
        file="fsx/lustre_file_system.go",
        replaces="copyTagsToBackups deploymentType driveCacheType efaEnabled kmsKeyId securityGroupIds storageType"
        " subnetIds",
        computed="automaticBackupRetentionDays dailyAutomaticBackupStartTime efaEnabled fileSystemTypeVersion kmsKeyId"
        " metadataConfiguration metadataConfiguration.iops metadataConfiguration.mode weeklyMaintenanceStartTime",
        defaults={
            "copyTagsToBackups": False,
            "dataCompressionType": "NONE",
            "deploymentType": "SCRATCH_1",
            "skipFinalBackup": True,
            "storageType": "SSD",
        },
    ),
    "aws:iam/instanceProfile:InstanceProfile": Schema(
        file="iam/instance_profile.go", replaces="name path", defaults={"path": "/"}
    ),
    "aws:iam/policy:Policy": Schema(file="iam/policy.go", replaces="description name path", defaults={"path": "/"}),
    "aws:iam/role:Role": Schema(
        file="iam/role.go",
        replaces="name path",
        defaults={"forceDetachPolicies": False, "maxSessionDuration": 3600, "path": "/"},
    ),
    "aws:iam/rolePolicy:RolePolicy": Schema(file="iam/role_policy.go", replaces="name role"),
    "aws:kms/alias:Alias": Schema(file="kms/alias.go", replaces="name"),
    "aws:kms/key:Key": Schema(
        file="kms/key.go",
        replaces="customerMasterKeySpec keyUsage multiRegion",
        computed="description multiRegion policy",
        defaults={
            "customerMasterKeySpec": "SYMMETRIC_DEFAULT",
            "enableKeyRotation": False,
            "isEnabled": True,
            "keyUsage": "ENCRYPT_DECRYPT",
        },
    ),
    "aws:route53/record:Record": Schema(file="route53/record.go", replaces="name zoneId", computed="allowOverwrite"),
    "aws:route53/zone:Zone": Schema(
        file="route53/zone.go",
        replaces="name",
        computed="vpcs.vpcRegion",
        defaults={"comment": "Managed by Pulumi", "forceDestroy": False},
    ),
    "aws:s3/bucket:Bucket": Schema(
        file="s3/bucket.go",
        replaces="bucket objectLockEnabled",
        computed="objectLockEnabled",
        defaults={"forceDestroy": False},
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Schema(
        file="s3/bucket_lifecycle_configuration.go",
        replaces="bucket",
        computed="rules.expiration.days rules.expiration.expiredObjectDeleteMarker rules.filter.prefix"
        " rules.noncurrentVersionExpiration.newerNoncurrentVersions rules.transitions.days",
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": Schema(
        file="s3/object.go",
        replaces="bucket key",
        computed="bucketKeyEnabled contentType kmsKeyId serverSideEncryption storageClass",
        defaults={"forceDestroy": False},
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": Schema(
        file="s3/bucket_ownership_controls.go", replaces="bucket"
    ),
    "aws:s3/bucketPolicy:BucketPolicy": Schema(file="s3/bucket_policy.go", replaces="bucket"),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": Schema(
        file="s3/bucket_public_access_block.go",
        replaces="bucket",
        defaults={
            "blockPublicAcls": False,
            "blockPublicPolicy": False,
            "ignorePublicAcls": False,
            "restrictPublicBuckets": False,
        },
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": Schema(
        file="s3/bucket_server_side_encryption_configuration.go", replaces="bucket"
    ),
    "aws:s3/bucketVersioning:BucketVersioning": Schema(
        file="s3/bucket_versioning.go", replaces="bucket", computed="versioningConfiguration.mfaDelete"
    ),
    "aws:secretsmanager/secret:Secret": Schema(
        file="secretsmanager/secret.go",
        replaces="name",
        computed="policy",
        defaults={"forceOverwriteReplicaSecret": False, "recoveryWindowInDays": 30},
    ),
    "aws:sns/topic:Topic": Schema(file="sns/topic.go", replaces="name", computed="policy"),
    "aws:sns/topicSubscription:TopicSubscription": Schema(
        file="sns/topic_subscription.go",
        replaces="endpoint protocol topic",
        defaults={"confirmationTimeoutInMinutes": 1, "endpointAutoConfirms": False, "rawMessageDelivery": False},
    ),
    "aws:ssm/parameter:Parameter": Schema(
        file="ssm/parameter.go",
        replaces="dataType name",
        computed="dataType insecureValue keyId tier value",
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Schema(
        file="ec2/vpc_security_group_egress_rule.go", replaces="securityGroupId"
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Schema(
        file="ec2/vpc_security_group_ingress_rule.go", replaces="securityGroupId"
    ),
}
# Where the stand-in differs, and why. A user notices only the first.
ON_PURPOSE = {
    "aws:route53/record:Record type replaces here": "its type is in its id, so that a record is found by its id",
    "aws:ec2/instance:Instance rootBlockDevice.tags is computed here": "the default tags come back among them",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration rules.filter is computed here": (
        "S3 fills in an empty one, for which the provider has a plan modifier"
    ),
}


def paths(props: Mapping[str, Prop], above: str = "") -> Iterator[tuple[str, Prop]]:
    """Every property with its path."""
    for name, prop in props.items():
        yield f"{above}{name}", prop
        fields = prop.fields or (prop.item.fields if prop.item else {})
        yield from paths(fields, f"{above}{name}.")


def own(resource: Resource) -> dict[str, Prop]:
    """The arguments that are particular to the type, with their paths."""
    return {path: prop for path, prop in paths(resource.inputs) if path not in COMMON}


def differing(token: str, here: set[str], there: str, word: str) -> list[str]:
    """One line for each path that only one side has and that is not on purpose."""
    wanted = set(there.split())
    lines = [f"{token} {path} {word} here" for path in here - wanted]
    lines += [f"{token} {path} {word} there" for path in wanted - here]
    return sorted(line for line in lines if line not in ON_PURPOSE)


def test_every_type_is_compared() -> None:
    assert sorted(SCHEMAS) == sorted(RESOURCES)


@pytest.mark.parametrize("token", sorted(SCHEMAS))
def test_properties_that_replace_match_the_provider(token: str) -> None:
    here = {path for path, prop in own(RESOURCES[token]).items() if prop.replaces}
    assert differing(token, here, SCHEMAS[token].replaces, "replaces") == []


def test_a_record_of_another_type_is_a_new_record() -> None:
    assert RESOURCES["aws:route53/record:Record"].inputs["type"].replaces


@pytest.mark.parametrize("token", sorted(SCHEMAS))
def test_computed_properties_match_the_provider(token: str) -> None:
    here = {path for path, prop in own(RESOURCES[token]).items() if prop.computed}
    assert differing(token, here, SCHEMAS[token].computed, "is computed") == []


@pytest.mark.parametrize("token", sorted(SCHEMAS))
def test_the_defaults_are_the_providers(token: str) -> None:
    here = {path: prop.default for path, prop in own(RESOURCES[token]).items() if prop.default is not None}
    assert here == SCHEMAS[token].defaults


# --- what replaces only sometimes: the CustomizeDiff functions of the same files

INSTANCE = "aws:ec2/instance:Instance"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
PARAMETER = "aws:ssm/parameter:Parameter"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
VPC = "aws:ec2/vpc:Vpc"
SCRATCH = {"deploymentType": "SCRATCH_1"}
LASTING = {"deploymentType": "PERSISTENT_2"}
ADDRESSES = {"privateIp": "10.0.0.4"}


def provisioned(iops: int) -> dict[str, Any]:
    return {"metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": iops}}


def changes(token: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, bool]:
    """The paths that differ, and whether that replaces the resource."""
    region = {"region": SETTINGS.region}
    return {one.path: one.replaces for one in lifecycle.diff(RESOURCES[token], SETTINGS, {**region, **old}, new)}


@pytest.mark.parametrize(
    ("token", "common", "old", "new"),
    [
        (INSTANCE, {"userDataReplaceOnChange": True}, {"userData": "a"}, {"userData": "b"}),
        (INTERFACE, ADDRESSES, {"privateIps": ["10.0.0.4"]}, {"privateIps": ["10.0.0.5"]}),
        (VPC, {}, {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}),
        (ENDPOINT, {"vpcEndpointType": "Gateway"}, {"privateDnsEnabled": False}, {"privateDnsEnabled": True}),
        (LUSTRE, SCRATCH, {"storageCapacity": 1200}, {"storageCapacity": 2400}),
        (LUSTRE, LASTING, {"storageCapacity": 2400}, {"storageCapacity": 1200}),
        (LUSTRE, LASTING, {"fileSystemTypeVersion": "2.15"}, {"fileSystemTypeVersion": "2.12"}),
        (PARAMETER, {}, {"tier": "Advanced"}, {"tier": "Standard"}),
    ],
)
def test_a_change_replaces_the_resource(
    token: str, common: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert changes(token, {**common, **old}, {**common, **new}) == dict.fromkeys(new, True)


@pytest.mark.parametrize(
    ("token", "common", "old", "new"),
    [
        (INSTANCE, {"userDataReplaceOnChange": False}, {"userData": "a"}, {"userData": "b"}),
        (INSTANCE, {}, {"instanceType": "m7i.large"}, {"instanceType": "m7i.xlarge"}),
        (INTERFACE, ADDRESSES, {"privateIps": ["10.0.0.4"]}, {"privateIps": ["10.0.0.4", "10.0.0.5"]}),
        (VPC, {}, {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}),
        (ENDPOINT, {"vpcEndpointType": "Interface"}, {"privateDnsEnabled": False}, {"privateDnsEnabled": True}),
        (RULE, {"ipProtocol": "-1"}, {"cidrIpv4": "10.0.0.0/16"}, {"cidrIpv4": "10.0.0.0/8"}),
        (LUSTRE, LASTING, {"storageCapacity": 1200}, {"storageCapacity": 2400}),
        (LUSTRE, LASTING, {"fileSystemTypeVersion": "2.12"}, {"fileSystemTypeVersion": "2.15"}),
        (PARAMETER, {}, {"tier": "Standard"}, {"tier": "Advanced"}),
        ("aws:cloudwatch/logGroup:LogGroup", {}, {"kmsKeyId": "arn:a"}, {"kmsKeyId": "arn:b"}),
        ("aws:ebs/volume:Volume", {}, {"size": 20}, {"size": 40}),
    ],
)
def test_a_change_is_an_update(token: str, common: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    assert changes(token, {**common, **old}, {**common, **new}) == dict.fromkeys(new, False)


def test_a_source_of_another_kind_replaces_the_rule() -> None:
    old = {"ipProtocol": "-1", "cidrIpv4": "10.0.0.0/16"}
    new = {"ipProtocol": "-1", "referencedSecurityGroupId": "sg-1"}
    assert changes(RULE, old, new) == {"cidrIpv4": True, "referencedSecurityGroupId": True}


def test_fewer_metadata_iops_replace_the_file_system() -> None:
    old, new = ({**LASTING, **provisioned(iops)} for iops in (6000, 1500))
    assert changes(LUSTRE, old, new) == {"metadataConfiguration.iops": True}


def test_more_metadata_iops_are_an_update() -> None:
    old, new = ({**LASTING, **provisioned(iops)} for iops in (1500, 6000))
    assert changes(LUSTRE, old, new) == {"metadataConfiguration.iops": False}
