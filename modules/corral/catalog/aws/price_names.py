"""The names in AWS's price list of the services that the catalog has prices for.

Source: products of the Price List API as copied in public repositories: EC2's NAT gateway (M2YSHUBETB3JX4M4) and gp3
(volumeApiName), FSx for Lustre in us-west-2 on 2026-07-14 (operation CreateFileSystem:Lustre; Storage.SSD.50), EFS
(ETDataAccess-Bytes by accessType). NOT VERIFIED, from memory: the prefix of usage types in most regions, Lustre on
HDD, and the deployment option of PERSISTENT_1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from corral.catalog.aws.lustre import LustreDeployment, lustre_choices

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
    "cn-north-1": "CNN1", "cn-northwest-1": "CNW1", "us-gov-east-1": "UGE1", "us-gov-west-1": "UGW1",
}  # fmt: skip
_BARE = (EC2, "us-east-1")  # its usage types have no prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceListProduct:
    """A product in the price list. `usage`: its usage type without the region's prefix; `attributes`: more filters."""

    service: str
    family: str
    usage: str
    operation: str
    unit: str
    description: str
    attributes: Mapping[str, str] = field(default_factory=dict)


def usage_type(service: str, region: str, usage: str) -> str:
    """Return the name of this usage type in this region."""
    return usage if (service, region) == _BARE else f"{_PREFIXES.get(region, region)}-{usage}"


@cache
def price_list_products() -> Mapping[str, PriceListProduct]:
    """Return the price list's products by the catalog's service names (gp3-gib-month)."""
    return MappingProxyType({**_DISKS_AND_GATEWAYS, **_HOMES, **dict(_lustre())})


_GATEWAY = {"group": "NGW:NatGateway", "groupDescription": "Hourly charge for NAT Gateways"}
_BY_GB = {"group": "NGW:NatGateway", "groupDescription": "Charge for per GB data processed by NatGateways"}
_DISKS_AND_GATEWAYS = {
    "gp3-gib-month": PriceListProduct(
        service=EC2,
        family="Storage",
        usage="EBS:VolumeUsage.gp3",
        operation="",
        unit="GB-Mo",
        description="per GB-month of General Purpose (gp3) provisioned storage",
        attributes={"volumeApiName": "gp3", "volumeType": "General Purpose", "storageMedia": "SSD-backed"},
    ),
    "nat-gateway-hour": PriceListProduct(
        service=EC2,
        family="NAT Gateway",
        usage="NatGateway-Hours",
        operation="NatGateway",
        unit="Hrs",
        description="per NAT Gateway Hour",
        attributes=_GATEWAY,
    ),
    "nat-gateway-gb": PriceListProduct(
        service=EC2,
        family="NAT Gateway",
        usage="NatGateway-Bytes",
        operation="NatGateway",
        unit="GB",
        description="per GB Data Processed by NAT Gateways",
        attributes=_BY_GB,
    ),
}


def _efs_access(way: str) -> PriceListProduct:
    return PriceListProduct(
        service=EFS,
        family="Storage",
        usage="ETDataAccess-Bytes",
        operation=way,
        unit="GB",
        description="per GB of data access with Elastic Throughput",
        attributes={"accessType": way},
    )


_HOMES = {
    "efs-gib-month": PriceListProduct(
        service=EFS,
        family="Storage",
        usage="TimedStorage-ByteHrs",
        operation="",
        unit="GB-Mo",
        description="per GB-month of Standard storage",
        attributes={"storageClass": "General Purpose"},
    ),
    "efs-elastic-read-gb": _efs_access("Read"),
    "efs-elastic-written-gb": _efs_access("Write"),
}


def _lustre() -> Iterator[tuple[str, PriceListProduct]]:
    for choice in lustre_choices():
        yield choice.price_name, _deployment(choice)
    for name, family, usage, unit, description in (
        ("lustre-metadata-iops-month", "Provisioned IOPS", "MetadataIOPS", "IOPS-Mo", "per IOPS-month of metadata"),
        ("lustre-backup-gib-month", "Storage", "BackupUsage", "GB-Mo", "per GB-month of backups"),
    ):
        yield name, _of_lustre(family, usage, unit, description, {"deploymentOption": "Persistent"})


def _deployment(choice: LustreDeployment) -> PriceListProduct:
    """Return the product of a deployment. SCRATCH_2 has no tier in its usage type or throughput."""
    tier = choice.throughput_mbps_per_tib
    attributes = {
        "deploymentOption": "Single-AZ" if tier is None else "Persistent",
        "storageType": choice.storage,
        "throughputCapacity": "N/A" if tier is None else str(tier),
    }
    usage = "Storage" if tier is None else f"Storage.{choice.storage}.{tier}"
    return _of_lustre("Storage", usage, "GB-Mo", f"per GB-month of Lustre {choice.name} storage", attributes)


def _of_lustre(family: str, usage: str, unit: str, description: str, attributes: Mapping[str, str]) -> PriceListProduct:
    return PriceListProduct(
        service=FSX,
        family=family,
        usage=usage,
        operation="CreateFileSystem:Lustre",
        unit=unit,
        description=description,
        attributes={"fileSystemType": "Lustre", **attributes},
    )
