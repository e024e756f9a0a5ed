"""What watches a cluster: whether its head runs Prometheus, and the prices that the head multiplies by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PROMETHEUS_PORT = 9090  # on loopback, as the head's metrics
PROMETHEUS_USER = "prometheus"  # of Debian's and Ubuntu's package
SCRAPE_S = 30  # between two scrapes: the autoscaler compares Slurm and EC2 as often
PROMETHEUS_DIR = "/etc/corral/prometheus"
WEB_USER = "corral"  # whom Prometheus and Alertmanager answer, by a password
PRICES = "/etc/corral/prices.json"
METRICS_PORT = 251  # only root can bind it, so no user can pose as the head's metrics
NODE_METRICS_PORT = 252  # on a node's address; also root's alone
NODE_TOKEN = f"{PROMETHEUS_DIR}/node-token"  # Prometheus shows it to nodes
NODE_TARGETS = f"{PROMETHEUS_DIR}/nodes.json"  # the nodes that are up, for Prometheus
TOPIC_PATH = "/topic"  # of that port: Alertmanager's messages for the cluster's topic
REMOTE_WRITE_PATH = "/remote-write"  # of that port, too: Prometheus's series for the workspace
REMOTE_WRITES = 4  # at a time: the autoscaler's process signs them
ALERTMANAGER_PORT = 9093  # on loopback, too; its package runs it as Prometheus's user
ALERTMANAGER_DIR = "/etc/corral/alertmanager"
SLACK_URL, PAGERDUTY_KEY = f"{ALERTMANAGER_DIR}/slack", f"{ALERTMANAGER_DIR}/pagerduty"  # what the secrets hold


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReceivers:
    """Who gets alerts: whom the cluster's topic notifies, and Slack and PagerDuty by the names of their secrets."""

    topic: bool
    slack: str | None = None
    pagerduty: str | None = None

    @property
    def secrets(self) -> Mapping[str, str]:
        """The names of the secrets, by the file of the head that has the value."""
        named = {SLACK_URL: self.slack, PAGERDUTY_KEY: self.pagerduty}
        return {path: name for path, name in named.items() if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWritePlan:
    """A workspace of Amazon Managed Service for Prometheus, and the URL that its series are sent to."""

    workspace: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringPlan:
    """Prometheus on the head, and how much it keeps. `budget_usd_per_month`: the base's budget, None without one.

    `alerts`: None if nobody gets them. `remote_write`: where Prometheus also writes its series; None for nowhere.
    """

    prometheus: bool = False
    retention_s: int = 0
    retention_gib: int = 0
    budget_usd_per_month: int | None = None
    alerts: AlertReceivers | None = None
    remote_write: RemoteWritePlan | None = None


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
