"""An aws-like box: what takes AWS some time takes the box some time, too.

`patient` boxes need AWS's own times, so that a test sees what holds meanwhile; `quick` ones are over within a second.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import described

import boxes
from corral.box import client
from corral.box.api.fsx_associations import import_s
from corral.box.client import BoxStatus
from corral.box.delays import (
    CLEANING,
    DELAYS,
    GPU_TERMINATION,
    STALE_TAGS,
    TERMINATION,
    Delay,
    delay_lines,
    seconds,
)
from corral.box.ec2.launch_faults import cleaning_of
from corral.box.provider import lifecycle
from corral.box.provider.aws_clients import ClientCache, RegionClients
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.provider_errors import ProviderError
from corral.box.provider.tables import RESOURCES
from corral.box.switches import Behaviour, Switches

Clients = Callable[..., Any]
IN_S = 60  # many times what anything here takes
PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"


@pytest.fixture(scope="module")
def patient_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("patient") / "state", speed=1) as status:
        yield status


@pytest.fixture(scope="module")
def quick_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("quick") / "state", speed=1000) as status:
        yield status


@pytest.fixture
def patient(patient_box: BoxStatus) -> Clients:
    """Clients of an aws-like box with AWS's times."""
    client.reset(patient_box.dir)
    return partial(boxes.client, patient_box)


@pytest.fixture
def quick(quick_box: BoxStatus) -> Clients:
    """Clients of an aws-like box that is 1000 times as fast as AWS."""
    client.reset(quick_box.dir)
    return partial(boxes.client, quick_box)


def until(found: Callable[[], Any]) -> Any:
    """What `found` returns, as soon as it is true."""
    deadline = time.monotonic() + IN_S
    while not (held := found()):
        assert time.monotonic() < deadline, f"nothing within {IN_S} s"
        time.sleep(0.05)
    return held


def state(aws: Clients, instance_id: str) -> str:
    return str(described(aws, instance_id)["State"]["Name"])


def launch_in_default_subnet(aws: Clients, **request: Any) -> str:
    """The id of a new m7i.large in us-east-1b."""
    default = [{"Name": "availability-zone", "Values": ["us-east-1b"]}]
    (subnet,) = aws("ec2").describe_subnets(Filters=default)["Subnets"]
    image = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    wanted = {"ImageId": image, "SubnetId": subnet["SubnetId"], "InstanceType": "m7i.large", **request}
    made = aws("ec2").run_instances(**wanted, MinCount=1, MaxCount=1)["Instances"]
    return str(made[0]["InstanceId"])


