"""Load balancers of the box: their names, interfaces and targets, and whom a deployer may let make and change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from box.vpc_fixtures import Clients
from corral.box.access.policy_evaluator import RequiredAction, evaluate
from corral.plan.iam.deployer_policy import deployer_policies

TAGS = [{"Key": "corral:base", "Value": "dev"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A VPC with an internet gateway, two subnets of different zones, and a group."""

    vpc: str
    subnets: tuple[str, str]
    group: str


@pytest.fixture
def network(aws: Clients) -> Network:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    one, other = (
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.64.{number}.0/24", AvailabilityZoneId=f"use1-az{number}")
        for number in (1, 2)
    )
    group = ec2.create_security_group(GroupName="people", Description="people", VpcId=vpc)["GroupId"]
    return Network(vpc=vpc, subnets=(one["Subnet"]["SubnetId"], other["Subnet"]["SubnetId"]), group=group)


def balancer(aws: Clients, network: Network, **more: Any) -> Any:
    """A new network load balancer in the first subnet."""
    given = {"Subnets": [network.subnets[0]], "SecurityGroups": [network.group], "Tags": TAGS, **more}
    return aws("elbv2").create_load_balancer(Name="login", Type="network", **given)["LoadBalancers"][0]


def interfaces(aws: Clients, network: Network) -> list[Any]:
    filters = [{"Name": "vpc-id", "Values": [network.vpc]}]
    found: list[Any] = aws("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    return found


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_network_load_balancer_has_net_in_its_arn_and_its_id_in_its_dns_name(aws: Clients, network: Network) -> None:
    made = balancer(aws, network)
    kind, name, id = made["LoadBalancerArn"].partition(":loadbalancer/")[2].split("/")
    assert (kind, name, made["DNSName"]) == ("net", "login", f"login-{id}.elb.us-east-1.amazonaws.com")


def test_it_has_an_interface_in_each_subnet_which_nobody_else_deletes(aws: Clients, network: Network) -> None:
    made = balancer(aws, network, Subnets=list(network.subnets))
    found = interfaces(aws, network)
    described = f"ELB {made['LoadBalancerArn'].partition(':loadbalancer/')[2]}"
    assert {(one["SubnetId"], one["Description"]) for one in found} == {(id, described) for id in network.subnets}
    with pytest.raises(ClientError) as error:
        aws("ec2").delete_network_interface(NetworkInterfaceId=found[0]["NetworkInterfaceId"])
    assert code(error) == "InvalidParameterValue"


def test_its_interfaces_end_with_it(aws: Clients, network: Network) -> None:
    aws("elbv2").delete_load_balancer(LoadBalancerArn=balancer(aws, network)["LoadBalancerArn"])
    assert interfaces(aws, network) == []


def test_an_internet_facing_one_needs_an_internet_gateway_in_its_vpc(aws: Clients) -> None:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.65.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.65.1.0/24")["Subnet"]["SubnetId"]
    with pytest.raises(ClientError) as error:
        aws("elbv2").create_load_balancer(Name="login", Type="network", Subnets=[subnet])
    assert (code(error), f"VPC {vpc} has no internet gateway" in str(error.value)) == ("InvalidSubnet", True)


def test_two_subnets_of_a_zone_are_one_too_many(aws: Clients, network: Network) -> None:
    ec2 = aws("ec2")
    subnet = ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.64.9.0/24", AvailabilityZoneId="use1-az1")["Subnet"]
    with pytest.raises(ClientError) as error:
        balancer(aws, network, Subnets=[network.subnets[0], subnet["SubnetId"]])
    assert code(error) == "InvalidConfigurationRequest"


def group_of(aws: Clients, network: Network) -> str:
    """A target group that a listener of the load balancer forwards to."""
    elbv2 = aws("elbv2")
    made = elbv2.create_target_group(Name="targets", Protocol="TCP", Port=22, VpcId=network.vpc, Tags=TAGS)
    group = str(made["TargetGroups"][0]["TargetGroupArn"])
    elbv2.create_listener(
        LoadBalancerArn=balancer(aws, network)["LoadBalancerArn"],
        Protocol="TCP",
        Port=22,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
        Tags=TAGS,
    )
    return group


def instance_in(aws: Clients, subnet: str) -> str:
    ec2 = aws("ec2")
    image = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    launched = ec2.run_instances(ImageId=image, InstanceType="c7i.xlarge", MinCount=1, MaxCount=1, SubnetId=subnet)
    return str(launched["Instances"][0]["InstanceId"])


def test_targets_outside_of_the_zones_of_a_load_balancer_are_unused(aws: Clients, network: Network) -> None:
    group, nodes = group_of(aws, network), [instance_in(aws, subnet) for subnet in network.subnets]
    aws("elbv2").register_targets(TargetGroupArn=group, Targets=[{"Id": one} for one in nodes])
    found = aws("elbv2").describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
    assert {one["Target"]["Id"]: one["TargetHealth"].get("Reason") for one in found} == {
        nodes[0]: None,
        nodes[1]: "Target.NotInUse",
    }


def test_to_deregister_what_is_not_registered_is_no_error(aws: Clients, network: Network) -> None:
    group = group_of(aws, network)
    aws("elbv2").deregister_targets(TargetGroupArn=group, Targets=[{"Id": "i-0123456789abcdef0"}])
    assert aws("elbv2").describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"] == []


def test_the_tagging_api_lists_load_balancers_with_their_listeners_and_target_groups(
    aws: Clients, network: Network
) -> None:
    group_of(aws, network)
    found = aws("resourcegroupstaggingapi").get_resources(TagFilters=[{"Key": "corral:base"}])
    arns = [one["ResourceARN"] for one in found["ResourceTagMappingList"]]
    assert sorted(arn.split(":")[5].partition("/")[0] for arn in arns if ":elasticloadbalancing:" in arn) == [
        "listener",
        "loadbalancer",
        "targetgroup",
    ]


HERE = "arn:aws:elasticloadbalancing:us-east-1:123456789012:{}"
OURS = {"aws:resourcetag/corral:base": "dev"}


@pytest.mark.parametrize(
    ("action", "resource", "context", "allowed"),
    [
        ("CreateLoadBalancer", "loadbalancer/net/login/*", {"aws:requesttag/corral:base": "dev"}, True),
        ("CreateLoadBalancer", "loadbalancer/net/login/*", {}, False),
        ("CreateLoadBalancer", "loadbalancer/app/login/*", {"aws:requesttag/corral:base": "dev"}, False),
        ("DeleteLoadBalancer", "loadbalancer/net/theirs/1", {}, False),
        ("DeleteLoadBalancer", "loadbalancer/net/login/1", OURS, True),
        ("RegisterTargets", "targetgroup/theirs/1", {}, False),
        ("RegisterTargets", "targetgroup/targets/1", OURS, True),
        ("AddTags", "loadbalancer/net/theirs/1", {}, False),
        ("AddTags", "loadbalancer/net/login/1", {"elasticloadbalancing:createaction": "CreateLoadBalancer"}, True),
    ],
)
def test_a_deployer_makes_load_balancers_with_corrals_tag_and_changes_those_alone(
    action: str, resource: str, context: dict[str, str], allowed: bool
) -> None:
    policies = [one.document for one in deployer_policies(account="123456789012", region="us-east-1")]
    required = RequiredAction(
        action=f"elasticloadbalancing:{action}",
        resource=HERE.format(resource),
        context={"aws:requestedregion": "us-east-1", **context},
    )
    assert evaluate(policies, (), required).allowed == allowed
