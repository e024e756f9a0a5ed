"""The plan of a base: the long-lived network, kept data and keys that clusters stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from corral.model.lustre import LustrePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePlan:
    """One availability zone of the VPC, under the name by which the base declares it: its id, or its account's name.

    AWS assigns none of the addresses in `heads` (inside `private`) by itself. In an adopted subnet, whose id is
    `subnet`, nothing is kept for heads.
    """

    zone_id: str
    private: IPv4Network
    heads: IPv4Network | None
    subnet: str | None = None


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
    """Everything that a base consists of. `adopted_vpc`: the VPC of somebody else that it stands in.

    `vpc_cidr` and `public` are None there: nothing is said about the VPC, and the way out is its owner's.
    """

    name: str
    region: str
    vpc_cidr: IPv4Network | None
    zones: tuple[ZonePlan, ...]
    public: PublicPlan | None
    interface_endpoints: tuple[str, ...]
    home: HomePlan | None
    budget: BudgetPlan | None
    tags: Mapping[str, str] = field(default_factory=dict)
    adopted_vpc: str | None = None
    lustre: tuple[LustrePlan, ...] = ()

    def zone(self, zone_id: str) -> ZonePlan:
        """The zone with this id. Raises KeyError where the base has none."""
        for zone in self.zones:
            if zone.zone_id == zone_id:
                return zone
        raise KeyError(zone_id)