def in_a_reservation(aws: Clients) -> tuple[str, str]:
    """The ids of a reservation of one m7i.large and of the instance in it, which EC2 finds."""
    held = aws("ec2").create_capacity_reservation(
        InstanceType="m7i.large", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b", InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    instance_id = launch_in_default_subnet(aws)
    until(lambda: found(aws, instance_id))
    return str(held), instance_id


def found(aws: Clients, instance_id: str) -> bool:
    """True once EC2 finds the instance."""
    return code_of(partial(aws("ec2").describe_instances, InstanceIds=[instance_id])) == ""


def code_of(call: Callable[[], Any]) -> str:
    """The code of the call's error; empty if it succeeds."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def free_in(aws: Clients, reservation: str) -> int:
    (shown,) = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"]
    return int(shown["AvailableInstanceCount"])


def test_the_page_has_each_delay() -> None:
    section = PAGE.read_text().partition("\n## An aws-like box\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d.]+) s \|", section, re.MULTILINE))
    assert rows == {delay.text: f"{delay.aws_s:g}" for delay in DELAYS}


def test_a_speed_divides_each_delay() -> None:
    assert seconds(STALE_TAGS, Switches(behaviour=Behaviour.AWS_LIKE, speed=20)) == 60


def test_an_instant_box_has_no_delays() -> None:
    assert list(delay_lines(Switches())) == []


def test_an_instance_that_is_cleaned_uses_its_capacity_in_a_reservation(patient: Clients) -> None:
    reservation, instance_id = in_a_reservation(patient)
    patient("ec2").terminate_instances(InstanceIds=[instance_id])
    assert (state(patient, instance_id), free_in(patient, reservation)) == ("shutting-down", 0)


def test_a_cleaned_instance_frees_its_capacity_in_a_reservation(quick: Clients) -> None:
    reservation, instance_id = in_a_reservation(quick)
    quick("ec2").terminate_instances(InstanceIds=[instance_id])
    until(lambda: state(quick, instance_id) == "terminated")
    assert free_in(quick, reservation) == 1


@pytest.mark.parametrize(
    ("kind", "reservation", "delay"),
    [
        ("m7i.large", None, TERMINATION),
        ("m7i.large", "cr-1", CLEANING),
        ("p4d.24xlarge", None, GPU_TERMINATION),
        ("p5.48xlarge", "cr-1", GPU_TERMINATION),
    ],
)
def test_an_instance_is_cleaned(kind: str, reservation: str | None, delay: Delay) -> None:
    assert cleaning_of(kind, reservation) == delay


NEW: Mapping[str, tuple[str, Callable[[Any], str], Callable[[Any, str], Any]]] = {
    "InvalidGroup.NotFound": (
        "ec2",
        lambda ec2: ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"],
        lambda ec2, id: ec2.describe_security_groups(GroupIds=[id]),
    ),
    "InvalidSubnetID.NotFound": (
        "ec2",
        lambda ec2: ec2.create_subnet(VpcId=default_vpc(ec2), CidrBlock="172.31.128.0/24")["Subnet"]["SubnetId"],
        lambda ec2, id: ec2.modify_subnet_attribute(SubnetId=id, MapPublicIpOnLaunch={"Value": True}),
    ),
    "InvalidInstanceID.NotFound": (
        "ec2",
        lambda ec2: ec2.run_instances(ImageId=first_image(ec2), InstanceType="m7i.large", MinCount=1, MaxCount=1)[
            "Instances"
        ][0]["InstanceId"],
        lambda ec2, id: ec2.describe_instances(InstanceIds=[id]),
    ),
    "NoSuchEntity": (
        "iam",
        lambda iam: iam.create_role(RoleName="head", AssumeRolePolicyDocument="{}")["Role"]["RoleName"],
        lambda iam, name: iam.get_role(RoleName=name),
    ),
    "NotFoundException": (
        "kms",
        lambda kms: kms.create_key()["KeyMetadata"]["KeyId"],
        lambda kms, id: kms.enable_key_rotation(KeyId=id),
    ),
}


def default_vpc(ec2: Any) -> str:
    return str(ec2.describe_vpcs()["Vpcs"][0]["VpcId"])


def first_image(ec2: Any) -> str:
    return str(ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"])


def new_alias(kms: Any) -> str:
    """A new alias of a key that KMS finds."""
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    until(lambda: code_of(partial(kms.create_alias, AliasName="alias/lab", TargetKeyId=key)) == "")
    return "alias/lab"


@pytest.mark.parametrize("code", NEW)
def test_what_was_just_created_is_not_found(patient: Clients, code: str) -> None:
    service, create, use = NEW[code]
    made = create(patient(service))
    assert code_of(lambda: use(patient(service), made)) == code


@pytest.mark.parametrize("code", NEW)
def test_what_was_just_created_is_found_later(quick: Clients, code: str) -> None:
    service, create, use = NEW[code]
    made = create(quick(service))
    assert until(lambda: code_of(lambda: use(quick(service), made)) == "")


def test_a_new_alias_of_a_key_is_not_found(patient: Clients) -> None:
    alias = new_alias(patient("kms"))
    assert code_of(partial(patient("kms").describe_key, KeyId=alias)) == "NotFoundException"


def test_a_new_alias_of_a_key_is_found_later(quick: Clients) -> None:
    alias = new_alias(quick("kms"))
    assert until(lambda: code_of(partial(quick("kms").describe_key, KeyId=alias)) == "")


def stand_in(box: BoxStatus, switches: Switches) -> RegionClients:
    """The clients with which the stand-in calls the box; it takes the box for one with these switches."""
    return RegionClients(ClientCache(str(box.url), client.environment(box.dir)), "us-east-1", switches=switches)


def create_group(cloud: RegionClients) -> dict[str, Any]:
    """The state of a new security group."""
    resource = RESOURCES["aws:ec2/securityGroup:SecurityGroup"]
    _, state = lifecycle.create(resource, cloud, ProviderSettings(region="us-east-1"), {"name": "nodes"})
    return state


def test_the_stand_in_waits_until_what_it_created_is_found(patient_box: BoxStatus, patient: Clients) -> None:
    cloud = stand_in(patient_box, client.status(patient_box.dir).switches)
    assert create_group(cloud)["name"] == "nodes"


def test_a_provider_that_does_not_wait_does_not_find_what_it_created(patient_box: BoxStatus, patient: Clients) -> None:
    with pytest.raises(ProviderError, match=r"InvalidGroup\.NotFound"):
        create_group(stand_in(patient_box, Switches()))


def test_the_stand_in_gives_up_where_the_provider_would() -> None:
    cloud = RegionClients(ClientCache(""), "us-east-1", 1800, Switches(behaviour=Behaviour.AWS_LIKE, speed=20))
    assert cloud.timeout_s == 100  # half an hour, divided, and what a busy machine needs


def new_template(aws: Clients) -> str:
    """The id of a new launch template."""
    data = {"ImageId": first_image(aws("ec2")), "InstanceType": "m7i.large"}
    made = aws("ec2").create_launch_template(LaunchTemplateName="train", LaunchTemplateData=data)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def launch_code(aws: Clients, **request: Any) -> str:
    """The code of a launch's error; empty if it succeeds."""
    return code_of(partial(aws("ec2").run_instances, MinCount=1, MaxCount=1, **request))


def test_a_launch_does_not_find_a_new_template(patient: Clients) -> None:
    named = {"LaunchTemplateId": new_template(patient), "Version": "1"}
    assert launch_code(patient, LaunchTemplate=named) == "InvalidLaunchTemplateId.NotFound"


def test_a_launch_does_not_find_a_new_version(patient: Clients) -> None:
    template = new_template(patient)
    named = {"LaunchTemplateId": template, "Version": "1"}
    until(lambda: launch_code(patient, LaunchTemplate=named) == "")
    patient("ec2").create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"InstanceType": "m7i.xlarge"}
    )
    code = launch_code(patient, LaunchTemplate={**named, "Version": "2"})
    assert code == "InvalidLaunchTemplateId.VersionNotFound"


