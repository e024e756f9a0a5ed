"""Whether the job role's policy has room for what a spec names."""

from __future__ import annotations

import json

import pytest

from corral.model.cluster import ClusterPlan
from corral.plan.access import job_policy
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.plan.roles import job_arns
from corral.spec.errors import SpecErrors
from corral.spec.parse import parse_base, parse_cluster
from corral.spec.surroundings import Surroundings


def planned(buckets: int, secrets: int) -> ClusterPlan:
    network = {"cidr": "10.64.0.0/20", "zones": ["use1-az1"]}
    base = parse_base({"network": network}, name="b", where="b", around=Surroundings(region="us-east-1"))
    wishes = {
        "queues": [
            {"name": "train", "instance_type": "p5.48xlarge", "nodes": {"max": 2}, "capacity": [{"market": "spot"}]}
        ],
        "jobs": {
            "buckets": [{"s3": f"s3://team-corpus-{number:03}/shards"} for number in range(buckets)],
            "secrets": {f"TOKEN_{number}": f"team/token-{number:03}" for number in range(secrets)},
        },
    }
    cluster = parse_cluster(wishes, name="c", where="c.yaml", around=Surroundings(region="us-east-1", base=base))
    return plan_cluster(cluster, plan_base(base))


def test_more_buckets_and_secrets_than_a_roles_policy_holds_are_refused() -> None:
    with pytest.raises(SpecErrors) as caught:
        planned(buckets=75, secrets=60)
    assert str(caught.value) == (
        "c.yaml: jobs: 75 buckets, those that Lustre shows among them, and 60 secrets make a policy of 10,859"
        " characters, and AWS takes 10,240 of a role - name fewer of them, or one bucket that holds more"
    )


def test_the_policy_of_what_is_planned_is_one_that_iam_takes() -> None:
    """The most buckets that pass, with the longest names that a base's bucket and key can have."""
    arns = job_arns(planned(132, 0), "123456789012", f"arn:aws:s3:::{'b' * 63}", f"arn:aws:kms:us-east-1:{'0' * 53}")
    assert len("".join(json.dumps(job_policy(arns)).split())) <= 10_240


def test_one_bucket_more_than_these_is_refused() -> None:
    with pytest.raises(SpecErrors, match="133 buckets"):
        planned(133, 0)
