"""The rules of security groups that FSx requires before it creates a Lustre file system."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork

from corral.box.api.fsx_groups import GroupRule, check_group_rules
from corral.box.api_errors import ApiError

SUBNET = IPv4Network("10.64.1.0/24")
ALL_IN = GroupRule(outbound=False, protocol="-1", peer="sg-1")
ALL_OUT = replace(ALL_IN, outbound=True)
MOUNT_IN = GroupRule(outbound=False, protocol="tcp", peer="sg-1", first=988, last=988)
REST_IN = GroupRule(outbound=False, protocol="tcp", peer="sg-1", first=1018, last=1023)
ANYWHERE = IPv4Network("0.0.0.0/0")
ANYWHERE_OUT = replace(ALL_OUT, peer=ANYWHERE)


@pytest.mark.parametrize(
    "rules",
    [
        [ALL_IN, ALL_OUT],
        [MOUNT_IN, REST_IN, ANYWHERE_OUT],
        [replace(ALL_IN, peer=SUBNET), ALL_OUT],
        [replace(ALL_IN, peer="sg-2"), ALL_OUT],  # an interface is in both groups
    ],
)
def test_servers_that_reach_each_other_are_accepted(rules: list[GroupRule]) -> None:
    check_group_rules(rules, ["sg-1", "sg-2"], SUBNET, efa=False)


@pytest.mark.parametrize(
    ("rules", "port"),
    [
        ([], 988),
        ([ALL_OUT], 988),
        ([ALL_IN], 988),
        ([replace(ALL_IN, peer="sg-9"), ALL_OUT], 988),
        ([replace(ALL_IN, peer=IPv4Network("10.64.1.0/25")), ALL_OUT], 988),
        ([replace(MOUNT_IN, protocol="udp"), REST_IN, ALL_OUT], 988),
        ([MOUNT_IN, ALL_OUT], 1018),
        ([MOUNT_IN, replace(REST_IN, last=1021), ALL_OUT], 1022),
    ],
)
def test_servers_that_do_not_reach_each_other_are_refused_with_the_port(rules: list[GroupRule], port: int) -> None:
    with pytest.raises(ApiError, match=f"do not permit Lustre LNET network traffic on port {port}$"):
        check_group_rules(rules, ["sg-1"], SUBNET, efa=False)


@pytest.mark.parametrize(
    "rules",
    [
        [ALL_IN, ANYWHERE_OUT],  # EFA is no IP traffic: a range does not count
        [replace(ALL_IN, peer=ANYWHERE), ALL_OUT],
        [MOUNT_IN, REST_IN, ALL_OUT],
    ],
)
def test_efa_requires_all_traffic_to_and_from_the_group_itself(rules: list[GroupRule]) -> None:
    with pytest.raises(ApiError, match="allow all internal inbound and outbound traffic"):
        check_group_rules(rules, ["sg-1"], SUBNET, efa=True)


def test_a_file_system_is_refused_before_its_group_has_rules(aws: Clients, launch_network: LaunchNetwork) -> None:
    group = aws("ec2").create_security_group(GroupName="early", Description="early", VpcId=launch_network.vpc)
    with pytest.raises(ClientError) as refused:
        aws("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[launch_network.subnet],
            SecurityGroupIds=[group["GroupId"]],
            LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        )
    assert refused.value.response["Error"]["Code"] == "InvalidNetworkSettings"
