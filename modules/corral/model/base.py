"""The plan of a base: the long-lived network, kept data and keys that clusters stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePlan:
    """One availability zone of the VPC. AWS assigns none of the addresses in `heads` (inside `private`) by itself."""

    zone_id: str
    private: IPv4Network
    heads: IPv4Network


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPlan:
    """The one small public subnet, for the NAT gateway alone."""

    zone_id: str
    cidr: IPv4Network


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePlan:
    """The EFS file system for /home. `token` makes a second creation fail instead of giving an empty second home."""

    token: str
    throughput: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """A monthly budget that tells people; it stops nothing (AWS's billing data lags by hours)."""

    usd_per_month: int
    notify: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePlan:
    """Everything that a base consists of."""

    name: str
    region: str
    vpc_cidr: IPv4Network
    zones: tuple[ZonePlan, ...]
    public: PublicPlan
    interface_endpoints: tuple[str, ...]
    home: HomePlan | None
    budget: BudgetPlan | None
    tags: Mapping[str, str] = field(default_factory=dict)

    def zone(self, zone_id: str) -> ZonePlan:
        """The zone with this id. Raises KeyError where the base has none."""
        for zone in self.zones:
            if zone.zone_id == zone_id:
                return zone
        raise KeyError(zone_id)
