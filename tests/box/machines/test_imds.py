"""The metadata service without a server: tokens, callers and documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import IPv4Network

import pytest

from corral.box.machines.imds import (
    InstanceMetadata,
    MetadataInterface,
    MetadataResponse,
    MetadataService,
    RoleCredentials,
    metadata_documents,
)

LIFETIME, TOKEN = "x-aws-ec2-metadata-token-ttl-seconds", "x-aws-ec2-metadata-token"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PRIMARY = MetadataInterface(
    mac="02:00:00:00:00:01",
    interface_id="eni-1",
    subnet_id="subnet-1",
    subnet_network=IPv4Network("10.64.1.0/24"),
    groups={"sg-1": "nodes", "sg-2": "ssh"},
    card=0,
    device=0,
    address="10.64.1.11",
)
EFA_ONLY = tuple(
    MetadataInterface(
        mac=f"02:00:00:00:01:{number:02x}",
        interface_id=f"eni-{number}",
        subnet_id="subnet-1",
        subnet_network=IPv4Network("10.64.1.0/24"),
        groups={"sg-1": "nodes"},
        card=number,
        device=1,
        address=None,
    )
    for number in range(32)
)
PLAIN = InstanceMetadata(
    instance_id="i-1",
    instance_type="m7i.2xlarge",
    image_id="ami-1",
    reservation_id="r-1",
    account="123456789012",
    region="us-east-1",
    zone_name="us-east-1a",
    zone_id="use1-az1",
    vpc_id="vpc-1",
    vpc_networks=(IPv4Network("10.64.0.0/16"), IPv4Network("10.65.0.0/16")),
    address="10.64.1.11",
    host_name="ip-10-64-1-11.ec2.internal",
    launch_index=0,
    lifecycle="on-demand",
    virtualization="hvm",
    root_device="/dev/sda1",
    interfaces=(PRIMARY,),
    tags=None,
    user_data=None,
)
P5 = replace(
    PLAIN, instance_id="i-5", instance_type="p5.48xlarge", address="10.64.1.5", interfaces=(PRIMARY, *EFA_ONLY)
)
FULL = replace(
    PLAIN,
    launch_index=3,
    lifecycle="spot",
    tags={"Name": "train-1", "corral:nodes": "train-[1-2]"},
    user_data=b"#!/bin/sh\n\x00",
    group_name="train-az1",
    credentials=RoleCredentials(
        role="compute", access_key="ASIA1", secret_key="secret", session_token="token", expires=NOON
    ),
    interruption=NOON,
    rebalance=NOON,
)
OF_ALL = {
    "ami-id": "ami-1",
    "ami-launch-index": "0",
    "ami-manifest-path": "(unknown)",
    "block-device-mapping/ami": "/dev/sda1",
    "block-device-mapping/root": "/dev/sda1",
    "hostname": "ip-10-64-1-11.ec2.internal",
    "instance-action": "none",
    "instance-id": "i-1",
    "instance-life-cycle": "on-demand",
    "instance-type": "m7i.2xlarge",
    "local-hostname": "ip-10-64-1-11.ec2.internal",
    "local-ipv4": "10.64.1.11",
    "mac": "02:00:00:00:00:01",
    "network/interfaces/macs/02:00:00:00:00:01/device-number": "0",
    "network/interfaces/macs/02:00:00:00:00:01/interface-id": "eni-1",
    "network/interfaces/macs/02:00:00:00:00:01/local-hostname": "ip-10-64-1-11.ec2.internal",
    "network/interfaces/macs/02:00:00:00:00:01/local-ipv4s": "10.64.1.11",
    "network/interfaces/macs/02:00:00:00:00:01/mac": "02:00:00:00:00:01",
    "network/interfaces/macs/02:00:00:00:00:01/network-card": "0",
    "network/interfaces/macs/02:00:00:00:00:01/owner-id": "123456789012",
    "network/interfaces/macs/02:00:00:00:00:01/security-group-ids": "sg-1\nsg-2",
    "network/interfaces/macs/02:00:00:00:00:01/security-groups": "nodes\nssh",
    "network/interfaces/macs/02:00:00:00:00:01/subnet-id": "subnet-1",
    "network/interfaces/macs/02:00:00:00:00:01/subnet-ipv4-cidr-block": "10.64.1.0/24",
    "network/interfaces/macs/02:00:00:00:00:01/vpc-id": "vpc-1",
    "network/interfaces/macs/02:00:00:00:00:01/vpc-ipv4-cidr-block": "10.64.0.0/16",
    "network/interfaces/macs/02:00:00:00:00:01/vpc-ipv4-cidr-blocks": "10.64.0.0/16\n10.65.0.0/16",
    "placement/availability-zone": "us-east-1a",
    "placement/availability-zone-id": "use1-az1",
    "placement/region": "us-east-1",
    "profile": "default-hvm",
    "reservation-id": "r-1",
    "security-groups": "nodes\nssh",
    "services/domain": "amazonaws.com",
    "services/partition": "aws",
}
# Source: flaws.cloud's instance in 2024, as its write-ups show it.
VERSIONS = [
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01"),
    *("2009-04-04", "2011-01-01", "2011-05-01", "2012-01-12", "2014-02-25", "2014-11-05", "2015-10-20", "2016-04-19"),
    *("2016-06-30", "2016-09-02", "2018-03-28", "2018-08-17", "2018-09-24", "2019-10-01", "2020-10-27", "2021-01-03"),
    *("2021-03-23", "2021-07-15", "2022-07-09", "2022-09-24", "2024-04-11", "latest"),
]
OF_SOME = {
    "ami-launch-index": "3",
    "events/recommendations/rebalance": '{"noticeTime": "2026-11-21T12:00:00Z"}',
    "instance-life-cycle": "spot",
    "placement/group-name": "train-az1",
    "spot/instance-action": '{"action": "terminate", "time": "2026-11-21T12:00:00Z"}',
    "spot/termination-time": "2026-11-21T12:00:00Z",
    "tags/instance/Name": "train-1",
    "tags/instance/corral:nodes": "train-[1-2]",
}


@dataclass(slots=True)
class Clock:
    """A clock that a test advances."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def service(*known: InstanceMetadata, clock: Clock | None = None) -> MetadataService:
    held = {one.address: one for one in known}
    return MetadataService(find=held.get, clock=clock or Clock())


