"""Where a cluster writes its series: the workspace of a spec, by its id or its URL, and what the head may write to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from corral.model.cluster import ClusterPlan
from corral.model.monitoring import RemoteWritePlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.plan.iam.head_calls import head_calls, planned_arns
from corral.plan.iam.role_arns import workspace_arn
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext
from corral.stacks.outputs import _cluster_arns

ACCOUNT = "123456789012"
ENDPOINT = "https://vpce-0a1b-2c.aps-workspaces.us-east-1.vpce.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
NAMES = ("bucket", "key", "compute_role", "job_role", "munge_secret", "hosted_zone", "log_group", "topic")


def planned(written: Mapping[str, str] | None, region: str = "us-east-1", zone: str = "use1-az1") -> ClusterPlan:
    network = {"cidr": "10.64.0.0/20", "zones": [zone]}
    base = parse_base({"network": network}, name="b", where="b", context=ValidationContext(region=region))
    queue = {"name": "cpu", "instance_type": "c7i.xlarge", "nodes": {"max": 2}, "capacity": [{"market": "on-demand"}]}
    monitoring = {"prometheus": True, **({"remote_write": written} if written is not None else {})}
    spec = {"queues": [queue], "monitoring": monitoring}
    cluster = parse_cluster(spec, name="c", where="c", context=ValidationContext(region=region, base=base))
    return plan_cluster(cluster, plan_base(base))


def test_a_workspace_has_a_public_url_in_the_clusters_region() -> None:
    assert planned({"workspace": "ws-1"}).monitoring.remote_write == RemoteWritePlan(
        workspace="ws-1", url="https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
    )


@pytest.mark.parametrize(
    "url",
    [
        ENDPOINT,
        "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/remote_write",
        "https://aps-workspaces-fips.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/remote_write",
    ],
)
def test_a_url_names_its_workspace(url: str) -> None:
    assert planned({"url": url}).monitoring.remote_write == RemoteWritePlan(workspace="ws-1", url=url)


@pytest.mark.parametrize(
    "written", [{"workspace": "ws-1"}, {"url": ENDPOINT}], ids=["by its id", "by the URL of an endpoint"]
)
def test_the_policy_of_the_head_names_the_workspace(written: Mapping[str, str]) -> None:
    arns = _cluster_arns(planned(written), ACCOUNT, dict.fromkeys(NAMES, "arn:x"))
    assert arns.workspace == "arn:aws:aps:us-east-1:123456789012:workspace/ws-1"


def test_a_cluster_that_writes_nowhere_has_no_workspace() -> None:
    assert workspace_arn(planned(None), ACCOUNT) == ""


def test_the_write_of_a_head_is_simulated_where_it_writes() -> None:
    plans = (planned({"workspace": "ws-1"}), planned(None))
    simulated = [
        {action for one in head_calls(planned_arns(plan, ACCOUNT)) for action in one.actions} for plan in plans
    ]
    assert ["aps:RemoteWrite" in actions for actions in simulated] == [True, False]
