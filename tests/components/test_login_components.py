"""The resources of login nodes, by Pulumi's own mocks: their group, names, load balancer, roles, and their head's."""

import json
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from corral.components.head import Head, HeadArgs
from corral.components.identity import Identity, IdentityArgs
from corral.components.login import Login, LoginArgs
from corral.model.cluster import ClusterPlan, LoadBalancerPlan, LoginPlan
from corral.model.enums import BalancerScheme
from environments import dev_cluster
from recorded import Recorder, record

ZONES = {"login-1": "use1-az1", "login-2": "use1-az2"}
LOGIN = LoginPlan(instance_type="c7i.xlarge", vcpus=4, memory_mib=8192, root_gib=100, zones=ZONES)
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def plan() -> ClusterPlan:
    return replace(dev_cluster(), login=LOGIN)


ARGS = LoginArgs(
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


@pytest.fixture(scope="module")
def login() -> Recorder:
    return record(lambda: Login("login", ARGS))


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


def with_balancer(scheme: BalancerScheme) -> Recorder:
    """The resources of login nodes behind a load balancer for two networks."""
    networks = (IPv4Network("198.51.100.7/32"), IPv4Network("203.0.113.0/24"))
    balancer = LoadBalancerPlan(scheme=scheme, allow=networks, zones=("use1-az1", "use1-az2"))
    balanced = replace(LOGIN, load_balancer=balancer)
    args = replace(ARGS, plan=replace(plan(), login=balanced), login=balanced, balancer_subnets=["public-1"])
    return record(lambda: Login("login", args))


@pytest.fixture(scope="module")
def balanced() -> Recorder:
    return with_balancer(BalancerScheme.INTERNET_FACING)


def test_a_load_balancer_admits_its_networks_to_ssh_alone(balanced: Recorder) -> None:
    rules = balanced.of_type(INGRESS).values()
    assert sorted(
        (one["cidrIpv4"], one["securityGroupId"], one["fromPort"], one["toPort"]) for one in rules if "cidrIpv4" in one
    ) == [
        ("198.51.100.7/32", "login-load-balancer-group-id", 22, 22),
        ("203.0.113.0/24", "login-load-balancer-group-id", 22, 22),
    ]


def test_login_nodes_admit_the_load_balancer_by_its_group_and_to_ssh_alone(balanced: Recorder) -> None:
    rules = balanced.of_type(INGRESS).values()
    ends = ("securityGroupId", "fromPort", "toPort")
    assert [
        tuple(one[end] for end in ends)
        for one in rules
        if one.get("referencedSecurityGroupId") == "login-load-balancer-group-id"
    ] == [("login-group-id", 22, 22)]


def test_a_load_balancer_sends_to_login_nodes_alone(balanced: Recorder) -> None:
    rules = balanced.of_type("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule").values()
    assert [
        one["referencedSecurityGroupId"] for one in rules if one["securityGroupId"] == "login-load-balancer-group-id"
    ] == ["login-group-id"]


def test_login_nodes_see_the_addresses_of_people_and_a_person_stays_on_one_of_them(balanced: Recorder) -> None:
    (group,) = balanced.of_type("aws:lb/targetGroup:TargetGroup").values()
    assert (group["preserveClientIp"], group["stickiness"]["type"]) == ("true", "source_ip")


def test_each_login_node_is_a_target(balanced: Recorder) -> None:
    targets = balanced.of_type("aws:lb/targetGroupAttachment:TargetGroupAttachment")
    assert {name: one["targetId"] for name, one in targets.items()} == {
        "login-login-1-target": "login-login-1-id",
        "login-login-2-target": "login-login-2-id",
    }


@pytest.mark.parametrize(
    ("scheme", "is_internal"), [(BalancerScheme.INTERNET_FACING, False), (BalancerScheme.INTERNAL, True)]
)
def test_a_load_balancer_is_in_the_subnets_that_it_gets(scheme: BalancerScheme, is_internal: bool) -> None:
    (front,) = with_balancer(scheme).of_type("aws:lb/loadBalancer:LoadBalancer").values()
    assert (front["loadBalancerType"], front["internal"], front["subnets"]) == ("network", is_internal, ["public-1"])


def test_the_host_key_is_in_a_secret_that_has_no_value_in_the_state(balanced: Recorder) -> None:
    assert [one["name"] for one in balanced.of_type("aws:secretsmanager/secret:Secret").values()] == [
        "corral/dev/login-host-key"
    ]
    assert balanced.of_type("aws:secretsmanager/secretVersion:SecretVersion") == {}


def test_login_nodes_without_a_load_balancer_have_no_host_key_of_their_own(login: Recorder) -> None:
    kinds = ("aws:secretsmanager/secret:Secret", "aws:lb/loadBalancer:LoadBalancer")
    assert [login.of_type(kind) for kind in kinds] == [{}, {}]
