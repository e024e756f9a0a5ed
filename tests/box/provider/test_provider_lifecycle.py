"""Create, read, update and delete objects in a box, without an engine."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from corral.box import client
from corral.box.client import BoxStatus
from corral.box.provider import lifecycle
from corral.box.provider.aws_clients import ClientCache, RegionClients
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.lifecycle import InitFailed
from corral.box.provider.protobuf_values import UNKNOWN
from corral.box.provider.provider_errors import BoxUnreachable, NotFound, RequestRefused
from corral.box.provider.resource import ResourceUpdate
from corral.box.provider.tables import RESOURCES
from half_answers import half_answers

SETTINGS = ProviderSettings(region="us-east-1", default_tags={"env": "dev"})
VPC = RESOURCES["aws:ec2/vpc:Vpc"]
SUBNET = RESOURCES["aws:ec2/subnet:Subnet"]
INSTANCE = RESOURCES["aws:ec2/instance:Instance"]
OBJECT = RESOURCES["aws:s3/bucketObjectv2:BucketObjectv2"]
TEMPLATE = RESOURCES["aws:ec2/launchTemplate:LaunchTemplate"]
LUSTRE = RESOURCES["aws:fsx/lustreFileSystem:LustreFileSystem"]
ZONE = RESOURCES["aws:route53/zone:Zone"]
ATTACHMENT = RESOURCES["aws:ec2/volumeAttachment:VolumeAttachment"]


def make(cloud: RegionClients, token: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
    """The id and state of a new object."""
    resource = RESOURCES[token]
    if resource.retag:
        inputs = {"tagsAll": {**SETTINGS.default_tags, **inputs.get("tags", {})}, **inputs}
    return lifecycle.create(resource, cloud, SETTINGS, inputs)


def make_instance(cloud: RegionClients) -> tuple[str, dict[str, Any]]:
    vpc, _ = make(cloud, VPC.token, cidrBlock="10.0.0.0/16")
    subnet, _ = make(cloud, SUBNET.token, vpcId=vpc, cidrBlock="10.0.0.0/24", availabilityZoneId="use1-az1")
    image = cloud.ssm.get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    return make(cloud, INSTANCE.token, ami=image, instanceType="m7i.2xlarge", subnetId=subnet, tags={"Name": "head"})


def test_a_new_object_has_the_default_tags(cloud: RegionClients) -> None:
    id, state = make(cloud, VPC.token, cidrBlock="10.0.0.0/16", tags={"Name": "main"})
    result = {tag["Key"]: tag["Value"] for tag in cloud.ec2.describe_vpcs(VpcIds=[id])["Vpcs"][0]["Tags"]}
    assert (result, state["tags"]) == ({"Name": "main", "env": "dev"}, {"Name": "main"})


def test_reading_what_does_not_exist_raises_not_found(cloud: RegionClients) -> None:
    with pytest.raises(NotFound):
        lifecycle.read(VPC, cloud, SETTINGS, "vpc-0123456789abcdef0", {}, {})


def test_deleting_what_does_not_exist_succeeds(cloud: RegionClients) -> None:
    id, state = make(cloud, VPC.token, cidrBlock="10.0.0.0/16")
    lifecycle.delete(VPC, cloud, id, state)
    lifecycle.delete(VPC, cloud, id, state)
    assert [vpc for vpc in cloud.ec2.describe_vpcs()["Vpcs"] if vpc["VpcId"] == id] == []


def test_a_terminated_instance_is_not_found(cloud: RegionClients) -> None:
    id, state = make_instance(cloud)
    cloud.ec2.terminate_instances(InstanceIds=[id])
    with pytest.raises(NotFound):
        lifecycle.read(INSTANCE, cloud, SETTINGS, id, state, {})


def test_a_stopped_instance_is_found(cloud: RegionClients) -> None:
    id, state = make_instance(cloud)
    cloud.ec2.stop_instances(InstanceIds=[id])
    cloud.until(lambda: _state_name(cloud, id) == "stopped" or None, "stopped")
    found, _ = lifecycle.read(INSTANCE, cloud, SETTINGS, id, state, {})
    assert found["instanceState"] == "stopped"


def _state_name(cloud: RegionClients, id: str) -> str:
    return str(_described(cloud, id)["State"]["Name"])


def _described(cloud: RegionClients, id: str) -> Any:
    return cloud.ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]


def test_a_deleted_instance_is_terminated_when_the_deletion_returns(cloud: RegionClients) -> None:
    id, state = make_instance(cloud)
    lifecycle.delete(INSTANCE, cloud, id, state)
    assert _state_name(cloud, id) == "terminated"


def recorded(cloud: RegionClients) -> list[str]:
    """The actions on EC2 from now on, without those that only look."""
    actions: list[str] = []

    def record(model: Any, **_: Any) -> None:
        if not model.name.startswith("Describe"):
            actions.append(model.name)

    cloud.ec2.meta.events.register("before-call.ec2", record)
    return actions


def attach(cloud: RegionClients, instance: str, **options: Any) -> tuple[str, dict[str, Any]]:
    """A new volume on the instance: the attachment's id and state."""
    zone = _described(cloud, instance)["Placement"]["AvailabilityZone"]
    volume, _ = make(cloud, "aws:ebs/volume:Volume", availabilityZone=zone, size=20, type="gp3")
    return make(cloud, ATTACHMENT.token, deviceName="/dev/sdf", instanceId=instance, volumeId=volume, **options)


