"""Service quotas: their codes, and what a new account has. What an account has today is preflight's question to AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_csv


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One quota of an account and region. `default`: of a new account, in `unit`.

    `market` is EC2's usage class (on-demand, spot, capacity-block) where the quota is on the vCPUs of a market, else
    None; `families` are then patterns of the instance families that count.
    """

    service: str
    code: str
    name: str
    default: float
    unit: str
    adjustable: bool
    market: str | None
    families: tuple[str, ...]
    source: str


@cache
def quotas() -> Mapping[str, Quota]:
    """Every quota of the catalogue by its code, sorted by service and code."""
    found = sorted(map(_quota, read_csv("quotas.csv")), key=lambda quota: (quota.service, quota.code))
    return MappingProxyType({quota.code: quota for quota in found})


def find_quota(code: str) -> Quota:
    """The quota of this code. Raises UnknownName where the catalogue has none."""
    if code not in quotas():
        raise UnknownName("quota", code, quotas())
    return quotas()[code]


def vcpu_quota(instance_type: str, market: str) -> Quota | None:
    """The quota on the vCPUs of this type in this market; None where the catalogue knows none."""
    family = instance_type.partition(".")[0]
    counted = (quota for quota in quotas().values() if quota.market == market)
    return next((quota for quota in counted if any(fnmatchcase(family, one) for one in quota.families)), None)


def _quota(row: Mapping[str, str]) -> Quota:
    return Quota(
        service=row["service"],
        code=row["code"],
        name=row["name"],
        default=float(row["default"]),
        unit=row["unit"],
        adjustable=row["adjustable"] == "yes",
        market=row["market"] or None,
        families=tuple(row["families"].split()),
        source=row["source"],
    )
