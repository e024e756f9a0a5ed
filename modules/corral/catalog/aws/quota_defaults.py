"""Service quotas: their codes, and the values of a new account. Preflight queries the account's own values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One quota of an account and region. `default`: the value of a new account, in `unit`.

    For a quota on vCPUs, `market` is EC2's usage class (on-demand, spot, capacity-block), and `families` are patterns
    of the instance families that count; for others `market` is None.
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
    """Return every quota of the catalog by code, sorted by service and code."""
    found = sorted(map(_quota, read_csv("quotas.csv")), key=lambda quota: (quota.service, quota.code))
    return MappingProxyType({quota.code: quota for quota in found})


def find_quota(code: str) -> Quota:
    """Return the quota of this code. Raises UnknownName."""
    if code not in quotas():
        raise UnknownName("quota", code, quotas())
    return quotas()[code]


def vcpu_quota(instance_type: str, market: str) -> Quota | None:
    """Return the quota on the vCPUs of this type in this market; None if the catalog has none."""
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