def test_a_volume_is_detached_from_a_stopped_machine_on_request(cloud: RegionClients) -> None:
    instance, _ = make_instance(cloud)
    id, state = attach(cloud, instance, stopInstanceBeforeDetaching=True)
    actions = recorded(cloud)
    lifecycle.delete(ATTACHMENT, cloud, id, state)
    assert (actions, _state_name(cloud, instance)) == (["StopInstances", "DetachVolume"], "stopped")


def test_a_volume_is_detached_from_a_running_machine_otherwise(cloud: RegionClients) -> None:
    instance, _ = make_instance(cloud)
    id, state = attach(cloud, instance)
    actions = recorded(cloud)
    lifecycle.delete(ATTACHMENT, cloud, id, state)
    assert (actions, _state_name(cloud, instance)) == (["DetachVolume"], "running")


def test_a_volume_of_a_terminated_instance_is_detached_without_a_call(cloud: RegionClients) -> None:
    instance, _ = make_instance(cloud)
    id, state = attach(cloud, instance, stopInstanceBeforeDetaching=True)
    cloud.ec2.terminate_instances(InstanceIds=[instance])
    actions = recorded(cloud)
    lifecycle.delete(ATTACHMENT, cloud, id, state)
    assert (actions, _state_name(cloud, instance)) == ([], "terminated")


def test_an_instance_that_terminates_at_shutdown_is_stopped_by_a_call(cloud: RegionClients) -> None:
    instance, _ = make_instance(cloud)
    behaviour = {"Value": "terminate"}
    cloud.ec2.modify_instance_attribute(InstanceId=instance, InstanceInitiatedShutdownBehavior=behaviour)
    id, state = attach(cloud, instance, stopInstanceBeforeDetaching=True)
    lifecycle.delete(ATTACHMENT, cloud, id, state)
    assert _state_name(cloud, instance) == "stopped"


def test_the_volume_of_a_replaced_instance_moves_to_the_new_one(cloud: RegionClients) -> None:
    old, machine = make_instance(cloud)
    id, state = attach(cloud, old, stopInstanceBeforeDetaching=True)
    actions = recorded(cloud)
    lifecycle.delete(ATTACHMENT, cloud, id, state)
    lifecycle.delete(INSTANCE, cloud, old, machine)
    new, _ = make(cloud, INSTANCE.token, **{name: machine[name] for name in ("ami", "instanceType", "subnetId")})
    make(cloud, ATTACHMENT.token, **{**state, "instanceId": new})
    attached = cloud.ec2.describe_volumes(VolumeIds=[state["volumeId"]])["Volumes"][0]["Attachments"]
    assert (actions, [one["InstanceId"] for one in attached]) == (
        ["StopInstances", "DetachVolume", "TerminateInstances", "RunInstances", "AttachVolume"],
        [new],
    )


