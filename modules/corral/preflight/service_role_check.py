"""Whether the service-linked roles exist that AWS services need before their first use by API.

Sources: EC2 User Guide, "Service-linked role for Spot Instance requests"; FSx for Lustre and EFS User Guides, "Using
service-linked roles".
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.enums import Market
from corral.model.partitions import linked_service
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="service-roles")
PREFIX = "/aws-service-role/"


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> frozenset[str]:
    """The services whose role exists."""
    roles = aws.list_all("iam", "list_roles", "Roles", PathPrefix=PREFIX)
    return frozenset(str(role["Path"]).removeprefix(PREFIX).strip("/") for role in roles)


def evaluate(request: PreflightRequest, services: frozenset[str]) -> Iterator[PreflightFinding]:
    """One finding for each service that the environment uses.

    Creating a file system also creates the service's role, if permitted. The head, which launches spot instances, may
    not create roles.
    """
    cluster, base = request.cluster, request.base
    used = {
        linked_service("spot"): any(offer.market is Market.SPOT for queue in cluster.queues for offer in queue.offers),
        linked_service("fsx"): bool(cluster.lustre),
        linked_service("elasticfilesystem"): base.home is not None,
    }
    for service, is_used in used.items():
        if not is_used:
            continue
        if service in services:
            yield _FINDINGS.ok(service, "its role exists")
        elif service == linked_service("spot"):
            text = "has no role in this account, and the head may not create it: spot launches fail"
            yield _FINDINGS.fail(service, text, "`corral bootstrap` creates it")
        else:
            text = "has no role in this account; the first file system creates it, if the caller may create roles"
            yield _FINDINGS.warn(service, text, "`corral bootstrap` creates it")
