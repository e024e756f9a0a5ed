"""Inputs of a cluster's program: plan and files from its config, the newest image, the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pulumi
import pulumi_aws as aws

from corral.model.cluster import ClusterPlan, ImagePlan
from corral.stacks import settings
from corral.stacks.admission import EnvironmentPlans, admit, plan_admitted, refuse_expired


def read_plan() -> EnvironmentPlans:
    """Return the plans and files of this stack. Raises pulumi.RunError for what `corral up` refuses.

    The base's spec comes from its file: plain values decide the shape of a cluster, and stack outputs are not plain.
    """
    image_profile = pulumi.Config("corral-cluster").get("imageProfile")
    with settings.plain_errors():
        environment = admit(settings.project_dir(), pulumi.get_stack(), settings.stack_config("corral-cluster"))
        return plan_admitted(environment, image_profile)


def require_not_expired(plan: ClusterPlan, through: aws.Provider) -> None:
    """Raise pulumi.RunError if the cluster is deployed and has expired.

    A spec without a lifetime removes the expiry, so there is nothing to check.
    """
    if plan.lifetime.ttl_s is None:
        return
    with settings.plain_errors():
        refuse_expired(plan.name, _end(plan, through), datetime.now(UTC))


def image_ids(plan: ClusterPlan, through: aws.Provider) -> Mapping[str, str]:
    """Return the images for a cluster created now, by key. Pins keep those of the first deployment."""
    return {key: _image_id(image, through) for key, image in plan.images.items()}


def ends_at(plan: ClusterPlan) -> str | None:
    """Return when a cluster created now would expire, in UTC to the second. Pins keep the first expiry."""
    if plan.lifetime.ttl_s is None:
        return None
    return (datetime.now(UTC) + timedelta(seconds=plan.lifetime.ttl_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _end(plan: ClusterPlan, through: aws.Provider) -> datetime | None:
    """Return the expiry pinned by the first deployment or changed by `corral extend`; None before.

    Lists parameters, because getting a single missing one fails.
    """
    path = f"/corral/{plan.name}"
    found = aws.ssm.get_parameters_by_path(path=path, opts=pulumi.InvokeOptions(provider=through))
    end = dict(zip(found.names, found.values, strict=True)).get(f"{path}/ends-at")
    return datetime.fromisoformat(end) if end else None


def _image_id(image: ImagePlan, through: aws.Provider) -> str:
    if image.image_id:
        return image.image_id
    parameter = aws.ssm.get_parameter(name=image.parameter, opts=pulumi.InvokeOptions(provider=through))
    return str(parameter.insecure_value or parameter.value)
