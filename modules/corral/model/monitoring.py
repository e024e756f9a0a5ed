"""What watches a cluster: whether its head runs Prometheus, and the prices that the head multiplies by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PROMETHEUS_PORT = 9090  # on loopback, as the head's metrics
PROMETHEUS_USER = "prometheus"  # of Debian's and Ubuntu's package
PROMETHEUS_DIR = "/etc/corral/prometheus"
PRICES = "/etc/corral/prices.json"
METRICS_PORT = 251  # only root can bind it, so no user can pose as the head's metrics
NODE_METRICS_PORT = 252  # on a node's address; also root's alone
NODE_TOKEN = f"{PROMETHEUS_DIR}/node-token"  # Prometheus shows it to nodes
NODE_TARGETS = f"{PROMETHEUS_DIR}/nodes.json"  # the nodes that are up, for Prometheus


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringPlan:
    """Prometheus on the head, and how much it keeps. `budget_usd_per_month`: the base's budget, None without one."""

    prometheus: bool = False
    retention_s: int = 0
    retention_gib: int = 0
    budget_usd_per_month: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRange:
    """US dollars an hour, from the catalogue's prices: spot prices differ between zones."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPrices:
    """What the cluster costs an hour: each machine by its offer, and everything else of it and its file systems.

    An offer without a known price is missing. `source`: where the prices come from, and of which day.
    """

    offers: Mapping[str, PriceRange] = field(default_factory=dict)
    fixed: PriceRange
    source: str
