"""Whether retained file systems can be reused, and the declared ones are offered in the region.

Sources: FSx API reference, FileSystem (Lifecycle), UpdateFileSystem (a file system only grows); FSx for Lustre User
Guide, "Lustre file system and client kernel compatibility"; EFS API reference, FileSystemDescription.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.aws.lustre import find_lustre_deployment
from corral.catalog.aws.prices import service_price
from corral.inventory.ec2_resources import tags_of
from corral.model.lustre import LustrePlan
from corral.model.tags import BASE_TAG, KEEP_LUSTRE_PREFIX, KEEP_TAG, tag_filter
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="file-systems")
_GOOD = frozenset({"available", "updating", "creating"})
# Lustre 2.15 is the client of every image profile; it does not mount what runs 2.10.
_TOO_OLD = frozenset({"2.10"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedFileSystem:
    """A file system of an earlier deployment. `locations`: VPC, and zone by id and by name, of each mount target."""

    id: str
    state: str
    locations: tuple[tuple[str, frozenset[str]], ...] = ()
    version: str = ""
    deployment: str = ""
    size_gib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemFacts:
    """`lustre`: by name. `vpcs`: the base's, adopted or retained; empty before its first deployment."""

    vpcs: frozenset[str] = frozenset()
    homes: tuple[RetainedFileSystem, ...] = ()
    lustre: Mapping[str, RetainedFileSystem] | None = None


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> FileSystemFacts:
    """The file systems with the base's tags."""
    base = request.base
    of_base = [tag_filter(BASE_TAG, base.name)]
    made = aws.list_all("ec2", "describe_vpcs", "Vpcs", Filters=of_base)
    vpcs = frozenset([base.adopted_vpc] if base.adopted_vpc else [str(one["VpcId"]) for one in made])
    return FileSystemFacts(vpcs=vpcs, homes=tuple(_homes(aws, request)), lustre=dict(_lustre(aws, request)))


def evaluate(request: PreflightRequest, facts: FileSystemFacts) -> Iterator[PreflightFinding]:
    """The home, then each Lustre file system."""
    for home in facts.homes:
        yield from _findings("home", home, [*_alive(home), *_elsewhere(home, facts)])
    if request.base.home and not facts.homes:
        yield _FINDINGS.ok("home", "created by the base")
    for plan in request.cluster.lustre:
        about, retained = f"Lustre {plan.name}", (facts.lustre or {}).get(plan.name) if plan.retained else None
        yield from _offered(about, plan, request.cluster.region)
        if retained is not None:
            yield from _findings(
                about, retained, [*_alive(retained), *_elsewhere(retained, facts), *_differs(retained, plan)]
            )


def _findings(about: str, retained: RetainedFileSystem, problems: list[tuple[str, str]]) -> Iterator[PreflightFinding]:
    for text, fix in problems:
        yield _FINDINGS.fail(about, f"{retained.id}, which the base retains, {text}", fix)
    if not problems:
        yield _FINDINGS.ok(about, f"{retained.id}, which the base retains, is {retained.state}")


def _alive(retained: RetainedFileSystem) -> Iterator[tuple[str, str]]:
    if retained.state not in _GOOD:
        yield f"is {retained.state}", "check its state in the AWS console; restore it from a backup if needed"


def _elsewhere(retained: RetainedFileSystem, facts: FileSystemFacts) -> Iterator[tuple[str, str]]:
    strange = sorted({vpc for vpc, _ in retained.locations} - facts.vpcs)
    if strange:
        own = ", ".join(sorted(facts.vpcs)) or "a VPC that the base creates"
        fix = (
            "adopt that VPC (network.adopt), or remove the base's tags" if retained.deployment else "delete these first"
        )
        what = "is" if retained.deployment else "has mount targets"
        yield f"{what} in {', '.join(strange)}, but the machines will be in {own}", fix


def _differs(retained: RetainedFileSystem, plan: LustrePlan) -> Iterator[tuple[str, str]]:
    if retained.version in _TOO_OLD:
        fix = "upgrade it: `aws fsx update-file-system --file-system-type-version 2.15`"
        yield f"runs Lustre {retained.version}, which the images' client 2.15 cannot mount", fix
    if retained.deployment != plan.deployment:
        yield (
            f"is {retained.deployment}, but the spec declares {plan.deployment}",
            "declare this deployment, or use another name",
        )
    if retained.size_gib > plan.size_gib:
        text = f"has {retained.size_gib:,} GiB, but the spec declares {plan.size_gib:,}, and Lustre cannot shrink"
        yield text, f"size_gib: {retained.size_gib}"
    zones = {zone for _, names in retained.locations for zone in names}
    if zones and plan.zone_id not in zones:
        where = ", ".join(sorted(zone for zone in zones if "-az" in zone) or sorted(zones))
        yield f"is in {where}, but the spec declares {plan.zone_id}", f"zone: {where}"


def _offered(about: str, plan: LustrePlan, region: str) -> Iterator[PreflightFinding]:
    """AWS does not list the regions of a deployment type, but the price list has a price only where it is offered."""
    row = find_lustre_deployment(
        plan.deployment, storage=plan.disks, throughput_mbps_per_tib=plan.throughput_mbps_per_tib
    )
    if service_price(row.price_name, region):
        yield _FINDINGS.ok(about, f"{row.name} is offered in {region}")
    else:
        text = f"the price list has no {row.name} in {region}; FSx may not offer it there"
        yield _FINDINGS.warn(about, text, "check the FSx console, or use another deployment")


def _homes(aws: AwsQueryCache, request: PreflightRequest) -> Iterator[RetainedFileSystem]:
    if request.base.home is None:
        return
    token = request.base.home.token
    for system in aws.list_all("efs", "describe_file_systems", "FileSystems", CreationToken=token):
        id = str(system["FileSystemId"])
        targets = aws.list_all("efs", "describe_mount_targets", "MountTargets", FileSystemId=id)
        locations = tuple(
            (str(one["VpcId"]), frozenset({str(one["AvailabilityZoneId"]), str(one["AvailabilityZoneName"])}))
            for one in targets
        )
        yield RetainedFileSystem(id=id, state=str(system["LifeCycleState"]), locations=locations)


def _lustre(aws: AwsQueryCache, request: PreflightRequest) -> Iterator[tuple[str, RetainedFileSystem]]:
    if not any(system.retained for system in request.cluster.lustre):
        return
    for system in aws.list_all("fsx", "describe_file_systems", "FileSystems"):
        tags = tags_of(system.get("Tags", ()))
        word = tags.get(KEEP_TAG, "")
        if tags.get(BASE_TAG) == request.base.name and word.startswith(KEEP_LUSTRE_PREFIX):
            subnets = aws.list_existing("ec2", "describe_subnets", "Subnets", SubnetIds=list(system["SubnetIds"]))
            zones = frozenset(str(one[key]) for one in subnets for key in ("AvailabilityZoneId", "AvailabilityZone"))
            yield (
                word.removeprefix(KEEP_LUSTRE_PREFIX),
                RetainedFileSystem(
                    id=str(system["FileSystemId"]),
                    state=str(system["Lifecycle"]).lower(),
                    locations=((str(system["VpcId"]), zones),),
                    version=str(system.get("FileSystemTypeVersion", "")),
                    deployment=str(system["LustreConfiguration"]["DeploymentType"]),
                    size_gib=int(system["StorageCapacity"]),
                ),
            )