def test_a_refresh_shows_changed_tags(cloud: RegionClients) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "main"}, "tagsAll": {"Name": "main", "env": "dev"}}
    id, state = make(cloud, VPC.token, **inputs)
    cloud.ec2.create_tags(Resources=[id], Tags=[{"Key": "Name", "Value": "mine"}])
    _, found = lifecycle.read(VPC, cloud, SETTINGS, id, state, inputs)
    assert found == {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "mine"}, "tagsAll": {"Name": "mine", "env": "dev"}}


def test_what_is_read_for_an_import_needs_no_change(cloud: RegionClients) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "main"}, "tagsAll": {"Name": "main", "env": "dev"}}
    id, _ = make(cloud, VPC.token, **inputs)
    state, found = lifecycle.read(VPC, cloud, SETTINGS, id, {}, {})
    assert (found, lifecycle.diff(VPC, SETTINGS, state, inputs)) == (inputs, [])


def test_the_deletion_of_an_emptied_zone_queries_its_dnssec(cloud: RegionClients) -> None:
    vpc, _ = make(cloud, VPC.token, cidrBlock="10.0.0.0/16")
    zone, state = make(cloud, ZONE.token, name="dev.corral.internal", vpcs=[{"vpcId": vpc}], forceDestroy=True)
    calls: list[str] = []
    cloud.route53.meta.events.register("before-call.route-53", lambda model, **_: calls.append(model.name))
    lifecycle.delete(ZONE, cloud, zone, state)
    assert calls == ["ListResourceRecordSets", "GetDNSSEC", "DeleteHostedZone"]


def test_an_update_keeps_the_id(cloud: RegionClients) -> None:
    id, old = make(cloud, VPC.token, cidrBlock="10.0.0.0/16", enableDnsHostnames=False)
    new = {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, "tagsAll": {"env": "dev"}}
    change = ResourceUpdate(id=id, old=old, new=new, names=frozenset({"enableDnsHostnames"}))
    assert lifecycle.update(VPC, cloud, SETTINGS, change)["enableDnsHostnames"] is True


def test_another_region_of_the_provider_replaces_the_object() -> None:
    old = {"cidrBlock": "10.0.0.0/16", "region": "us-east-1"}
    found = lifecycle.diff(VPC, ProviderSettings(region="us-west-2"), old, {"cidrBlock": "10.0.0.0/16"})
    assert [(one.path, one.replaces) for one in found] == [("region", True)]


def test_an_object_is_created_in_its_own_region(cloud: RegionClients, box: BoxStatus) -> None:
    west = RegionClients(ClientCache(cloud.url, client.environment(box.dir)), "us-west-2")
    id, state = make(west, VPC.token, cidrBlock="10.0.0.0/16", region="us-west-2")
    assert (state["region"], len(west.ec2.describe_vpcs(VpcIds=[id])["Vpcs"])) == ("us-west-2", 1)


def test_ignored_paths_are_no_difference() -> None:
    old = {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "a", "by": "hand"}, "region": "us-east-1"}
    new = {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "a"}}
    assert lifecycle.diff(VPC, SETTINGS, old, new, ["tags"]) == []


def test_a_lustre_file_system_grows_by_update_and_shrinks_by_replacement() -> None:
    old = {"subnetIds": "subnet-1", "storageCapacity": 2400, "deploymentType": "SCRATCH_2", "region": "us-east-1"}
    replaces = {
        size: [one.replaces for one in lifecycle.diff(LUSTRE, SETTINGS, old, {**old, "storageCapacity": size})]
        for size in (1200, 2400, 4800)
    }
    assert replaces == {1200: [True], 2400: [], 4800: [False]}


def test_a_preview_of_a_creation_knows_the_inputs_only() -> None:
    state = lifecycle.preview(TEMPLATE, {"name": "a", "imageId": "ami-1"})
    assert state == {
        "name": "a",
        "imageId": "ami-1",
        "region": UNKNOWN,
        "arn": UNKNOWN,
        "latestVersion": UNKNOWN,
        "defaultVersion": UNKNOWN,
        "metadataOptions": UNKNOWN,
    }