def test_a_launch_does_not_find_a_new_instance_profile(patient: Clients) -> None:
    patient("iam").create_instance_profile(InstanceProfileName="head")
    with pytest.raises(ClientError, match="Invalid IAM Instance Profile name"):
        launch_in_default_subnet(patient, IamInstanceProfile={"Name": "head"})


def test_a_new_instance_is_pending(patient: Clients) -> None:
    instance_id = launch_in_default_subnet(patient)
    until(lambda: found(patient, instance_id))
    assert state(patient, instance_id) == "pending"


def test_a_pending_instance_runs_later(quick: Clients) -> None:
    instance_id = launch_in_default_subnet(quick)
    until(lambda: found(quick, instance_id))
    assert until(lambda: state(quick, instance_id) == "running")


def change_state(aws: Clients) -> Callable[[], str]:
    """Queries the state of a new record of a new zone."""
    route53 = aws("route53")
    zone = route53.create_hosted_zone(Name="corral.internal", CallerReference="1")["HostedZone"]["Id"]
    record = {"Name": "a.corral.internal", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    made = route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)["ChangeInfo"]["Id"]
    return lambda: str(route53.get_change(Id=made)["ChangeInfo"]["Status"])


def test_a_change_of_a_record_is_pending(patient: Clients) -> None:
    assert change_state(patient)() == "PENDING"


def test_a_change_of_a_record_is_in_sync_later(quick: Clients) -> None:
    query = change_state(quick)
    assert until(lambda: query() == "INSYNC")


def nat_state(aws: Clients, gateway: str) -> str:
    (shown,) = aws("ec2").describe_nat_gateways(NatGatewayIds=[gateway])["NatGateways"]
    return str(shown["State"])


