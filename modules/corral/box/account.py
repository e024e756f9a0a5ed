"""The emulated account: its id, its default region, its partition, its owner, and the names of AWS's roles in it."""

from collections.abc import Mapping

from corral.model.partitions import COMMERCIAL, linked_service

ACCOUNT = "123456789012"
REGION = "us-east-1"
PARTITION = COMMERCIAL.name
OWNER_ARN = f"arn:{PARTITION}:iam::{ACCOUNT}:user/corral-box"  # whose keys `corral box env` prints: an administrator
# Role by service. Source: the page "Using service-linked roles" of each service's user guide.
SERVICE_LINKED_ROLES: Mapping[str, str] = {
    linked_service("autoscaling"): "AWSServiceRoleForAutoScaling",
    linked_service("elasticfilesystem"): "AWSServiceRoleForAmazonElasticFileSystem",
    linked_service("fsx"): "AWSServiceRoleForAmazonFSx",
    linked_service("s3.data-source.lustre.fsx"): "AWSServiceRoleForFSxS3Access",
    linked_service("spot"): "AWSServiceRoleForEC2Spot",
    linked_service("spotfleet"): "AWSServiceRoleForEC2SpotFleet",
}