def test_a_preview_of_an_update_keeps_what_does_not_change() -> None:
    old = {"name": "a", "imageId": "ami-1", "arn": "arn:lt", "latestVersion": 1, "defaultVersion": 1, "region": "r"}
    state = lifecycle.preview(TEMPLATE, {"name": "a", "imageId": "ami-2"}, old, frozenset({"imageId"}))
    assert (state["imageId"], state["arn"], state["region"]) == ("ami-2", "arn:lt", "r")
    assert (state["latestVersion"], state["defaultVersion"]) == (UNKNOWN, UNKNOWN)


def test_a_preview_of_a_tag_change_keeps_the_version() -> None:
    old = {"name": "a", "arn": "arn:lt", "latestVersion": 1, "defaultVersion": 1, "region": "r"}
    state = lifecycle.preview(TEMPLATE, {"name": "a", "tags": {"b": "c"}}, old, frozenset({"tags", "tagsAll"}))
    assert (state["latestVersion"], state["defaultVersion"]) == (1, 1)


def test_new_content_makes_the_etag_unknown() -> None:
    old = {"bucket": "b", "key": "k", "content": "x", "etag": "e", "arn": "a"}
    state = lifecycle.preview(OBJECT, {"bucket": "b", "key": "k", "content": "y"}, old, frozenset({"content"}))
    assert (state["etag"], state["arn"]) == (UNKNOWN, "a")


def test_an_error_has_the_message_of_aws(cloud: RegionClients) -> None:
    with pytest.raises(RequestRefused) as refused:
        make(cloud, SUBNET.token, vpcId="vpc-0123456789abcdef0", cidrBlock="10.0.0.0/24")
    assert str(refused.value).startswith("CreateSubnet InvalidVpcID.NotFound: ")


def test_a_failure_after_the_creation_keeps_the_object_in_the_state(cloud: RegionClients) -> None:
    with pytest.raises(InitFailed) as half:
        make(cloud, "aws:ec2/internetGateway:InternetGateway", vpcId="vpc-0123456789abcdef0")
    assert (half.value.id[:4], half.value.state["region"]) == ("igw-", "us-east-1")


def test_a_stopped_box_is_an_error_within_seconds() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(BoxUnreachable) as refused:
        lifecycle.read(VPC, RegionClients(ClientCache(url), "us-east-1"), SETTINGS, "vpc-1", {}, {})
    assert str(refused.value) == f"the box at {url} does not answer - start it with `corral box start`"
    assert time.monotonic() - began < 10


def test_a_box_killed_while_it_answers_is_unreachable() -> None:
    with half_answers() as url, pytest.raises(BoxUnreachable) as refused:
        make(RegionClients(ClientCache(url), "us-east-1"), VPC.token, cidrBlock="10.0.0.0/16")
    assert str(refused.value).startswith(f"the box at {url} does not answer to the end: Unable to parse response")


@pytest.mark.parametrize(
    ("name", "expected"), [("train", True), ("train-0123456", False), ("Train-0123456", False), ("other", True)]
)
def test_a_replacement_with_the_same_name_is_created_after_the_deletion(name: str, expected: bool) -> None:
    assert lifecycle.deletes_before_replace(TEMPLATE, "train", {"name": name}, {"name": name}) is expected


def test_a_removed_metadata_option_returns_to_its_default(cloud: RegionClients) -> None:
    id, state = make_instance(cloud)
    given = {"metadataOptions": {"httpTokens": "required", "httpEndpoint": "disabled"}}
    changed = _modify(cloud, id, state, given)
    back = _modify(cloud, id, changed, {"metadataOptions": {"httpTokens": "required"}})
    found = [one["metadataOptions"]["httpEndpoint"] for one in (changed, back)]
    assert found == ["disabled", "enabled"]


def _modify(cloud: RegionClients, id: str, state: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    change = ResourceUpdate(id=id, old=state, new={**state, **wanted}, names=frozenset(wanted))
    return lifecycle.update(INSTANCE, cloud, SETTINGS, change)
