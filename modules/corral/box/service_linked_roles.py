"""The names of AWS's service-linked roles."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.api_errors import ApiError
from corral.model.partitions import linked_service

# Role by service. Source: the page "Using service-linked roles" of each service's user guide.
SERVICE_LINKED_ROLES: Mapping[str, str] = {
    linked_service("autoscaling"): "AWSServiceRoleForAutoScaling",
    linked_service("elasticfilesystem"): "AWSServiceRoleForAmazonElasticFileSystem",
    linked_service("elasticloadbalancing"): "AWSServiceRoleForElasticLoadBalancing",
    linked_service("fsx"): "AWSServiceRoleForAmazonFSx",
    linked_service("s3.data-source.lustre.fsx"): "AWSServiceRoleForFSxS3Access",
    linked_service("spot"): "AWSServiceRoleForEC2Spot",
    linked_service("spotfleet"): "AWSServiceRoleForEC2SpotFleet",
}
WITH_SUFFIX = frozenset(map(linked_service, ("autoscaling", "s3.data-source.lustre.fsx")))


def service_linked_role_name(service: str, suffix: str | None) -> str | None:
    """The name of the service's role; None for a service that is not in the table.

    Raises ApiError for a suffix if the service has only one role.
    """
    name = SERVICE_LINKED_ROLES.get(service)
    if suffix and name and service not in WITH_SUFFIX:
        raise ApiError("InvalidInput", f"Custom suffix is not allowed for {service}")
    return f"{name}_{suffix}" if name and suffix else name
