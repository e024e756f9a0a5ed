"""API calls for IAM's simulations: all that the policies allow, without wildcards and unused calls."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.deployer_calls import deployer_calls
from corral.plan.iam.deployer_policy import deployer_policies
from corral.plan.iam.head_calls import head_calls, planned_arns
from corral.plan.iam.iam_policies import head_policy
from corral.spec.yaml.stack_files import read_environment
from deployer_actions import denied
from environments import PROJECT, dev_base, dev_cluster

ACCOUNT = "123456789012"
MIXED = read_environment(PROJECT, "mixed")


def named(calls: tuple[Calls, ...]) -> set[str]:
    return {action for one in calls for action in one.actions}


def services(calls: tuple[Calls, ...]) -> set[str]:
    return {action.partition(":")[0] for action in named(calls)}


def test_no_simulated_action_has_a_wildcard() -> None:
    assert [one for one in named(deployer_calls(dev_base(), dev_cluster(), ACCOUNT)) if "*" in one] == []


def test_simulated_actions_are_those_that_the_deployers_policies_allow() -> None:
    policies = deployer_policies(account=ACCOUNT, region="us-east-1")
    simulated = named(deployer_calls(dev_base(), dev_cluster(), ACCOUNT))
    assert denied(policies, simulated) == []


def test_every_condition_of_the_deployers_policies_is_known_beforehand() -> None:
    policies = deployer_policies(account=ACCOUNT, region="us-east-1")
    conditions = [one.get("Condition", {}) for policy in policies for one in policy.document["Statement"]]
    keys = {key for condition in conditions for tests in condition.values() for key in tests}
    assert keys - set(deployer_calls(dev_base(), dev_cluster(), ACCOUNT)[0].context) == set()


def test_resources_have_corrals_names() -> None:
    resources = {one.resources for one in deployer_calls(dev_base(), dev_cluster(), ACCOUNT)}
    assert ("arn:aws:s3:::corral-dev-123456789012-us-east-1",) in resources


def test_an_environment_without_file_systems_and_budget_makes_none_of_their_calls() -> None:
    bare, without = replace(dev_base(), home=None, budget=None, lustre=()), replace(dev_cluster(), lustre=())
    assert services(deployer_calls(bare, without, ACCOUNT)) & {"elasticfilesystem", "fsx", "budgets"} == set()


def test_in_an_adopted_vpc_no_network_is_made() -> None:
    base = plan_base(MIXED.base)
    simulated = named(deployer_calls(base, plan_cluster(MIXED.cluster, base), ACCOUNT))
    assert simulated & {"ec2:CreateVpc", "ec2:CreateNatGateway", "ec2:CreateSecurityGroup"} == {
        "ec2:CreateSecurityGroup"
    }


def test_a_role_of_fsx_for_s3_is_made_where_lustre_shows_a_bucket_alone() -> None:
    (scratch,) = dev_cluster().lustre
    unlinked = replace(dev_cluster(), lustre=(replace(scratch, data=()),))
    assert "iam:CreateServiceLinkedRole" not in named(deployer_calls(dev_base(), unlinked, ACCOUNT))


def policy_actions(policy: Any) -> set[str]:
    return {action for statement in policy["Statement"] for action in statement["Action"]}


def test_each_action_of_the_heads_policy_is_simulated() -> None:
    arns = planned_arns(dev_cluster(), ACCOUNT)
    simulated = named(head_calls(arns))
    not_simulated = [
        one for one in policy_actions(head_policy(arns)) if not any(fnmatchcase(each, one) for each in simulated)
    ]
    assert sorted(not_simulated) == []