def token_of(parameters: MetadataService, caller: InstanceMetadata, seconds: str = "60") -> str:
    return parameters.answer(caller.address, "PUT", "/latest/api/token", {LIFETIME: seconds})[2].decode()


def get(one: InstanceMetadata, path: str) -> MetadataResponse:
    parameters = service(one)
    return parameters.answer(one.address, "GET", f"/{path}", {TOKEN: token_of(parameters, one)})


def listed(one: InstanceMetadata, path: str) -> list[str]:
    return get(one, path)[2].decode().split("\n")


def meta_data(one: InstanceMetadata) -> Mapping[str, str]:
    """All documents below meta-data, without that beginning."""
    tree = "latest/meta-data/"
    return {
        path.removeprefix(tree): text.decode()
        for path, text in metadata_documents(one).items()
        if path.startswith(tree)
    }


def test_a_request_without_a_token_is_refused() -> None:
    assert service(PLAIN).answer(PLAIN.address, "GET", "/latest/meta-data/instance-id", {})[0] == 401


def test_the_token_of_another_instance_is_refused() -> None:
    parameters = service(PLAIN, P5)
    headers = {TOKEN: token_of(parameters, P5)}
    assert parameters.answer(PLAIN.address, "GET", "/latest/meta-data/instance-id", headers)[0] == 401


