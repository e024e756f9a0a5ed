"""Whether the service-linked roles exist that AWS services need before their first use by API, and roles' boundary.

Sources: EC2 User Guide, "Service-linked role for Spot Instance requests"; FSx for Lustre and EFS User Guides, "Using
service-linked roles".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from corral.model.enums import Market
from corral.model.partitions import linked_service, partition_of
from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.iam_policies import boundary_arn, boundary_policy
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.permission_check import caller_may
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="service-roles")
PREFIX = "/aws-service-role/"
_BOOTSTRAP = "`corral bootstrap`, run by an administrator, creates it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRoleFacts:
    """`existing`: the services whose role exists. `creatable`: whether the caller may create others, if known.

    `boundary`: the boundary's ARN, and whether it is as this release needs it; None if these credentials may not see.
    """

    existing: frozenset[str]
    boundary: tuple[str, bool | None]
    creatable: Mapping[str, bool | None] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> ServiceRoleFacts:
    """One request for the roles, and a simulation for each missing one that a file system would create."""
    roles = aws.list_all("iam", "list_roles", "Roles", PathPrefix=PREFIX)
    existing = frozenset(str(role["Path"]).removeprefix(PREFIX).strip("/") for role in roles)
    missing = [one for one in _used(request) if one not in existing and one != linked_service("spot")]
    return ServiceRoleFacts(
        existing=existing,
        boundary=_boundary(aws, request.cluster.region),
        creatable={one: _may_create(aws, request, one) for one in missing},
    )


def evaluate(request: PreflightRequest, facts: ServiceRoleFacts) -> Iterator[PreflightFinding]:
    """One finding for each service that the environment uses, then one for the boundary of the cluster's roles.

    Creating a file system or a load balancer also creates the service's role, if permitted. The head, which launches
    spot instances, may not create roles.
    """
    for service in _used(request):
        if service in facts.existing:
            yield _FINDINGS.ok(service, "its role exists")
        elif service == linked_service("spot"):
            text = "has no role in this account, and the head may not create it: spot launches fail"
            yield _FINDINGS.fail(service, text, _BOOTSTRAP)
        elif (may := facts.creatable.get(service)) is None:
            text = f"has no role in this account; the first {_user(service)} creates it, if the caller may create roles"
            yield _FINDINGS.warn(service, text, _BOOTSTRAP)
        elif may:
            yield _FINDINGS.ok(service, f"its role does not exist; the first {_user(service)} creates it")
        else:
            text = "has no role in this account, and these credentials may not create it (iam:CreateServiceLinkedRole)"
            yield _FINDINGS.fail(service, text, _BOOTSTRAP)
    arn, is_current = facts.boundary
    if is_current:
        yield _FINDINGS.ok("boundary", "the policy of all roles is up to date")
    elif is_current is None:
        yield _FINDINGS.warn("boundary", f"{arn} cannot be read with these credentials", "allow iam:GetPolicy")
    else:
        text = f"{arn} does not exist or is not this release's; no role of a cluster is created without it"
        yield _FINDINGS.fail("boundary", text, "run `corral bootstrap` as an administrator")


def _user(service: str) -> str:
    """What is created with the service's role."""
    return "load balancer" if service == linked_service("elasticloadbalancing") else "file system"


def _used(request: PreflightRequest) -> tuple[str, ...]:
    """The services of the environment that have a role."""
    cluster, base = request.cluster, request.base
    used = {
        linked_service("spot"): any(offer.market is Market.SPOT for queue in cluster.queues for offer in queue.offers),
        linked_service("fsx"): bool(cluster.lustre or base.lustre),
        linked_service("elasticfilesystem"): base.home is not None,
        linked_service("elasticloadbalancing"): bool(cluster.login and cluster.login.load_balancer),
    }
    return tuple(service for service, is_used in used.items() if is_used)


def _boundary(aws: AwsQueryCache, region: str) -> tuple[str, bool | None]:
    account = str(aws.call("sts", "get_caller_identity")["Account"])
    arn = boundary_arn(region, account)
    try:
        version = aws.call("iam", "get_policy", PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = aws.call("iam", "get_policy_version", PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    except ClientError as error:
        return arn, False if error.response["Error"]["Code"] == "NoSuchEntity" else None
    return arn, found == boundary_policy(region, account)


def _may_create(aws: AwsQueryCache, request: PreflightRequest, service: str) -> bool | None:
    account, region = aws.call("sts", "get_caller_identity")["Account"], request.cluster.region
    arn = f"arn:{partition_of(region).name}:iam::{account}:role{PREFIX}{service}/*"
    context = {"iam:AWSServiceName": service}
    return caller_may(aws, Calls(actions=("iam:CreateServiceLinkedRole",), resources=(arn,), context=context))