def new_nat(aws: Clients) -> str:
    """The id of a new private NAT gateway in the default VPC."""
    subnet = aws("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    made = aws("ec2").create_nat_gateway(SubnetId=subnet, ConnectivityType="private")
    return str(made["NatGateway"]["NatGatewayId"])


def test_a_new_nat_gateway_is_pending(patient: Clients) -> None:
    assert nat_state(patient, new_nat(patient)) == "pending"


def test_a_deleted_nat_gateway_is_deleting(patient: Clients) -> None:
    gateway = new_nat(patient)
    patient("ec2").delete_nat_gateway(NatGatewayId=gateway)
    assert nat_state(patient, gateway) == "deleting"


def test_a_nat_gateway_is_available_and_deleted_later(quick: Clients) -> None:
    gateway = new_nat(quick)
    until(lambda: nat_state(quick, gateway) == "available")
    quick("ec2").delete_nat_gateway(NatGatewayId=gateway)
    assert until(lambda: nat_state(quick, gateway) == "deleted")


def new_target(aws: Clients) -> Callable[[], str]:
    """Queries the state of a new mount target."""
    efs, subnet = aws("efs"), aws("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    system = efs.create_file_system(CreationToken="home")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    return lambda: str(efs.describe_mount_targets(MountTargetId=target)["MountTargets"][0]["LifeCycleState"])


def test_a_new_mount_target_is_creating(patient: Clients) -> None:
    assert new_target(patient)() == "creating"


def test_a_mount_target_is_available_later(quick: Clients) -> None:
    query = new_target(quick)
    assert until(lambda: query() == "available")


def new_lustre(aws: Clients, **request: Any) -> str:
    """The id of a new Lustre file system in the default VPC."""
    made = aws("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[aws("ec2").describe_subnets()["Subnets"][0]["SubnetId"]],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        **request,
    )
    return str(made["FileSystem"]["FileSystemId"])


def test_fsx_does_not_see_a_new_rule(patient: Clients) -> None:
    with pytest.raises(ClientError, match="do not permit Lustre LNET network traffic on port 988"):
        new_lustre(patient, SecurityGroupIds=[new_open_group(patient)])


def test_fsx_sees_a_rule_later(quick: Clients) -> None:
    group = new_open_group(quick)
    assert until(lambda: code_of(lambda: new_lustre(quick, SecurityGroupIds=[group])) == "")


def new_open_group(aws: Clients) -> str:
    """The id of a new security group of the default VPC that is open to itself."""
    ec2 = aws("ec2")
    group = str(ec2.create_security_group(GroupName="lustre", Description="lustre")["GroupId"])
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    for authorize in (ec2.authorize_security_group_ingress, ec2.authorize_security_group_egress):
        until(lambda authorize=authorize: code_of(partial(authorize, GroupId=group, IpPermissions=itself)) == "")
    return group


def lustre_state(aws: Clients, id: str) -> str:
    (shown,) = aws("fsx").describe_file_systems(FileSystemIds=[id])["FileSystems"]
    return str(shown["Lifecycle"])


def test_a_new_lustre_is_creating_and_then_deleting(patient: Clients) -> None:
    id = new_lustre(patient)
    before = lustre_state(patient, id)
    patient("fsx").delete_file_system(FileSystemId=id)
    assert (before, lustre_state(patient, id)) == ("CREATING", "DELETING")


def test_a_lustre_is_available_later(quick: Clients) -> None:
    id = new_lustre(quick)
    assert until(lambda: lustre_state(quick, id) == "AVAILABLE")


def test_a_link_imports_four_million_objects_in_more_than_an_hour() -> None:
    assert import_s(4_000_000, Switches(behaviour=Behaviour.AWS_LIKE)) == 4000


def tagged_volume(aws: Clients) -> str:
    """The id of a volume with a tag."""
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "corral:cluster", "Value": "dev"}]}]
    made = aws("ec2").create_volume(AvailabilityZone="us-east-1b", Size=1, TagSpecifications=tags)["VolumeId"]
    until(lambda: code_of(lambda: aws("ec2").describe_volumes(VolumeIds=[made])) == "")
    return str(made)


def listed(aws: Clients) -> list[str]:
    """The ids that the tagging API lists for the tag."""
    wanted = [{"Key": "corral:cluster", "Values": ["dev"]}]
    found = aws("resourcegroupstaggingapi").get_resources(TagFilters=wanted)["ResourceTagMappingList"]
    return [one["ResourceARN"].rpartition("/")[2] for one in found]


def test_a_deleted_volume_stays_listed_by_its_tags(patient: Clients) -> None:
    volume = tagged_volume(patient)
    patient("ec2").delete_volume(VolumeId=volume)
    assert listed(patient) == [volume]


def test_a_deleted_volume_is_listed_by_its_tags_for_some_time_only(quick: Clients) -> None:
    quick("ec2").delete_volume(VolumeId=tagged_volume(quick))
    assert until(lambda: not listed(quick))
