"""The plan of a base: the long-lived network, data and keys that clusters use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from corral.model.lustre import LustrePlan

KEY_ALIASES = "alias/corral-"


def key_alias(base: str) -> str:
    """Return the alias of the key that encrypts this base's data."""
    return f"{KEY_ALIASES}{base}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePlan:
    """One availability zone of the VPC, under the name by which the base declares it: its id, or its account's name.

    AWS never assigns the addresses in `heads` (inside `private`). An adopted subnet, whose id is `subnet`, reserves
    none for heads.
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
    """A monthly budget that notifies people; it stops nothing (AWS's billing data lags by hours)."""

    usd_per_month: int
    notify: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePlan:
    """All parts of a base. `adopted_vpc`: the existing VPC that it uses.

    `vpc_cidr` and `public` are then None: the VPC and its internet access belong to its owner.
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
        """The zone with this id. Raises KeyError if the base has none."""
        for zone in self.zones:
            if zone.zone_id == zone_id:
                return zone
        raise KeyError(zone_id)
