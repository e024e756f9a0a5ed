"""Resources of other services: most from the tagging API; IAM resources, zones and file systems from their own APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from corral.catalog.aws.lustre import lustre_choices
from corral.inventory.ec2_resources import tags_of
from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.tags import BASE_TAG

_BYTES_PER_GIB = 2**30
# How Pulumi names the resources of `identity` and `guards`: listing every role of an account takes minutes.
_OUR_ROLES, _OUR_POLICIES, _OUR_ZONES = "identity-", "guards-", ".corral.internal."
# Service and start of the resource part of an ARN -> the kind. The rest of the resource part is the id.
_KINDS = {
    ("s3", ""): ResourceKind.BUCKET,
    ("kms", "key/"): ResourceKind.KEY,
    ("logs", "log-group:"): ResourceKind.LOG_GROUP,
    ("ssm", "parameter"): ResourceKind.PARAMETER,
    ("secretsmanager", "secret:"): ResourceKind.SECRET,
    ("sns", ""): ResourceKind.TOPIC,
    ("cloudwatch", "alarm:"): ResourceKind.ALARM,
    ("elasticloadbalancing", "loadbalancer/net/"): ResourceKind.LOAD_BALANCER,
    ("elasticloadbalancing", "targetgroup/"): ResourceKind.TARGET_GROUP,
}
_READ_ELSEWHERE = frozenset({"ec2", "elasticfilesystem", "fsx", "iam", "route53"})
# These services take the ARN instead of a name.
_WHOLE_ARN = frozenset({ResourceKind.TOPIC, ResourceKind.SECRET, ResourceKind.LOAD_BALANCER, ResourceKind.TARGET_GROUP})
_LISTENERS = "listener/"  # of a load balancer, with which they are deleted


def read_tagged(session: Any) -> Iterator[AwsResource]:
    """The resources that the tagging API lists with the base's tag, except services with their own readers.

    Keys that wait for their deletion keep their tags; they are omitted. So are listeners, which belong to a load
    balancer.
    """
    kms = session.client("kms")
    pages = session.client("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in pages.paginate(TagFilters=[{"Key": BASE_TAG}]):
        for item in page["ResourceTagMappingList"]:
            if item["ResourceARN"].split(":")[2] in _READ_ELSEWHERE or _is_listener(item["ResourceARN"]):
                continue
            resource = _from_arn(item["ResourceARN"], item["Tags"])
            if resource.kind is ResourceKind.LOAD_BALANCER:
                yield from _balancer(session.client("elbv2"), resource)
            elif resource.kind is not ResourceKind.KEY:
                yield resource
            elif (kind := _kind_of_key(kms, resource.id)) is not None:
                yield replace(resource, kind=kind)


def _is_listener(arn: str) -> bool:
    return arn.split(":")[2] == "elasticloadbalancing" and arn.split(":", 5)[5].startswith(_LISTENERS)


def _balancer(elbv2: Any, resource: AwsResource) -> Iterator[AwsResource]:
    """The load balancer with its name in DNS; none if it was deleted, which the tagging API lists for a while."""
    try:
        found = elbv2.describe_load_balancers(LoadBalancerArns=[resource.id])["LoadBalancers"]
    except elbv2.exceptions.LoadBalancerNotFoundException:
        return
    for one in found:
        yield replace(resource, address=one["DNSName"], type=one["Scheme"], state=one["State"]["Code"])


def _kind_of_key(kms: Any, key: str) -> ResourceKind | None:
    """Whether the key signs or encrypts; None if it is deleted, or waits for its deletion."""
    try:
        found = kms.describe_key(KeyId=key)["KeyMetadata"]
    except kms.exceptions.NotFoundException:
        return None
    if found["KeyState"] == "PendingDeletion":
        return None
    return ResourceKind.SIGNING_KEY if found.get("KeyUsage") == "SIGN_VERIFY" else ResourceKind.KEY


def read_file_systems(session: Any) -> Iterator[AwsResource]:
    """EFS and FSx file systems with the base's tag, with their sizes."""
    for page in session.client("efs").get_paginator("describe_file_systems").paginate():
        for item in page["FileSystems"]:
            size = item["SizeInBytes"]["Value"] / _BYTES_PER_GIB
            yield from _own(ResourceKind.HOME, item["FileSystemId"], item["Tags"], item["LifeCycleState"], size)
    for page in session.client("fsx").get_paginator("describe_file_systems").paginate():
        for item in page["FileSystems"]:
            tags, size = item.get("Tags", []), item["StorageCapacity"]
            yield from _own(
                ResourceKind.LUSTRE, item["FileSystemId"], tags, item.get("Lifecycle"), size, _lustre_type(item)
            )


