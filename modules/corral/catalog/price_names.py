"""What AWS's price list calls the services that the catalogue has prices of: a table, without prices.

Source: products of the Price List API as public repositories keep them: EC2's NAT gateway (M2YSHUBETB3JX4M4) and gp3
(volumeApiName), FSx for Lustre in us-west-2 on 2026-07-14 (operation CreateFileSystem:Lustre; Storage.SSD.50), EFS
(ETDataAccess-Bytes by accessType). NOT VERIFIED, from memory: with what usage types begin in most regions, Lustre on
HDD, and the deployment option of PERSISTENT_1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from corral.catalog.lustre import LustreDeployment, lustre_choices

EC2, EFS, FSX = "AmazonEC2", "AmazonEFS", "AmazonFSx"
SERVICES = MappingProxyType({EC2: "Amazon Elastic Compute Cloud", EFS: "Amazon Elastic File System", FSX: "Amazon FSx"})
_PREFIXES = {
    "af-south-1": "AFS1", "ap-east-1": "APE1", "ap-northeast-1": "APN1", "ap-northeast-2": "APN2",
    "ap-northeast-3": "APN3", "ap-south-1": "APS3", "ap-south-2": "APS5", "ap-southeast-1": "APS1",
    "ap-southeast-2": "APS2", "ap-southeast-3": "APS4", "ap-southeast-4": "APS6", "ap-southeast-5": "APS7",
    "ca-central-1": "CAN1", "ca-west-1": "CAN2", "eu-central-1": "EUC1", "eu-central-2": "EUC2", "eu-north-1": "EUN1",
    "eu-south-1": "EUS1", "eu-south-2": "EUS2", "eu-west-1": "EU", "eu-west-2": "EUW2", "eu-west-3": "EUW3",
    "il-central-1": "ILC1", "me-central-1": "MEC1", "me-south-1": "MES1", "mx-central-1": "MXC1", "sa-east-1": "SAE1",
    "us-east-1": "USE1", "us-east-2": "USE2", "us-west-1": "USW1", "us-west-2": "USW2",
}  # fmt: skip
_BARE = (EC2, "us-east-1")  # whose usage types have no beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """How the price list describes what is sold: its service, family, usage type without a region, and `more`."""

    service: str
    family: str
    usage: str
    operation: str
    unit: str
    words: str
    more: Mapping[str, str] = field(default_factory=dict)


def usage_type(service: str, region: str, usage: str) -> str:
    """The usage type as it is called in this region."""
    return usage if (service, region) == _BARE else f"{_PREFIXES.get(region, region)}-{usage}"


@cache
def articles() -> Mapping[str, Article]:
    """What the price list calls the services of the catalogue, by the names of the catalogue (gp3-gib-month)."""
    return MappingProxyType({**_DISKS_AND_GATEWAYS, **_HOMES, **dict(_lustre())})


_GATEWAY = {"group": "NGW:NatGateway", "groupDescription": "Hourly charge for NAT Gateways"}
_BY_GB = {"group": "NGW:NatGateway", "groupDescription": "Charge for per GB data processed by NatGateways"}
_DISKS_AND_GATEWAYS = {
    "gp3-gib-month": Article(
        service=EC2,
        family="Storage",
        usage="EBS:VolumeUsage.gp3",
        operation="",
        unit="GB-Mo",
        words="per GB-month of General Purpose (gp3) provisioned storage",
        more={"volumeApiName": "gp3", "volumeType": "General Purpose", "storageMedia": "SSD-backed"},
    ),
    "nat-gateway-hour": Article(
        service=EC2,
        family="NAT Gateway",
        usage="NatGateway-Hours",
        operation="NatGateway",
        unit="Hrs",
        words="per NAT Gateway Hour",
        more=_GATEWAY,
    ),
    "nat-gateway-gb": Article(
        service=EC2,
        family="NAT Gateway",
        usage="NatGateway-Bytes",
        operation="NatGateway",
        unit="GB",
        words="per GB Data Processed by NAT Gateways",
        more=_BY_GB,
    ),
}


def _moved(way: str) -> Article:
    return Article(
        service=EFS,
        family="Storage",
        usage="ETDataAccess-Bytes",
        operation=way,
        unit="GB",
        words="per GB of data access with Elastic Throughput",
        more={"accessType": way},
    )


_HOMES = {
    "efs-gib-month": Article(
        service=EFS,
        family="Storage",
        usage="TimedStorage-ByteHrs",
        operation="",
        unit="GB-Mo",
        words="per GB-month of Standard storage",
        more={"storageClass": "General Purpose"},
    ),
    "efs-elastic-read-gb": _moved("Read"),
    "efs-elastic-written-gb": _moved("Write"),
}


def _lustre() -> Iterator[tuple[str, Article]]:
    for choice in lustre_choices():
        yield choice.price_name, _deployment(choice)
    for name, family, usage, unit, words in (
        ("lustre-metadata-iops-month", "Provisioned IOPS", "MetadataIOPS", "IOPS-Mo", "per IOPS-month of metadata"),
        ("lustre-backup-gib-month", "Storage", "BackupUsage", "GB-Mo", "per GB-month of backups"),
    ):
        yield name, _of_lustre(family, usage, unit, words, {"deploymentOption": "Persistent"})


def _deployment(choice: LustreDeployment) -> Article:
    """SCRATCH_2 has no tier, in its usage type and in its throughput."""
    tier = choice.throughput_mbps_per_tib
    more = {
        "deploymentOption": "Single-AZ" if tier is None else "Persistent",
        "storageType": choice.storage,
        "throughputCapacity": "N/A" if tier is None else str(tier),
    }
    usage = "Storage" if tier is None else f"Storage.{choice.storage}.{tier}"
    return _of_lustre("Storage", usage, "GB-Mo", f"per GB-month of Lustre {choice.name} storage", more)


def _of_lustre(family: str, usage: str, unit: str, words: str, more: Mapping[str, str]) -> Article:
    return Article(
        service=FSX,
        family=family,
        usage=usage,
        operation="CreateFileSystem:Lustre",
        unit=unit,
        words=words,
        more={"fileSystemType": "Lustre", **more},
    )
