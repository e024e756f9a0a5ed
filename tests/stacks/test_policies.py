"""How long the policies of a cluster's roles become: IAM takes 10,240 characters of a role's inline policies."""

from __future__ import annotations

import json
from dataclasses import replace

from corral.model.enums import Market
from corral.plan.cluster import plan_cluster
from corral.plan.iam.iam_policies import head_policy
from corral.plan.subnets import plan_zones
from corral.spec.models.queues import PoolSpec
from corral.spec.yaml.stack_files import read_environment
from corral.stacks.outputs import _cluster_arns
from environments import PROJECT, dev_base

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:corral/dev/munge-0123456-AbCdEf"
NAMES = ("bucket", "key", "compute_role", "job_role", "munge_secret", "hosted_zone", "log_group", "topic")


def test_the_heads_policy_does_not_grow_with_the_templates() -> None:
    """Ten queues of two pools in three zones: sixty launch templates."""
    spec, base = read_environment(PROJECT, "dev").cluster, dev_base()
    zones = plan_zones(base.vpc_cidr, ["use1-az1", "use1-az2", "use1-az4"])
    pools = tuple(PoolSpec(market=market) for market in (Market.SPOT, Market.ON_DEMAND))
    queues = tuple(
        spec.queues[0].model_copy(update={"name": f"train-{number}", "capacity": pools}) for number in range(10)
    )
    plan = plan_cluster(spec.model_copy(update={"queues": queues}), replace(base, zones=zones))
    templates = sum(len(queue.offers) for queue in plan.queues)
    policy = json.dumps(head_policy(_cluster_arns(plan, "123456789012", dict.fromkeys(NAMES, ARN))))
    assert (templates, len("".join(policy.split())) < 10_240 * 2 / 3) == (60, True)
