"""The end of an instance, and the rules for its disks and interfaces."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.core.utils import utcnow
from vpc_fixtures import Clients, LaunchNetwork, described, launch, node_template

from corral.box.daemon import moto_overrides
from corral.box.ec2.actions import BoxEC2
from corral.box.ec2.launch import plan_launch


def _code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def test_a_terminated_instance_takes_its_interfaces_and_disks_with_it(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    (instance,) = launch(aws, node_template(launch_network))
    ec2 = aws("ec2")
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    shown = described(aws, instance["InstanceId"])
    assert (
        shown["State"]["Name"],
        shown["NetworkInterfaces"],
        shown.get("PrivateIpAddress"),
        ec2.describe_network_interfaces()["NetworkInterfaces"],
        ec2.describe_volumes()["Volumes"],
    ) == ("terminated", [], None, [], [])


def test_an_instance_that_ends_frees_its_address(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, free = aws("ec2"), []
    for end in (False, True):
        (made,) = launch(aws, node_template(launch_network))
        if end:
            ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
        subnet = ec2.describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]
        free.append(subnet["AvailableIpAddressCount"])
    assert free == [250, 250]


def test_an_instance_that_ended_is_listed_for_an_hour() -> None:
    moto_overrides.install()
    backend = BoxEC2("us-east-1", "123456789012")
    image = next(iter(backend.amis))
    request = {"ImageId": image, "InstanceType": "m7i.large", "MinCount": 1, "MaxCount": 1}
    backend.launch(plan_launch(backend, request))
    backend.terminate_instances([backend.all_instances()[0].id])
    listed = []
    for minutes in (59, 61):
        backend.remove_ended(utcnow() + timedelta(minutes=minutes))
        listed.append(len(backend.all_instances()))
    assert listed == [1, 0]


def _on_own_interface(aws: Clients, launch_network: LaunchNetwork, eni_id: str) -> dict[str, Any]:
    started = aws("ec2").run_instances(
        ImageId=launch_network.image,
        InstanceType="m7i.2xlarge",
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": eni_id}],
    )
    return dict(started["Instances"][0])


def _interface(aws: Clients, launch_network: LaunchNetwork) -> str:
    made = aws("ec2").create_network_interface(SubnetId=launch_network.subnet, PrivateIpAddress="10.64.1.11")
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def test_an_interface_given_at_launch_outlives_the_instance_and_serves_the_next(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    eni, ec2 = _interface(aws, launch_network), aws("ec2")
    addresses, states = [], []
    for _ in range(2):
        instance = _on_own_interface(aws, launch_network, eni)
        addresses.append(instance["PrivateIpAddress"])
        ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        states.append(ec2.describe_network_interfaces(NetworkInterfaceIds=[eni])["NetworkInterfaces"][0]["Status"])
    assert (addresses, states) == (["10.64.1.11", "10.64.1.11"], ["available", "available"])


def test_an_interface_in_use_cannot_be_attached_to_another_instance(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    eni = _interface(aws, launch_network)
    _on_own_interface(aws, launch_network, eni)
    with pytest.raises(ClientError) as refused:
        _on_own_interface(aws, launch_network, eni)
    assert _code(refused) == "InvalidNetworkInterface.InUse"


def test_an_interface_of_an_aws_service_cannot_be_attached_to_an_instance(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    (eni,) = ec2.create_vpc_endpoint(
        VpcId=launch_network.vpc,
        ServiceName="com.amazonaws.us-east-1.ssm",
        VpcEndpointType="Interface",
        SubnetIds=[launch_network.subnet],
    )["VpcEndpoint"]["NetworkInterfaceIds"]
    instance = _on_own_interface(aws, launch_network, _interface(aws, launch_network))
    with pytest.raises(ClientError) as refused:
        ec2.attach_network_interface(NetworkInterfaceId=eni, InstanceId=instance["InstanceId"], DeviceIndex=1)
    assert _code(refused) == "InvalidNetworkInterface.InUse"


def test_the_primary_interface_cannot_be_detached(aws: Clients, launch_network: LaunchNetwork) -> None:
    instance = _on_own_interface(aws, launch_network, _interface(aws, launch_network))
    attachment = instance["NetworkInterfaces"][0]["Attachment"]["AttachmentId"]
    with pytest.raises(ClientError) as refused:
        aws("ec2").detach_network_interface(AttachmentId=attachment)
    assert _code(refused) == "OperationNotPermitted"


def test_an_attached_volume_survives_its_instance_and_can_be_attached_again(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    volume = ec2.create_volume(Size=20, AvailabilityZone="us-east-1b", VolumeType="gp3")["VolumeId"]
    states = []
    for _ in range(2):
        (instance,) = launch(aws, node_template(launch_network))
        ec2.attach_volume(VolumeId=volume, InstanceId=instance["InstanceId"], Device="/dev/sdf")
        states.append(ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]["State"])
        ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        states.append(ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]["State"])
    assert states == ["in-use", "available", "in-use", "available"]


def test_an_attached_volume_can_neither_be_deleted_nor_attached_twice(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    volume = ec2.create_volume(Size=20, AvailabilityZone="us-east-1b", VolumeType="gp3")["VolumeId"]
    (instance,) = launch(aws, node_template(launch_network))
    attachment = {"VolumeId": volume, "InstanceId": instance["InstanceId"]}
    ec2.attach_volume(**attachment, Device="/dev/sdf")
    with pytest.raises(ClientError) as deleted:
        ec2.delete_volume(VolumeId=volume)
    with pytest.raises(ClientError) as attached:
        ec2.attach_volume(**attachment, Device="/dev/sdg")
    assert (_code(deleted), _code(attached)) == ("VolumeInUse", "VolumeInUse")


def test_a_volume_of_another_zone_is_not_attached(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    volume = ec2.create_volume(Size=20, AvailabilityZone="us-east-1c", VolumeType="gp3")["VolumeId"]
    (instance,) = launch(aws, node_template(launch_network))
    with pytest.raises(ClientError) as refused:
        ec2.attach_volume(VolumeId=volume, InstanceId=instance["InstanceId"], Device="/dev/sdf")
    assert _code(refused) == "InvalidVolume.ZoneMismatch"


def _encrypted(launch_network: LaunchNetwork, key: str) -> dict[str, Any]:
    disk = {"VolumeSize": 50, "VolumeType": "gp3", "Encrypted": True, "KmsKeyId": key}
    return {**node_template(launch_network), "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": disk}]}


def test_a_disk_is_encrypted_with_the_key_of_the_template(aws: Clients, launch_network: LaunchNetwork) -> None:
    key = aws("kms").create_key()["KeyMetadata"]["Arn"]
    launch(aws, _encrypted(launch_network, key))
    volumes = aws("ec2").describe_volumes()["Volumes"]
    assert [(volume["Encrypted"], volume["KmsKeyId"]) for volume in volumes] == [(True, key)]


@pytest.mark.parametrize("key", ["alias/none", "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444"])
def test_an_instance_with_an_unusable_key_is_accepted_and_terminates(
    aws: Clients, launch_network: LaunchNetwork, key: str
) -> None:
    (accepted,) = launch(aws, _encrypted(launch_network, key))
    shown = described(aws, accepted["InstanceId"])
    assert (accepted["State"]["Name"], shown["State"]["Name"], shown["StateReason"]["Code"]) == (
        "pending",
        "terminated",
        "Client.InternalError",
    )


def test_a_protected_instance_is_not_terminated(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, {**node_template(launch_network), "DisableApiTermination": True})
    with pytest.raises(ClientError) as refused:
        aws("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert _code(refused) == "OperationNotPermitted"


def test_a_spot_instance_cannot_be_stopped(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, node_template(launch_network))
    with pytest.raises(ClientError) as refused:
        aws("ec2").stop_instances(InstanceIds=[instance["InstanceId"]])
    assert _code(refused) == "UnsupportedOperation"


def test_a_stopped_instance_cannot_be_rebooted(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    made = ec2.run_instances(
        ImageId=launch_network.image, InstanceType="m7i.large", SubnetId=launch_network.subnet, MinCount=1, MaxCount=1
    )
    named = [made["Instances"][0]["InstanceId"]]
    ec2.stop_instances(InstanceIds=named)
    with pytest.raises(ClientError) as refused:
        ec2.reboot_instances(InstanceIds=named)
    assert refused.value.response["Error"]["Code"] == "IncorrectInstanceState"


def test_a_stopped_instance_starts_again_with_its_address(aws: Clients, launch_network: LaunchNetwork) -> None:
    instance = _on_own_interface(aws, launch_network, _interface(aws, launch_network))["InstanceId"]
    ec2, seen = aws("ec2"), []
    for act in (ec2.stop_instances, ec2.start_instances):
        act(InstanceIds=[instance])
        shown = described(aws, instance)
        seen.append((shown["State"]["Name"], shown["PrivateIpAddress"]))
    assert seen == [("stopped", "10.64.1.11"), ("running", "10.64.1.11")]
