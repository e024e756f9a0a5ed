"""What AWS calls the roles that belong to a service, and which of them there may be several of."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.refusals import Refused

# Role by service. Source: the page "Using service-linked roles" of each service's user guide.
NAMES: Mapping[str, str] = {
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "elasticfilesystem.amazonaws.com": "AWSServiceRoleForAmazonElasticFileSystem",
    "fsx.amazonaws.com": "AWSServiceRoleForAmazonFSx",
    "s3.data-source.lustre.fsx.amazonaws.com": "AWSServiceRoleForFSxS3Access",
    "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
    "spotfleet.amazonaws.com": "AWSServiceRoleForEC2SpotFleet",
}
WITH_SUFFIX = frozenset({"autoscaling.amazonaws.com", "s3.data-source.lustre.fsx.amazonaws.com"})


def role_name(service: str, suffix: str | None) -> str | None:
    """The name of the service's role; None for a service that is not in the table.

    Raises Refused where the service has only one.
    """
    name = NAMES.get(service)
    if suffix and name and service not in WITH_SUFFIX:
        raise Refused("InvalidInput", f"Custom suffix is not allowed for {service}")
    return f"{name}_{suffix}" if name and suffix else name


def taken(name: str) -> Refused:
    """How IAM refuses a second role of the service."""
    return Refused(
        "InvalidInput", f"Service role name {name} has been taken in this account, please try a different suffix."
    )