@pytest.mark.parametrize(("seconds", "status"), [(59.9, 200), (60.0, 401)])
def test_a_token_is_valid_for_its_lifetime(seconds: float, status: int) -> None:
    clock = Clock()
    parameters = service(PLAIN, clock=clock)
    headers = {TOKEN: token_of(parameters, PLAIN)}
    clock.now += seconds
    assert parameters.answer(PLAIN.address, "GET", "/latest/meta-data/instance-id", headers)[0] == status


def test_an_older_token_stays_valid_with_a_new_one() -> None:
    parameters = service(PLAIN)
    headers = {TOKEN: token_of(parameters, PLAIN)}
    token_of(parameters, PLAIN)
    assert parameters.answer(PLAIN.address, "GET", "/latest/meta-data/instance-id", headers)[0] == 200


@pytest.mark.parametrize("headers", [{}, *({LIFETIME: ttl} for ttl in ("0", "21601", "-1", "x", "", "1.5"))])
def test_a_token_with_an_invalid_lifetime_is_refused(headers: Mapping[str, str]) -> None:
    assert service(PLAIN).answer(PLAIN.address, "PUT", "/latest/api/token", headers)[0] == 400


def test_a_token_comes_with_its_lifetime() -> None:
    answer = service(PLAIN).answer(PLAIN.address, "PUT", "/latest/api/token", {LIFETIME: "21600"})
    assert (answer[0], answer[1]["X-aws-ec2-metadata-token-ttl-seconds"]) == (200, "21600")


def test_a_proxy_gets_no_token() -> None:
    headers = {LIFETIME: "60", "x-forwarded-for": "10.0.0.1"}
    assert service(PLAIN).answer(PLAIN.address, "PUT", "/latest/api/token", headers)[0] == 403


def test_an_unknown_caller_finds_nothing() -> None:
    assert service(PLAIN).answer("10.64.1.99", "PUT", "/latest/api/token", {LIFETIME: "60"})[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/latest/meta-data/instance-id", 200),
        ("POST", "/latest/meta-data/instance-id", 405),
        ("DELETE", "/latest/meta-data/instance-id", 405),
        ("PUT", "/latest/meta-data/instance-id", 405),
        ("GET", "/latest/api/token", 404),
        ("GET", "/latest/meta-data/instance", 404),
    ],
)
def test_a_method_fits_its_path(method: str, path: str, status: int) -> None:
    imds = service(PLAIN)
    assert imds.answer(PLAIN.address, method, path, {TOKEN: token_of(imds, PLAIN), LIFETIME: "60"})[0] == status


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", VERSIONS),
        ("/", VERSIONS),
        ("latest", ["dynamic", "meta-data", "user-data"]),
        ("latest/", ["dynamic", "meta-data", "user-data"]),
        ("2021-03-23", ["dynamic", "meta-data", "user-data"]),
        ("2021-03-23/meta-data/iam/", ["security-credentials/"]),
        ("latest/dynamic/", ["instance-identity/"]),
        ("latest/meta-data/placement", ["availability-zone", "availability-zone-id", "group-name", "region"]),
        ("latest/meta-data/iam/", ["security-credentials/"]),
        ("latest/meta-data/iam/security-credentials/", ["compute"]),
        ("latest/meta-data/network/interfaces/macs/", ["02:00:00:00:00:01/"]),
        ("latest/meta-data/tags/instance", ["Name", "corral:nodes"]),
    ],
)
def test_a_list_marks_names_with_entries_below(path: str, names: list[str]) -> None:
    assert listed(FULL, path) == names


def test_the_list_of_metadata_has_one_name_per_line() -> None:
    assert listed(PLAIN, "latest/meta-data/") == [
        "ami-id",
        "ami-launch-index",
        "ami-manifest-path",
        "block-device-mapping/",
        "hostname",
        "instance-action",
        "instance-id",
        "instance-life-cycle",
        "instance-type",
        "local-hostname",
        "local-ipv4",
        "mac",
        "network/",
        "placement/",
        "profile",
        "reservation-id",
        "security-groups",
        "services/",
    ]


