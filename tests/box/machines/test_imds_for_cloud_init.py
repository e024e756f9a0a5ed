"""What cloud-init reads from the metadata service.

Recorded from cloud-init's own code, DataSourceEc2 of 22.4.2, 25.1.4 and 26.2 against `MetadataService`: it read these
values, and made the network configuration in the comments of them. Interfaces that are EFA-only have no card in the
kernel, so it configures none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from corral.box.machines.imds import InstanceMetadata, MetadataInterface, MetadataService

PRIMARY = MetadataInterface(
    mac="02:00:00:00:00:09",
    interface_id="eni-1",
    subnet_id="subnet-1",
    subnet_network=IPv4Network("10.64.1.0/24"),
    groups={"sg-1": "nodes", "sg-2": "ssh"},
    card=0,
    device=0,
    address="10.64.1.11",
)
EFA_ONLY = replace(
    PRIMARY, mac="02:00:00:00:00:07", interface_id="eni-2", groups={"sg-1": "nodes"}, device=1, address=None
)
SECOND_CARD = replace(
    PRIMARY,
    mac="02:00:00:00:00:05",  # before that of the primary interface
    interface_id="eni-3",
    subnet_id="subnet-2",
    subnet_network=IPv4Network("10.64.2.0/24"),
    groups={"sg-1": "nodes"},
    card=1,
    device=1,
    address="10.64.2.12",
)
P5 = InstanceMetadata(
    instance_id="i-1",
    instance_type="p5.48xlarge",
    image_id="ami-1",
    reservation_id="r-1",
    account="123456789012",
    region="us-east-2",
    zone_name="us-east-2a",
    zone_id="use2-az1",
    vpc_id="vpc-1",
    vpc_networks=(IPv4Network("10.64.0.0/16"), IPv4Network("10.65.0.0/16")),
    address="10.64.1.11",
    host_name="ip-10-64-1-11.us-east-2.compute.internal",
    launch_index=0,
    lifecycle="spot",
    virtualization="hvm",
    root_device="/dev/sda1",
    interfaces=(PRIMARY, EFA_ONLY, SECOND_CARD),
    tags={"Name": "train-1"},
    user_data=b"#cloud-config\n",
)
OF_VPC = {
    "owner-id": "123456789012",
    "vpc-id": "vpc-1",
    "vpc-ipv4-cidr-block": "10.64.0.0/16",
    "vpc-ipv4-cidr-blocks": ["10.64.0.0/16", "10.65.0.0/16"],
}
INTERFACES = {
    # DHCP with metric 100, in every version. Without its network card, 25.1.4 and 26.2 would sort it behind the second.
    "02:00:00:00:00:09": {
        **OF_VPC,
        "device-number": "0",
        "interface-id": "eni-1",
        "local-hostname": "ip-10-64-1-11.us-east-2.compute.internal",
        "local-ipv4s": "10.64.1.11",
        "mac": "02:00:00:00:00:09",
        "network-card": "0",
        "security-group-ids": ["sg-1", "sg-2"],
        "security-groups": ["nodes", "ssh"],
        "subnet-id": "subnet-1",
        "subnet-ipv4-cidr-block": "10.64.1.0/24",
    },
    "02:00:00:00:00:07": {
        **OF_VPC,
        "device-number": "1",
        "interface-id": "eni-2",
        "mac": "02:00:00:00:00:07",
        "network-card": "0",
        "security-group-ids": "sg-1",
        "security-groups": "nodes",
        "subnet-id": "subnet-1",
        "subnet-ipv4-cidr-block": "10.64.1.0/24",
    },
    # DHCP with metric 200; with netplan, 25.1.4 and 26.2 also route packets from 10.64.2.12 by table 101, which has
    # 10.64.2.0/24 and a default route by the router of its lease.
    "02:00:00:00:00:05": {
        **OF_VPC,
        "device-number": "1",
        "interface-id": "eni-3",
        "local-hostname": "ip-10-64-2-12.us-east-2.compute.internal",
        "local-ipv4s": "10.64.2.12",
        "mac": "02:00:00:00:00:05",
        "network-card": "1",
        "security-group-ids": "sg-1",
        "security-groups": "nodes",
        "subnet-id": "subnet-2",
        "subnet-ipv4-cidr-block": "10.64.2.0/24",
    },
}
METADATA = {
    "ami-id": "ami-1",
    "ami-launch-index": "0",
    "ami-manifest-path": "(unknown)",
    "block-device-mapping": {"ami": "/dev/sda1", "root": "/dev/sda1"},
    "hostname": "ip-10-64-1-11.us-east-2.compute.internal",
    "instance-action": "none",
    "instance-id": "i-1",
    "instance-life-cycle": "spot",
    "instance-type": "p5.48xlarge",
    "local-hostname": "ip-10-64-1-11.us-east-2.compute.internal",
    "local-ipv4": "10.64.1.11",
    "mac": "02:00:00:00:00:09",
    "network": {"interfaces": {"macs": INTERFACES}},
    "placement": {"availability-zone": "us-east-2a", "availability-zone-id": "use2-az1", "region": "us-east-2"},
    "profile": "default-hvm",
    "reservation-id": "r-1",
    "security-groups": ["nodes", "ssh"],
    "services": {"domain": "amazonaws.com", "partition": "aws"},
    "tags": {"instance": {"Name": "train-1"}},
}


def read(service: MetadataService, token: str, path: str) -> Any:
    """The documents below a path that ends in a slash, by name; those with several lines as lists.

    As cloudinit/sources/helpers/ec2.py reads them.
    """
    status, _, body = service.answer("x", "GET", path, {"x-aws-ec2-metadata-token": token})
    assert status == 200, path
    lines = body.decode().split("\n")
    if path.endswith("/"):
        return {name.rstrip("/"): read(service, token, f"{path}{name}") for name in lines}
    return lines if len(lines) > 1 else lines[0]


def test_cloud_init_reads_all_documents_of_a_dated_version() -> None:
    service = MetadataService(find={"x": P5}.get)
    headers: Mapping[str, str] = {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}
    token = service.answer("x", "PUT", "/latest/api/token", headers)[2].decode()
    assert read(service, token, "/2021-03-23/meta-data/") == METADATA
