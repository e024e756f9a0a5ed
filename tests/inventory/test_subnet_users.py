"""Users of a subnet: machines once, interfaces of other services, none of the base's own."""

from __future__ import annotations

from typing import Any

from corral.inventory.subnet_users import SubnetUser, list_subnet_users

NODE = {"NetworkInterfaceId": "eni-1", "SubnetId": "subnet-1", "InterfaceType": "interface"}
ATTACHED = {**NODE, "Attachment": {"InstanceId": "i-1"}}
SECOND = {**ATTACHED, "NetworkInterfaceId": "eni-2", "InterfaceType": "efa-only"}
LUSTRE = {**NODE, "NetworkInterfaceId": "eni-3", "Description": "FSx network interface for fs-1"}
TARGET = {**NODE, "NetworkInterfaceId": "eni-4", "Description": "EFS mount target for fs-2 (fsmt-1)"}
NEW_TARGET = {**NODE, "NetworkInterfaceId": "eni-5", "InterfaceType": "efs", "Description": ""}
NAT = {**NODE, "NetworkInterfaceId": "eni-6", "InterfaceType": "nat_gateway"}
ENDPOINT = {**NODE, "NetworkInterfaceId": "eni-7", "InterfaceType": "vpc_endpoint"}


class Ec2:
    """An EC2 with these interfaces, and one machine."""

    def __init__(self, *interfaces: dict[str, Any]) -> None:
        self._interfaces = interfaces
        self._call = ""

    def get_paginator(self, call: str) -> Ec2:
        self._call = call
        return self

    def paginate(self, **arguments: Any) -> list[dict[str, Any]]:
        if self._call == "describe_network_interfaces":
            return [{"NetworkInterfaces": self._interfaces}]
        machine = {"InstanceId": "i-1", "Tags": [{"Key": "Name", "Value": "corral-dev-train"}]}
        return [{"Reservations": [{"Instances": [machine]}]}]


class Session:
    """A session whose EC2 has these interfaces."""

    def __init__(self, *interfaces: dict[str, Any]) -> None:
        self._ec2 = Ec2(*interfaces)

    def client(self, service: str) -> Ec2:
        return self._ec2


def test_a_machine_counts_once_however_many_interfaces_it_has() -> None:
    found = list_subnet_users(Session(ATTACHED, SECOND), ["subnet-1"])
    assert found == (SubnetUser(subnet="subnet-1", id="i-1", name="corral-dev-train"),)


def test_an_interface_of_a_service_is_named_by_its_description() -> None:
    found = list_subnet_users(Session(LUSTRE), ["subnet-1"])
    assert found == (SubnetUser(subnet="subnet-1", id="eni-3", name="FSx network interface for fs-1"),)


def test_what_the_base_put_there_does_not_count() -> None:
    assert list_subnet_users(Session(TARGET, NEW_TARGET, NAT, ENDPOINT), ["subnet-1"]) == ()


def test_without_subnets_no_request_is_sent() -> None:
    assert list_subnet_users(None, []) == ()