def test_an_instance_reads_its_own_metadata() -> None:
    assert meta_data(PLAIN) == OF_ALL


def test_an_instance_reads_its_optional_metadata() -> None:
    assert {path: text for path, text in meta_data(FULL).items() if OF_ALL.get(path) != text} == {
        **OF_SOME,
        "iam/security-credentials/compute": meta_data(FULL)["iam/security-credentials/compute"],
    }


def test_the_credentials_of_a_role_have_the_fields_that_clients_read() -> None:
    assert json.loads(get(FULL, "latest/meta-data/iam/security-credentials/compute")[2]) == {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": "ASIA1",
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": "2026-11-21T12:00:00Z",
    }


def test_the_identity_document_has_the_zone_of_the_instance() -> None:
    assert json.loads(get(PLAIN, "latest/dynamic/instance-identity/document")[2]) == {
        "accountId": "123456789012",
        "architecture": "x86_64",
        "availabilityZone": "us-east-1a",
        "imageId": "ami-1",
        "instanceId": "i-1",
        "instanceType": "m7i.2xlarge",
        "privateIp": "10.64.1.11",
        "region": "us-east-1",
    }


def test_user_data_is_read_unchanged() -> None:
    assert get(FULL, "latest/user-data") == (200, {"Content-Type": "text/plain"}, b"#!/bin/sh\n\x00")


@pytest.mark.parametrize(
    "path",
    [
        "user-data",
        "meta-data/spot/instance-action",
        "meta-data/spot/termination-time",
        "meta-data/events/recommendations/rebalance",
        "meta-data/tags/instance/Name",
        "meta-data/iam/security-credentials/",
        "meta-data/placement/group-name",
    ],
)
def test_a_missing_document_is_not_found(path: str) -> None:
    assert get(PLAIN, f"latest/{path}")[0] == 404


@pytest.mark.parametrize("version", ["2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23"])
@pytest.mark.parametrize("path", ["meta-data/instance-id", "user-data", "dynamic/instance-identity/document"])
def test_a_dated_version_has_the_latest_documents(version: str, path: str) -> None:
    assert get(FULL, f"{version}/{path}") == get(FULL, f"latest/{path}")


@pytest.mark.parametrize("path", ["2021-03-24/meta-data/instance-id", "2021-03-24", "late", "meta-data/instance-id"])
def test_an_unknown_version_is_not_found(path: str) -> None:
    assert get(FULL, path)[0] == 404


def test_an_instance_without_tags_has_no_list_of_them() -> None:
    assert get(replace(PLAIN, tags={}), "latest/meta-data/tags/instance/")[0] == 404


def test_all_interfaces_are_listed_by_their_addresses() -> None:
    macs = listed(P5, "latest/meta-data/network/interfaces/macs/")
    assert (len(macs), macs[0], macs[-1]) == (33, "02:00:00:00:00:01/", "02:00:00:00:01:1f/")


def test_an_efa_only_interface_has_no_address() -> None:
    path = "latest/meta-data/network/interfaces/macs/02:00:00:00:01:1f"
    assert {name: get(P5, f"{path}/{name}")[2].decode() for name in listed(P5, f"{path}/")} == {
        "device-number": "1",
        "interface-id": "eni-31",
        "mac": "02:00:00:00:01:1f",
        "network-card": "31",
        "owner-id": "123456789012",
        "security-group-ids": "sg-1",
        "security-groups": "nodes",
        "subnet-id": "subnet-1",
        "subnet-ipv4-cidr-block": "10.64.1.0/24",
        "vpc-id": "vpc-1",
        "vpc-ipv4-cidr-block": "10.64.0.0/16",
        "vpc-ipv4-cidr-blocks": "10.64.0.0/16\n10.65.0.0/16",
    }
