"""Plans of the shipped environment `dev`, for tests of several packages."""

from pathlib import Path

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.stack_files import read_environment

PROJECT = Path(__file__).parent.parent


def dev_base() -> BasePlan:
    """The plan of the base `dev`."""
    return plan_base(read_environment(PROJECT, "dev").base)


def dev_cluster(*, image_profile: str | None = None) -> ClusterPlan:
    """The plan of the cluster `dev`; with the box's image profile, that of its copy in the box."""
    return plan_cluster(read_environment(PROJECT, "dev").cluster, dev_base(), image_profile=image_profile)
