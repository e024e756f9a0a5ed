"""Whether file systems that a base kept can be taken over, and those that are wished are offered in the region.

Sources: FSx API reference, FileSystem (Lifecycle), UpdateFileSystem (a file system only grows); FSx for Lustre User
Guide, "Lustre file system and client kernel compatibility"; EFS API reference, FileSystemDescription.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.lustre import find_lustre_deployment
from corral.catalog.prices import service_price
from corral.inventory.ec2 import tags_of
from corral.inventory.things import BASE_TAG, KEEP_TAG
from corral.model.lustre import LustrePlan
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="file-systems")
_KEPT_WORD = "lustre-fs-"
_GOOD = frozenset({"available", "updating", "creating"})
# Lustre 2.15 is the client of every image profile; it does not mount what runs 2.10.
_TOO_OLD = frozenset({"2.10"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file system of an earlier life. `places`: VPC and zone, by id and by name, of each of its ends."""

    id: str
    state: str
    places: tuple[tuple[str, frozenset[str]], ...] = ()
    version: str = ""
    deployment: str = ""
    size_gib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`lustre`: by name. `vpcs`: those that are the base's, adopted or kept; empty before its first up."""

    vpcs: frozenset[str] = frozenset()
    homes: tuple[Kept, ...] = ()
    lustre: Mapping[str, Kept] | None = None


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """What there is with the base's tags."""
    base = wanted.base
    of_base = [{"Name": f"tag:{BASE_TAG}", "Values": [base.name]}]
    made = answers.every("ec2", "describe_vpcs", "Vpcs", Filters=of_base)
    vpcs = frozenset([base.adopted_vpc] if base.adopted_vpc else [str(one["VpcId"]) for one in made])
    return Facts(vpcs=vpcs, homes=tuple(_homes(answers, wanted)), lustre=dict(_lustre(answers, wanted)))


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """The home, then each Lustre file system."""
    for home in facts.homes:
        yield from _judged("home", home, [*_alive(home), *_elsewhere(home, facts)])
    if wanted.base.home and not facts.homes:
        yield _TELL.ok("home", "made by the base")
    for plan in wanted.cluster.lustre:
        about, kept = f"Lustre {plan.name}", (facts.lustre or {}).get(plan.name) if plan.kept else None
        yield from _offered(about, plan, wanted.cluster.region)
        if kept is not None:
            yield from _judged(about, kept, [*_alive(kept), *_elsewhere(kept, facts), *_differs(kept, plan)])


def _judged(about: str, kept: Kept, problems: list[tuple[str, str]]) -> Iterator[Finding]:
    for text, fix in problems:
        yield _TELL.fail(about, f"{kept.id}, which the base keeps, {text}", fix)
    if not problems:
        yield _TELL.ok(about, f"{kept.id}, which the base keeps, is {kept.state}")


def _alive(kept: Kept) -> Iterator[tuple[str, str]]:
    if kept.state not in _GOOD:
        yield f"is {kept.state}", "see what AWS says of it; from a backup it can be made anew"


def _elsewhere(kept: Kept, facts: Facts) -> Iterator[tuple[str, str]]:
    strange = sorted({vpc for vpc, _ in kept.places} - facts.vpcs)
    if strange:
        own = ", ".join(sorted(facts.vpcs)) or "a VPC that the base makes"
        fix = "adopt that VPC (network.adopt), or take the base's tags off" if kept.deployment else "delete these first"
        what = "is" if kept.deployment else "has mount targets"
        yield f"{what} in {', '.join(strange)}, and the machines will be in {own}", fix


def _differs(kept: Kept, plan: LustrePlan) -> Iterator[tuple[str, str]]:
    if kept.version in _TOO_OLD:
        fix = "raise it: `aws fsx update-file-system --file-system-type-version 2.15`"
        yield f"runs Lustre {kept.version}, which the images' client 2.15 does not mount", fix
    if kept.deployment != plan.deployment:
        yield f"is {kept.deployment}, the spec says {plan.deployment}", "say what it is, or give it another name"
    if kept.size_gib > plan.size_gib:
        text = f"has {kept.size_gib:,} GiB, the spec says {plan.size_gib:,}, and Lustre only grows"
        yield text, f"size_gib: {kept.size_gib}"
    zones = {zone for _, names in kept.places for zone in names}
    if zones and plan.zone_id not in zones:
        where = ", ".join(sorted(zone for zone in zones if "-az" in zone) or sorted(zones))
        yield f"is in {where}, the spec says {plan.zone_id}", f"zone: {where}"


def _offered(about: str, plan: LustrePlan, region: str) -> Iterator[Finding]:
    """AWS has no list of where a deployment is offered; its price list has a price only there."""
    row = find_lustre_deployment(
        plan.deployment, storage=plan.disks, throughput_mbps_per_tib=plan.throughput_mbps_per_tib
    )
    if service_price(row.price_name, region):
        yield _TELL.ok(about, f"{row.name} is offered in {region}")
    else:
        text = f"the price list has no {row.name} in {region}: FSx may not offer it there"
        yield _TELL.warn(about, text, "see the FSx console, or another deployment")


def _homes(answers: Answers, wanted: Wanted) -> Iterator[Kept]:
    if wanted.base.home is None:
        return
    token = wanted.base.home.token
    for system in answers.every("efs", "describe_file_systems", "FileSystems", CreationToken=token):
        id = str(system["FileSystemId"])
        targets = answers.every("efs", "describe_mount_targets", "MountTargets", FileSystemId=id)
        places = tuple(
            (str(one["VpcId"]), frozenset({str(one["AvailabilityZoneId"]), str(one["AvailabilityZoneName"])}))
            for one in targets
        )
        yield Kept(id=id, state=str(system["LifeCycleState"]), places=places)


def _lustre(answers: Answers, wanted: Wanted) -> Iterator[tuple[str, Kept]]:
    if not any(system.kept for system in wanted.cluster.lustre):
        return
    for system in answers.every("fsx", "describe_file_systems", "FileSystems"):
        tags = tags_of(system.get("Tags", ()))
        word = tags.get(KEEP_TAG, "")
        if tags.get(BASE_TAG) == wanted.base.name and word.startswith(_KEPT_WORD):
            subnets = answers.named("ec2", "describe_subnets", "Subnets", SubnetIds=list(system["SubnetIds"]))
            zones = frozenset(str(one[key]) for one in subnets for key in ("AvailabilityZoneId", "AvailabilityZone"))
            yield (
                word.removeprefix(_KEPT_WORD),
                Kept(
                    id=str(system["FileSystemId"]),
                    state=str(system["Lifecycle"]).lower(),
                    places=((str(system["VpcId"]), zones),),
                    version=str(system.get("FileSystemTypeVersion", "")),
                    deployment=str(system["LustreConfiguration"]["DeploymentType"]),
                    size_gib=int(system["StorageCapacity"]),
                ),
            )
