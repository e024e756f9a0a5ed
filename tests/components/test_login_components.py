"""The resources of login nodes, by Pulumi's own mocks: their group, names, roles, and what they change of the head."""

import json
from dataclasses import replace

import pytest

from corral.components.head import Head, HeadArgs
from corral.components.identity import Identity, IdentityArgs
from corral.components.login import Login, LoginArgs
from corral.model.cluster import ClusterPlan, LoginPlan
from environments import dev_cluster
from recorded import Recorder, record

ZONES = {"login-1": "use1-az1", "login-2": "use1-az2"}
LOGIN = LoginPlan(instance_type="c7i.xlarge", vcpus=4, memory_mib=8192, root_gib=100, zones=ZONES)
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def plan() -> ClusterPlan:
    return replace(dev_cluster(), login=LOGIN)


@pytest.fixture(scope="module")
def login() -> Recorder:
    args = LoginArgs(
        plan=plan(),
        login=LOGIN,
        vpc_id="vpc-1",
        machines="machines",
        home_group="home",
        lustre_group="kept",
        image_id="ami-1",
        profile_name="login",
        key_arn="arn:key",
        subnets={"use1-az1": "subnet-1", "use1-az2": "subnet-2"},
        zone="Z1",
        user_data="#cloud-config\n",
        needs=[],
    )
    return record(lambda: Login("login", args))


def test_each_login_node_is_in_the_subnet_of_its_zone_and_tagged_with_its_name(login: Recorder) -> None:
    instances = login.of_type("aws:ec2/instance:Instance")
    assert {name: (one["subnetId"], one["tags"]["corral:login"]) for name, one in instances.items()} == {
        "login-login-1": ("subnet-1", "login-1"),
        "login-login-2": ("subnet-2", "login-2"),
    }


def test_login_nodes_are_in_a_group_of_their_own_alone(login: Recorder) -> None:
    instances = login.of_type("aws:ec2/instance:Instance")
    assert [one["vpcSecurityGroupIds"] for one in instances.values()] == [["login-group-id"]] * 2


def test_machines_and_login_nodes_open_ssh_and_the_ports_of_programs_to_each_other(login: Recorder) -> None:
    rules = login.of_type(INGRESS).values()
    between = [
        (one["securityGroupId"], one["referencedSecurityGroupId"], one["fromPort"], one["toPort"])
        for one in rules
        if {one["securityGroupId"], one["referencedSecurityGroupId"]} == {"machines", "login-group-id"}
        and one["fromPort"] not in (988, 1018)
    ]
    assert sorted(between) == [
        ("login-group-id", "machines", 22, 22),
        ("login-group-id", "machines", 1024, 65535),
        ("machines", "login-group-id", 22, 22),
        ("machines", "login-group-id", 1024, 65535),
    ]


def test_login_nodes_mount_the_home_and_the_lustre_of_cluster_and_base(login: Recorder) -> None:
    ports = {
        (one["securityGroupId"], one["fromPort"])
        for one in login.of_type(INGRESS).values()
        if one["referencedSecurityGroupId"] == "login-group-id" and one["fromPort"] in (2049, 988)
    }
    assert ports == {("home", 2049), ("machines", 988), ("kept", 988)}


def test_nothing_outside_of_the_cluster_reaches_a_login_node(login: Recorder) -> None:
    assert [one for one in login.of_type(INGRESS).values() if "cidrIpv4" in one] == []


def test_only_login_nodes_can_take_on_the_peoples_role_and_the_job_role_trusts_whom_it_did() -> None:
    args = IdentityArgs(plan=plan(), account="123456789012")
    roles = record(lambda: Identity("identity", args)).of_type("aws:iam/role:Role")
    trusted = {
        name: json.loads(roles[f"identity-{name}"]["assumeRolePolicy"])["Statement"][0]["Principal"]["AWS"]
        for name in ("people", "job")
    }
    assert trusted == {"people": ["arn:identity-login"], "job": ["arn:identity-head", "arn:identity-compute"]}


def test_the_head_of_a_cluster_with_login_nodes_is_tagged_for_administrators() -> None:
    def tags_of(cluster: ClusterPlan) -> object:
        args = HeadArgs(
            plan=cluster,
            image_id="ami-1",
            profile_name="head",
            group="sg-1",
            key_arn="arn:key",
            subnet_id="subnet-1",
            zone_name="us-east-1a",
            user_data="#cloud-config\n",
            needs=[],
        )
        return record(lambda: Head("head", args)).of_type("aws:ec2/instance:Instance")["head-instance"]["tags"]

    assert (tags_of(dev_cluster()), tags_of(plan())) == (
        {"Name": "corral-dev-head"},
        {"Name": "corral-dev-head", "corral:admins": "only"},
    )
