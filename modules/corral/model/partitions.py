"""AWS's partitions: the name in ARNs, the domain of hosts, and the principals of services, by region.

An account, its ARNs and its credentials belong to one partition: the commercial regions, China, GovCloud. Sources:
botocore, partitions.json and endpoints.json, which a test compares; the others stand below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The principals of most services end so in every partition. Source: hashicorp/terraform-provider-aws#47141 and
# internal/service/meta/service_principal_data_source.go, which list the exceptions: `Partition.own_principals`.
_PRINCIPALS = "amazonaws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition. `regions`: the pattern of its regions; `dns_suffix`: the domain of its hosts.

    `iam_region`, `route53_region`: where these services, which have one endpoint for all regions, check requests.
    `own_principals`: services whose principals end in `dns_suffix`. `reversed_endpoints`: services whose VPC endpoints
    have names that begin with the reversed `dns_suffix`, in place of `com.amazonaws`.
    """

    name: str
    regions: str
    dns_suffix: str
    iam_region: str
    route53_region: str
    own_principals: frozenset[str] = frozenset()
    reversed_endpoints: frozenset[str] = frozenset()


COMMERCIAL = Partition(
    name="aws",
    regions=r"^(us|eu|ap|sa|ca|me|af|il|mx)\-\w+\-\d+$",
    dns_suffix="amazonaws.com",
    iam_region="us-east-1",
    route53_region="us-east-1",
)
PARTITIONS = (
    Partition(
        name="aws-cn",
        regions=r"^cn\-\w+\-\d+$",
        dns_suffix="amazonaws.com.cn",
        iam_region="cn-north-1",
        route53_region="cn-northwest-1",
        # Source: IAM User Guide of the China regions: trust ec2.amazonaws.com.cn; the issue above.
        own_principals=frozenset({"ec2", "logs"}),
        # Source: aws/aws-cdk, aws-ec2/lib/vpc-endpoint.ts, from describe-vpc-endpoint-services in both regions. That of
        # S3 is the interface endpoint; the gateway keeps the common name (aws-samples, weaveworks/eksctl).
        reversed_endpoints=frozenset({"ec2", "ecr.api", "ecr.dkr", "elasticfilesystem", "fsx", "monitoring", "sts"}),
    ),
    Partition(
        name="aws-us-gov",
        regions=r"^us\-gov\-\w+\-\d+$",
        dns_suffix="amazonaws.com",
        iam_region="us-gov-west-1",
        route53_region="us-gov-west-1",
    ),
    COMMERCIAL,
)


def partition_of(region: str) -> Partition:
    """Return the region's partition; the commercial one for a region that no pattern matches."""
    return next((one for one in PARTITIONS if re.match(one.regions, region)), COMMERCIAL)


def service_principal(service: str, region: str) -> str:
    """Return the principal of a service in policies of this region, such as ec2.amazonaws.com."""
    partition = partition_of(region)
    return f"{service}.{partition.dns_suffix if service in partition.own_principals else _PRINCIPALS}"


def linked_service(service: str) -> str:
    """Return the service's name in the path of its service-linked role, the same in every partition."""
    return f"{service}.{_PRINCIPALS}"


def endpoint_service(service: str, region: str) -> str:
    """Return the name of a service for a VPC endpoint, such as com.amazonaws.us-east-1.s3."""
    partition = partition_of(region)
    suffix = partition.dns_suffix if service in partition.reversed_endpoints else COMMERCIAL.dns_suffix
    return f"{'.'.join(reversed(suffix.split('.')))}.{region}.{service}"
