"""What a cluster's program takes from its surroundings: the plan from its config, the newest image, the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pulumi
import pulumi_aws as aws

from corral.catalog.project import project_catalogue
from corral.model.cluster import ClusterPlan, ImagePlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.files import read_base
from corral.spec.parse import parse_cluster
from corral.spec.surroundings import Surroundings
from corral.stacks import settings


def read_plan() -> ClusterPlan:
    """The plan of this stack. Its base's spec comes from the file beside it: plain values must decide the shape of a
    cluster, and a stack's outputs are none."""
    name, config = pulumi.get_stack(), pulumi.Config("corral-cluster")
    spec = settings.spec_object("corral-cluster")
    project = Path.cwd().parent.parent
    base, catalogue = read_base(project, str(spec.get("base", name))), project_catalogue(project)
    around = Surroundings(region=settings.region(), catalogue=catalogue, base=base)
    cluster = parse_cluster(spec, name=name, where=f"Pulumi.{name}.yaml", around=around)
    return plan_cluster(cluster, plan_base(base), catalogue=catalogue, image_profile=config.get("imageProfile"))


def image_ids(plan: ClusterPlan, through: aws.Provider) -> Mapping[str, str]:
    """The images that a cluster made now would boot, by their keys. Pins keep those of the first up."""
    return {key: _image_id(image, through) for key, image in plan.images.items()}


def ends_at(plan: ClusterPlan) -> str | None:
    """When a cluster made now would end, in UTC to the second. Pins keep that of the first up."""
    if plan.lifetime.ttl_s is None:
        return None
    return (datetime.now(UTC) + timedelta(seconds=plan.lifetime.ttl_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _image_id(image: ImagePlan, through: aws.Provider) -> str:
    if image.image_id:
        return image.image_id
    parameter = aws.ssm.get_parameter(name=image.parameter, opts=pulumi.InvokeOptions(provider=through))
    return str(parameter.insecure_value or parameter.value)