def _lustre_type(item: Mapping[str, Any]) -> str | None:
    """The name in the catalog: deployment, disks, throughput if selectable, and a cache."""
    settings = item.get("LustreConfiguration", {})
    throughput = settings.get("PerUnitStorageThroughput")
    deployment: str | None = settings.get("DeploymentType")
    wanted = (deployment, item.get("StorageType", "SSD"), throughput)
    rows = lustre_choices()
    row = next((r for r in rows if (r.deployment_type, r.storage, r.throughput_mbps_per_tib) == wanted), None)
    if row is None:
        return deployment
    return row.cached_name if settings.get("DriveCacheType") == "READ" else row.name


def read_zones(session: Any) -> Iterator[AwsResource]:
    """The private DNS zones of clusters, with the base's tag; read from Route 53, which has no region."""
    route53 = session.client("route53")
    for zone in _listed(route53, "list_hosted_zones", "HostedZones"):
        if zone["Name"].endswith(_OUR_ZONES):
            id = zone["Id"].removeprefix("/hostedzone/")
            found = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=id)["ResourceTagSet"]
            yield from _own(ResourceKind.DNS_ZONE, id, found.get("Tags", []))


def read_iam(session: Any) -> Iterator[AwsResource]:
    """Roles, instance profiles and policies with the base's tag. IAM lists without tags: one more call for each."""
    iam = session.client("iam")
    for role in _listed(iam, "list_roles", "Roles"):
        if (name := role["RoleName"]).startswith(_OUR_ROLES):
            yield from _own(ResourceKind.ROLE, name, iam.get_role(RoleName=name)["Role"].get("Tags", []))
    for profile in _listed(iam, "list_instance_profiles", "InstanceProfiles"):
        if (name := profile["InstanceProfileName"]).startswith(_OUR_ROLES):
            found = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
            yield from _own(ResourceKind.INSTANCE_PROFILE, name, found.get("Tags", []))
    for policy in _listed(iam, "list_policies", "Policies", Scope="Local"):
        if policy["PolicyName"].startswith(_OUR_POLICIES):
            found = iam.get_policy(PolicyArn=policy["Arn"])["Policy"]
            yield from _own(ResourceKind.POLICY, policy["Arn"], found.get("Tags", []))


def _from_arn(arn: str, tags: Any) -> AwsResource:
    service, rest = arn.split(":")[2], arn.split(":", 5)[5]
    for (known, prefix), kind in _KINDS.items():
        if service == known and rest.startswith(prefix):
            return AwsResource(
                kind=kind, id=arn if kind in _WHOLE_ARN else rest.removeprefix(prefix), tags=tags_of(tags)
            )
    return AwsResource(kind=ResourceKind.OTHER, id=arn, tags=tags_of(tags))


def _own(
    kind: ResourceKind,
    id: str,
    pairs: Any,
    state: str | None = None,
    size: float | None = None,
    type: str | None = None,
) -> Iterator[AwsResource]:
    tags = tags_of(pairs)
    if BASE_TAG in tags and str(state).lower() not in ("deleted", "deleting"):
        yield AwsResource(kind=kind, id=id, tags=tags, state=state, size_gib=size, type=type)


def _listed(client: Any, call: str, answer: str, **arguments: Any) -> Iterator[Any]:
    for page in client.get_paginator(call).paginate(**arguments):
        yield from page[answer]
