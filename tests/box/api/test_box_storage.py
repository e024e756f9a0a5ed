"""File systems and buckets: FSx for Lustre with its links to S3, EFS, S3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork

import boxes
from corral.box import client

PERSISTENT = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}


def _code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def _create(aws: Clients, launch_network: LaunchNetwork, capacity_gib: int = 1200, **lustre: Any) -> dict[str, Any]:
    query = {"DeploymentType": "SCRATCH_2", **lustre}
    made = aws("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=capacity_gib,
        SubnetIds=[launch_network.subnet],
        SecurityGroupIds=[launch_network.group],
        LustreConfiguration=query,
        Tags=[{"Key": "corral:cluster", "Value": "dev"}],
    )
    return dict(made["FileSystem"])


def _wait(read_state: Callable[[], str], first: object, until: str) -> list[str]:
    """The states from the one that the call answered with, each once, until the one that was waited for."""
    seen = [str(first)]
    while seen[-1] != until:
        state = read_state()
        if state != seen[-1]:
            seen.append(state)
    return seen


def _lifecycle(aws: Clients, named: str) -> str:
    try:
        return str(aws("fsx").describe_file_systems(FileSystemIds=[named])["FileSystems"][0]["Lifecycle"])
    except ClientError as error:
        return str(error.response["Error"]["Code"])


def _available(aws: Clients, launch_network: LaunchNetwork) -> str:
    named = str(_create(aws, launch_network)["FileSystemId"])
    _wait(lambda: _lifecycle(aws, named), "CREATING", "AVAILABLE")
    return named


def test_a_file_system_is_created_used_and_deleted_in_steps(aws: Clients, launch_network: LaunchNetwork) -> None:
    made = _create(aws, launch_network)
    named = made["FileSystemId"]
    coming = _wait(lambda: _lifecycle(aws, named), made["Lifecycle"], "AVAILABLE")
    ended = aws("fsx").delete_file_system(FileSystemId=named)
    going = _wait(lambda: _lifecycle(aws, named), ended["Lifecycle"], "FileSystemNotFound")
    assert (coming, going) == (["CREATING", "AVAILABLE"], ["DELETING", "FileSystemNotFound"])


def test_a_file_system_shows_its_mount_name(aws: Clients, launch_network: LaunchNetwork) -> None:
    made = _create(aws, launch_network)
    shown = (made["DNSName"], len(made["LustreConfiguration"]["MountName"]), made["VpcId"], made["Tags"])
    assert shown == (
        f"{made['FileSystemId']}.fsx.us-east-1.amazonaws.com",
        8,
        launch_network.vpc,
        [{"Key": "corral:cluster", "Value": "dev"}],
    )


SQUASH = {"RootSquash": "65534:65534", "NoSquashNids": ["10.64.0.10@tcp", "10.64.0.[20-30]@tcp"]}


def test_a_file_system_shows_its_root_squash_and_accepts_another(aws: Clients, launch_network: LaunchNetwork) -> None:
    made = _create(aws, launch_network, RootSquashConfiguration=SQUASH)
    changed = {"RootSquash": "0:0", "NoSquashNids": []}
    shown = [made["LustreConfiguration"]["RootSquashConfiguration"]]
    aws("fsx").update_file_system(
        FileSystemId=made["FileSystemId"], LustreConfiguration={"RootSquashConfiguration": changed}
    )
    (found,) = aws("fsx").describe_file_systems(FileSystemIds=[made["FileSystemId"]])["FileSystems"]
    assert [*shown, found["LustreConfiguration"]["RootSquashConfiguration"]] == [SQUASH, changed]


@pytest.mark.parametrize(
    "squash",
    [{"RootSquash": "nobody"}, {"NoSquashNids": ["10.64.0.10@o2ib"]}, {"NoSquashNids": ["10.64.0.10@tcp"] * 65}],
)
def test_an_invalid_root_squash_is_refused(aws: Clients, launch_network: LaunchNetwork, squash: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as refused:
        _create(aws, launch_network, RootSquashConfiguration=squash)
    assert _code(refused) == "BadRequest"


def test_a_file_system_has_interfaces_that_are_deleted_with_it(aws: Clients, launch_network: LaunchNetwork) -> None:
    made, ec2 = _create(aws, launch_network), aws("ec2")
    with pytest.raises(ClientError) as refused:
        ec2.delete_subnet(SubnetId=launch_network.subnet)
    held = ec2.describe_network_interfaces(NetworkInterfaceIds=made["NetworkInterfaceIds"])["NetworkInterfaces"]
    aws("fsx").delete_file_system(FileSystemId=made["FileSystemId"])
    after = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert (_code(refused), [nic["SubnetId"] for nic in held], after) == (
        "DependencyViolation",
        [launch_network.subnet, launch_network.subnet],
        [],
    )


@pytest.mark.parametrize(
    ("capacity_gib", "settings", "interfaces"),
    [
        (1200, {}, 2),
        (9600, {}, 5),
        (4800, {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 50}, 3),
        (19200, {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}, 9),
        (
            38400,
            {
                "DeploymentType": "PERSISTENT_2",
                "PerUnitStorageThroughput": 250,
                "EfaEnabled": True,
                "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 36000},
            },
            5,
        ),
    ],
)
def test_a_file_system_has_an_interface_for_each_of_its_servers(
    aws: Clients, launch_network: LaunchNetwork, capacity_gib: int, settings: dict[str, Any], interfaces: int
) -> None:
    assert len(_create(aws, launch_network, capacity_gib, **settings)["NetworkInterfaceIds"]) == interfaces


def test_a_file_system_that_grows_takes_more_addresses(aws: Clients, launch_network: LaunchNetwork) -> None:
    fsx, named = aws("fsx"), _available(aws, launch_network)
    grown = fsx.update_file_system(FileSystemId=named, StorageCapacity=4800)["FileSystem"]
    assert len(grown["NetworkInterfaceIds"]) == 3


def test_a_subnet_without_addresses_for_all_servers_is_refused_and_unchanged(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    small = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/28", AvailabilityZoneId="use1-az1")[
        "Subnet"
    ]
    with pytest.raises(ClientError) as refused:
        _create(aws, replace(launch_network, subnet=small["SubnetId"]), 28800)
    left = ec2.describe_subnets(SubnetIds=[small["SubnetId"]])["Subnets"][0]["AvailableIpAddressCount"]
    assert (_code(refused), left) == ("InvalidNetworkSettings", 11)


@pytest.mark.parametrize(
    ("capacity_gib", "settings"),
    [
        (1300, {}),
        (3600, {}),
        (1200, {"AutomaticBackupRetentionDays": 7}),  # scratch has no backups
        (1200, {"PerUnitStorageThroughput": 200}),  # nor a throughput to choose
        (1200, {"DeploymentType": "PERSISTENT_2"}),  # which this needs
        (1200, {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 200}),
        (1200, {"DeploymentType": "SCRATCH_3"}),
        (1200, {"DriveCacheType": "READ"}),  # only of HDDs
        (1200, {"MetadataConfiguration": {"Mode": "AUTOMATIC"}}),  # only of PERSISTENT_2
        (38400, {**PERSISTENT, "EfaEnabled": True}),  # requires a metadata configuration
        (1200, {**PERSISTENT, "MetadataConfiguration": {"Mode": "USER_PROVISIONED"}}),  # requires a number
        (1200, {**PERSISTENT, "MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 3000}}),  # which this has not
        (1200, {**PERSISTENT, "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 2000}}),
    ],
)
def test_a_file_system_is_refused(
    aws: Clients, launch_network: LaunchNetwork, capacity_gib: int, settings: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as refused:
        _create(aws, launch_network, capacity_gib, **settings)
    assert _code(refused) == "BadRequest"


@pytest.mark.parametrize("capacity_gib", [1200, 2400, 4800])
def test_a_file_system_of_this_size_is_created(aws: Clients, launch_network: LaunchNetwork, capacity_gib: int) -> None:
    assert _create(aws, launch_network, capacity_gib)["StorageCapacity"] == capacity_gib


def _link(aws: Clients, named: str, path: str, prefix: str) -> dict[str, Any]:
    made = aws("fsx").create_data_repository_association(
        FileSystemId=named,
        FileSystemPath=path,
        DataRepositoryPath=f"s3://corpus/{prefix}",
        BatchImportMetaDataOnCreate=True,
        S3={"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}},
    )
    return dict(made["Association"])


BACKED_UP = {"AutomaticBackupRetentionDays": 7}


def _persistent(aws: Clients, launch_network: LaunchNetwork, **settings: Any) -> str:
    named = str(_create(aws, launch_network, **PERSISTENT, **settings)["FileSystemId"])
    _wait(lambda: _lifecycle(aws, named), "CREATING", "AVAILABLE")
    return named


def test_a_file_system_with_backups_is_not_linked(aws: Clients, launch_network: LaunchNetwork) -> None:
    named = _persistent(aws, launch_network, **BACKED_UP)
    with pytest.raises(ClientError, match="Backups cannot be created on S3-linked file systems"):
        _link(aws, named, "/data", "text")


@pytest.mark.parametrize(
    ("call", "settings"),
    [("create_backup", {}), ("update_file_system", {"LustreConfiguration": BACKED_UP})],
)
def test_a_linked_file_system_has_no_backups(
    aws: Clients, launch_network: LaunchNetwork, call: str, settings: dict[str, Any]
) -> None:
    fsx, named = aws("fsx"), _persistent(aws, launch_network)
    _link(aws, named, "/data", "text")
    with pytest.raises(ClientError, match="Backups cannot be created on S3-linked file systems"):
        getattr(fsx, call)(FileSystemId=named, **settings)


def test_a_link_to_a_bucket_becomes_available_and_keeps_its_policies(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    aws("s3").create_bucket(Bucket="corpus")
    fsx, named = aws("fsx"), _available(aws, launch_network)
    made = _link(aws, named, "/data", "text")
    link = made["AssociationId"]

    def shown() -> dict[str, Any]:
        return dict(fsx.describe_data_repository_associations(AssociationIds=[link])["Associations"][0])

    seen = _wait(lambda: str(shown()["Lifecycle"]), made["Lifecycle"], "AVAILABLE")
    fsx.update_data_repository_association(AssociationId=link, S3={"AutoExportPolicy": {"Events": ["NEW"]}})
    assert (seen, shown()["S3"]) == (
        ["CREATING", "AVAILABLE"],
        {
            "AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]},
            "AutoExportPolicy": {"Events": ["NEW"]},
        },
    )


def test_a_link_to_a_missing_bucket_is_misconfigured(aws: Clients, launch_network: LaunchNetwork) -> None:
    fsx, made = aws("fsx"), _link(aws, _available(aws, launch_network), "/data", "text")
    link = made["AssociationId"]
    seen = _wait(
        lambda: str(fsx.describe_data_repository_associations(AssociationIds=[link])["Associations"][0]["Lifecycle"]),
        made["Lifecycle"],
        "MISCONFIGURED",
    )
    assert seen == ["CREATING", "MISCONFIGURED"]


@pytest.mark.parametrize(("path", "prefix"), [("/data/more", "other"), ("/", "other"), ("/other", "text/en")])
def test_a_link_that_overlaps_with_another_is_refused(
    aws: Clients, launch_network: LaunchNetwork, path: str, prefix: str
) -> None:
    named = _available(aws, launch_network)
    _link(aws, named, "/data", "text")
    with pytest.raises(ClientError) as refused:
        _link(aws, named, path, prefix)
    assert _code(refused) == "BadRequest"


def test_the_ninth_link_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    named = _available(aws, launch_network)
    for number in range(8):
        _link(aws, named, f"/data-{number}", f"text-{number}")
    with pytest.raises(ClientError) as refused:
        _link(aws, named, "/data-8", "text-8")
    assert _code(refused) == "ServiceLimitExceeded"


def test_tags_of_a_file_system_can_be_changed(aws: Clients, launch_network: LaunchNetwork) -> None:
    fsx, arn = aws("fsx"), _create(aws, launch_network)["ResourceARN"]
    fsx.tag_resource(ResourceARN=arn, Tags=[{"Key": "Name", "Value": "scratch"}])
    fsx.untag_resource(ResourceARN=arn, TagKeys=["corral:cluster"])
    assert fsx.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "Name", "Value": "scratch"}]


def test_a_file_system_can_grow_but_not_shrink(aws: Clients, launch_network: LaunchNetwork) -> None:
    fsx, named = aws("fsx"), _available(aws, launch_network)
    grown = fsx.update_file_system(FileSystemId=named, StorageCapacity=2400)["FileSystem"]["StorageCapacity"]
    with pytest.raises(ClientError) as refused:
        fsx.update_file_system(FileSystemId=named, StorageCapacity=1200)
    assert (grown, _code(refused)) == (2400, "BadRequest")


def test_an_efs_mount_target_holds_its_interface_and_its_file_system(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    efs, codes = aws("efs"), []
    named = efs.create_file_system(CreationToken="home")["FileSystemId"]
    target = efs.create_mount_target(
        FileSystemId=named, SubnetId=launch_network.subnet, SecurityGroups=[launch_network.group]
    )
    for act, parameters in (
        (aws("ec2").delete_network_interface, {"NetworkInterfaceId": target["NetworkInterfaceId"]}),
        (efs.delete_file_system, {"FileSystemId": named}),
        (efs.create_mount_target, {"FileSystemId": named, "SubnetId": launch_network.subnet}),
        (efs.create_file_system, {"CreationToken": "home"}),
    ):
        with pytest.raises(ClientError) as refused:
            act(**parameters)
        codes.append(_code(refused))
    efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    efs.delete_file_system(FileSystemId=named)
    assert (codes, efs.describe_file_systems()["FileSystems"]) == (
        ["InvalidParameterValue", "FileSystemInUse", "MountTargetConflict", "FileSystemAlreadyExists"],
        [],
    )


def test_an_efs_mount_target_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, efs, codes = aws("ec2"), aws("efs"), []
    other = ec2.create_vpc(CidrBlock="10.70.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="other", Description="other", VpcId=other)["GroupId"]
    far = ec2.create_subnet(VpcId=other, CidrBlock="10.70.1.0/24", AvailabilityZoneId="use1-az2")["Subnet"]["SubnetId"]
    full = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/28", AvailabilityZoneId="use1-az2")[
        "Subnet"
    ]
    for _ in range(full["AvailableIpAddressCount"]):
        ec2.create_network_interface(SubnetId=full["SubnetId"])
    named = efs.create_file_system(CreationToken="home")["FileSystemId"]
    for parameters in (
        {"SubnetId": full["SubnetId"]},
        {"SubnetId": launch_network.subnet, "SecurityGroups": [group]},
        {"SubnetId": "subnet-0123456789abcdef0"},
    ):
        with pytest.raises(ClientError) as refused:
            efs.create_mount_target(FileSystemId=named, **parameters)
        codes.append(_code(refused))
    efs.create_mount_target(FileSystemId=named, SubnetId=launch_network.subnet)
    with pytest.raises(ClientError) as refused:
        efs.create_mount_target(FileSystemId=named, SubnetId=far)
    assert [*codes, _code(refused)] == [
        "NoFreeAddressesInSubnet",
        "SecurityGroupNotFound",
        "SubnetNotFound",
        "MountTargetConflict",
    ]


def test_an_efs_backup_policy_can_be_set(aws: Clients, box: Any) -> None:
    efs = aws("efs")
    named = efs.create_file_system(CreationToken="home")["FileSystemId"]
    efs.put_backup_policy(FileSystemId=named, BackupPolicy={"Status": "ENABLED"})
    assert efs.describe_backup_policy(FileSystemId=named)["BackupPolicy"] == {"Status": "ENABLED"}


def test_a_bucket_has_the_tags_of_its_creation(aws: Clients) -> None:
    tags = [{"Key": "corral:base", "Value": "dev"}, {"Key": "empty", "Value": ""}]
    aws("s3").create_bucket(Bucket="tagged", CreateBucketConfiguration={"Tags": tags})
    assert aws("s3").get_bucket_tagging(Bucket="tagged")["TagSet"] == tags


def test_a_bucket_with_old_versions_in_it_is_not_deleted(aws: Clients, box: Any) -> None:
    s3 = aws("s3")
    s3.create_bucket(Bucket="kept")
    s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="kept", Key="a", Body=b"1")
    s3.delete_object(Bucket="kept", Key="a")
    with pytest.raises(ClientError) as refused:
        s3.delete_bucket(Bucket="kept")
    assert _code(refused) == "BucketNotEmpty"


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("list_objects_v2", {}),
        ("put_object", {"Key": "a", "Body": b"1"}),
        ("get_object", {"Key": "a"}),
        ("head_object", {"Key": "a"}),
        ("delete_object", {"Key": "a"}),
        ("create_multipart_upload", {"Key": "a"}),
        ("put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}}),
        ("head_bucket", {}),
        ("delete_bucket", {}),
    ],
)
def test_a_call_that_expects_another_owner_of_the_bucket_is_refused(
    aws: Clients, box: Any, operation: str, parameters: dict[str, Any]
) -> None:
    aws("s3").create_bucket(Bucket="mine")
    with pytest.raises(ClientError) as refused:
        getattr(aws("s3"), operation)(Bucket="mine", ExpectedBucketOwner="999999999999", **parameters)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_copy_that_expects_another_owner_of_its_source_is_refused(aws: Clients, box: Any) -> None:
    s3 = aws("s3")
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=b"1")
    with pytest.raises(ClientError) as refused:
        s3.copy_object(Bucket="mine", Key="b", CopySource="mine/a", ExpectedSourceBucketOwner="999999999999")
    assert _code(refused) == "AccessDenied"


def test_an_expected_owner_that_is_no_account_is_refused(aws: Clients, box: Any) -> None:
    aws("s3").create_bucket(Bucket="mine")
    with pytest.raises(ClientError) as refused:
        aws("s3").get_object(Bucket="mine", Key="a", ExpectedBucketOwner="me")
    assert _code(refused) == "InvalidBucketOwnerAWSAccountID"


def test_the_head_of_an_object_has_its_size(aws: Clients, box: Any) -> None:
    s3 = aws("s3")
    s3.create_bucket(Bucket="sizes")
    s3.put_object(Bucket="sizes", Key="a", Body=b"12345")
    assert s3.head_object(Bucket="sizes", Key="a")["ContentLength"] == 5


def test_large_objects_survive_a_restart_and_are_written_once(state_directory: Path) -> None:
    content = bytes(range(256)) * 4096
    s3 = boxes.client(boxes.start(state_directory), "s3")
    s3.create_bucket(Bucket="large")
    s3.put_object(Bucket="large", Key="checkpoint", Body=content)
    client.stop(state_directory)
    s3 = boxes.client(boxes.start(state_directory), "s3")
    kept = s3.get_object(Bucket="large", Key="checkpoint")["Body"].read() == content
    s3.delete_object(Bucket="large", Key="checkpoint")
    left = list((state_directory / "objects").iterdir())
    assert (kept, (state_directory / "cloud.pickle").stat().st_size < 100_000, left) == (True, True, [])
