"""The root volume of a launch, compared with the snapshot of its image."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork, described, launch, node_template

import boxes
from corral.box import control
from corral.box.client import BoxStatus

DLAMI = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"


def template(aws: Clients, launch_network: LaunchNetwork, **ebs: Any) -> dict[str, Any]:
    """The template of a node that boots the deep learning image, with these settings of its root volume."""
    image = aws("ssm").get_parameter(Name=DLAMI)["Parameter"]["Value"]
    root = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeType": "gp3", **ebs}}
    return {**node_template(launch_network), "ImageId": image, "BlockDeviceMappings": [root]}


def root_gib(aws: Clients, instance: dict[str, Any]) -> int:
    (disk,) = described(aws, instance["InstanceId"])["BlockDeviceMappings"]
    (volume,) = aws("ec2").describe_volumes(VolumeIds=[disk["Ebs"]["VolumeId"]])["Volumes"]
    return int(volume["Size"])


def test_a_root_volume_below_the_snapshot_of_the_image_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    wanted = template(aws, launch_network, VolumeSize=74)
    (image,) = aws("ec2").describe_images(ImageIds=[wanted["ImageId"]])["Images"]
    snapshot = image["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"]
    with pytest.raises(ClientError) as refused:
        launch(aws, wanted)
    error = refused.value.response["Error"]
    assert (error["Code"], error["Message"]) == (
        "InvalidBlockDeviceMapping",
        f"Volume of size 74GB is smaller than snapshot '{snapshot}', expect size >= 75GB",
    )


def test_a_root_volume_as_large_as_the_snapshot_is_valid(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, template(aws, launch_network, VolumeSize=75))
    assert root_gib(aws, instance) == 75


def test_a_root_volume_without_a_size_is_as_large_as_the_snapshot(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, template(aws, launch_network))
    assert root_gib(aws, instance) == 75


def test_debians_image_has_its_own_name_for_the_root(aws: Clients, launch_network: LaunchNetwork) -> None:
    image = aws("ssm").get_parameter(Name="/aws/service/debian/release/13/latest/amd64")["Parameter"]["Value"]
    (instance,) = launch(aws, {**node_template(launch_network), "ImageId": image})
    assert instance["RootDeviceName"] == "/dev/xvda"


def test_the_image_of_the_box_takes_eight_gib(aws: Clients, launch_network: LaunchNetwork) -> None:
    disks = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, "VolumeType": "gp3"}}]
    (instance,) = launch(aws, {**node_template(launch_network), "BlockDeviceMappings": disks})
    assert root_gib(aws, instance) == 8


def test_a_parameter_names_the_newest_image_and_the_one_before_remains(box: BoxStatus, aws: Clients) -> None:
    first = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    control.inject_fault(box.dir, "new-image", snapshot_gib="9")
    newest = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    found = aws("ec2").describe_images(ImageIds=[first, newest])["Images"]
    sizes = {one["ImageId"]: one["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] for one in found}
    assert sizes == {first: 8, newest: 9}


def test_newer_images_are_not_the_accounts(box: BoxStatus) -> None:
    before = boxes.inventory(box.dir)
    control.inject_fault(box.dir, "new-image")
    assert boxes.inventory(box.dir) == before
