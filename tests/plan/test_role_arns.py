"""Whether the job role's policy holds the buckets and secrets of a spec."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from corral.model.cluster import ClusterPlan, JobsPlan, RepositoryPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.plan.iam.iam_policies import job_policy
from corral.plan.iam.role_arns import job_arns
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.spec_errors import SpecErrors
from corral.spec.validation_context import ValidationContext
from environments import dev_cluster


def planned(buckets: int, secrets: int) -> ClusterPlan:
    network = {"cidr": "10.64.0.0/20", "zones": ["use1-az1"]}
    base = parse_base({"network": network}, name="b", where="b", context=ValidationContext(region="us-east-1"))
    spec = {
        "queues": [
            {"name": "train", "instance_type": "p5.48xlarge", "nodes": {"max": 2}, "capacity": [{"market": "spot"}]}
        ],
        "jobs": {
            "buckets": [{"s3": f"s3://team-corpus-{number:03}/shards"} for number in range(buckets)],
            "secrets": {f"TOKEN_{number}": f"team/token-{number:03}" for number in range(secrets)},
        },
    }
    cluster = parse_cluster(spec, name="c", where="c.yaml", context=ValidationContext(region="us-east-1", base=base))
    return plan_cluster(cluster, plan_base(base))


def test_more_buckets_and_secrets_than_a_roles_policy_holds_are_refused() -> None:
    with pytest.raises(SpecErrors) as caught:
        planned(buckets=75, secrets=60)
    assert str(caught.value) == (
        "c.yaml: jobs: 75 buckets, including those linked to Lustre, 60 secrets and 0 repositories make a policy of"
        " 13,565 characters; AWS allows 10,240 for a role - declare fewer of them, or a bucket in place of its prefixes"
    )


def test_the_policy_of_what_is_planned_is_one_that_iam_takes() -> None:
    """The most buckets that pass, with the longest names that a base's bucket and key can have."""
    arns = job_arns(planned(88, 0), "123456789012", f"arn:aws:s3:::{'b' * 63}", f"arn:aws:kms:us-east-1:{'0' * 53}")
    assert len("".join(json.dumps(job_policy(arns)).split())) <= 10_240


def test_a_repository_is_the_clusters_accounts_unless_it_names_another() -> None:
    repositories = (RepositoryPlan(account=None, name="team/train"), RepositoryPlan(account="2" * 12, name="base"))
    plan = replace(planned(1, 0), jobs=JobsPlan(registries=repositories))
    assert job_arns(plan, "1" * 12, "arn:bucket", "arn:key").repositories == (
        "arn:aws:ecr:us-east-1:111111111111:repository/team/train",
        "arn:aws:ecr:us-east-1:222222222222:repository/base",
    )


def test_one_bucket_more_than_these_is_refused() -> None:
    with pytest.raises(SpecErrors, match="89 buckets"):
        planned(89, 0)


def test_a_job_reaches_the_linked_prefix_of_a_bucket_and_not_the_whole() -> None:
    (system, *_) = dev_cluster().lustre
    plan = replace(planned(0, 0), lustre=(replace(system, data=(replace(system.data[0], s3="s3://corpus/tokens/"),)),))
    assert job_arns(plan, "1" * 12, "arn:bucket", "arn:key").writable == ("arn:aws:s3:::corpus/tokens",)
