"""One environment in China and one in GovCloud: planned, rendered and recorded, with their own partition throughout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from corral import render
from corral.components.identity import Identity, IdentityArgs
from corral.components.key import EncryptionKey, EncryptionKeyArgs
from corral.components.vpc import Network, NetworkArgs
from corral.engine.bootstrap.step import BootstrapTarget
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts
from corral.model.enums import Role
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.plan.iam.deployer_calls import deployer_calls
from corral.plan.iam.head_calls import head_calls, planned_arns
from corral.plan.iam.iam_policies import boundary_policy, compute_policy, head_policy, job_policy
from corral.plan.iam.role_arns import job_arns
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from recorded import record
from render.plans import PUBLIC_KEY

ACCOUNT = "123456789012"
REGIONS = {"cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"}
ZONES = {"cn-north-1": "cnn1", "us-gov-west-1": "usgw1"}
# Principals and linked roles that have the common suffix in every partition.
SERVICES = ("ec2", "elasticfilesystem", "fsx", "s3", "secretsmanager")  # which use a base's key
COMMON = {"spot.amazonaws.com", "s3.data-source.lustre.fsx.amazonaws.com"}


@pytest.fixture(params=REGIONS, scope="module")
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def plans(region: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[BasePlan, ClusterPlan]:
    """The plans of an environment in the region."""

    directory = tmp_path_factory.mktemp("env")
    for kind in ("base", "cluster"):
        folder = directory / "stacks" / kind
        folder.mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text(f"name: corral-{kind}\nruntime: python\n")
        text = (PROJECT / "stacks" / kind / "Pulumi.dev.yaml").read_text()
        text = text.replace("us-east-1", region).replace("use1-", f"{ZONES[region]}-")
        text = text.replace("deployment: SCRATCH_2", "deployment: PERSISTENT_2\n          throughput: 125")
        text = text.replace("cidr: 10.64.0.0/16", "cidr: 10.64.0.0/16\n      interface_endpoints: [ec2, ssm]")
        (folder / "Pulumi.dev.yaml").write_text(text)
    found = read_environment(directory, "dev")
    base = plan_base(found.base)
    return base, plan_cluster(found.cluster, base)


def policies(base: BasePlan, cluster: ClusterPlan) -> Iterator[Any]:
    """The policies of roles and deployer, and the calls that preflight simulates."""
    arns = planned_arns(cluster, ACCOUNT)
    yield from (head_policy(arns), compute_policy(arns), boundary_policy(cluster.region, ACCOUNT))
    yield job_policy(job_arns(cluster, ACCOUNT, arns.bucket, arns.key))
    target = BootstrapTarget(account=ACCOUNT, region=cluster.region)
    yield from (policy.document for policy in target.policies.values())
    yield [target.policy_arn(topic) for topic in target.policies]
    calls = (*head_calls(arns), *deployer_calls(base, cluster, ACCOUNT))
    yield [[*call.resources, *call.context.values()] for call in calls]


def test_every_arn_in_a_policy_is_of_the_regions_partition(plans: tuple[BasePlan, ClusterPlan], region: str) -> None:
    found = re.findall(r"arn:([\w-]+):", json.dumps(list(policies(*plans))))
    assert set(found) == {REGIONS[region]}


def test_the_other_names_in_a_policy_are_common_or_the_partitions(
    plans: tuple[BasePlan, ClusterPlan], region: str
) -> None:
    found = set(re.findall(r"[\w.-]+\.amazonaws\.com[\w.]*", json.dumps(list(policies(*plans)))))
    domain = {"cn-north-1": "amazonaws.com.cn", "us-gov-west-1": "amazonaws.com"}[region]
    via_service = {f"{service}.{region}.{domain}" for service in SERVICES}
    assert found - COMMON == {f"ec2.{domain}", *via_service}


def test_the_machines_files_name_no_other_partition(plans: tuple[BasePlan, ClusterPlan], region: str) -> None:
    facts = BootFacts(
        cluster="dev",
        region=region,
        bucket="corral-dev",
        prefix=plans[1].prefix,
        bundle_key="agent",
        bundle_sha256="0" * 64,
        library_key="library",
        library_sha256="0" * 64,
        public_key=PUBLIC_KEY,
    )
    texts = [render.user_data(plans[1], role, facts) for role in Role]
    texts += render.cluster_files(plans[1]).values()
    assert [text for text in texts if re.search(r"arn:aws:|us-east-1", text)] == []


def test_the_roles_trust_the_partitions_ec2(plans: tuple[BasePlan, ClusterPlan], region: str) -> None:
    own = {"cn-north-1": "ec2.amazonaws.com.cn", "us-gov-west-1": "ec2.amazonaws.com"}
    seen = record(lambda: Identity("identity", IdentityArgs(plan=plans[1], account=ACCOUNT)))
    trust = seen.of_type("aws:iam/role:Role")["identity-head"]["assumeRolePolicy"]
    assert json.loads(trust)["Statement"][0]["Principal"] == {"Service": own[region]}


def test_the_key_admits_the_accounts_root_and_the_logs_of_the_partition(
    plans: tuple[BasePlan, ClusterPlan], region: str
) -> None:
    domain = {"cn-north-1": "amazonaws.com.cn", "us-gov-west-1": "amazonaws.com"}[region]
    seen = record(lambda: EncryptionKey("key", EncryptionKeyArgs(plan=plans[0], account=ACCOUNT, retained_id=None)))
    policy = json.loads(next(iter(seen.of_type("aws:kms/key:Key").values()))["policy"])
    assert [one["Principal"] for one in policy["Statement"][:2]] == [
        {"AWS": f"arn:{REGIONS[region]}:iam::{ACCOUNT}:root"},
        {"Service": f"logs.{region}.{domain}"},
    ]


def test_the_endpoints_have_the_partitions_names(plans: tuple[BasePlan, ClusterPlan], region: str) -> None:
    prefix = {"cn-north-1": "cn.com.amazonaws", "us-gov-west-1": "com.amazonaws"}[region]
    seen = record(lambda: Network("network", NetworkArgs(plan=plans[0], public=plans[0].public)))
    names = {one["serviceName"] for one in seen.of_type("aws:ec2/vpcEndpoint:VpcEndpoint").values()}
    assert names == {f"com.amazonaws.{region}.s3", f"{prefix}.{region}.ec2", f"com.amazonaws.{region}.ssm"}
