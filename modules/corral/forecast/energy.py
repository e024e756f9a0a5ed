"""Power and energy of a training run: accelerators, hosts, network, and the overhead of the site."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators.power import ServerPower


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A data centre. `load`: the mean share of the servers' maximum power.

    `network_part`: switches and storage, as a share of the servers' power. `pue`: power usage effectiveness.
    """

    pue: float
    load: float = 1.0
    network_part: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power by consumer; `site_kw`: cooling, conversion, light."""

    accelerators_kw: float
    hosts_kw: float
    network_kw: float
    site_kw: float

    @property
    def computers_kw(self) -> float:
        """The power of servers and network."""
        return self.accelerators_kw + self.hosts_kw + self.network_kw

    @property
    def total_kw(self) -> float:
        """The total power."""
        return self.computers_kw + self.site_kw

    def energy_mwh(self, hours: float) -> float:
        """Energy in MWh over so many hours."""
        return self.total_kw * hours / 1000


def cluster_power(server: ServerPower, accelerators: int, site: Site) -> Power:
    """Power of so many accelerators in such servers; a fraction of a server counts as such.

    P = servers x maximum x load x (1 + network) x PUE.
    """
    servers = accelerators / server.accelerators
    ours_kw = servers * server.accelerators_w * site.load / 1000
    hosts_kw = servers * server.host_w * site.load / 1000
    network_kw = (ours_kw + hosts_kw) * site.network_part
    return Power(
        accelerators_kw=ours_kw,
        hosts_kw=hosts_kw,
        network_kw=network_kw,
        site_kw=(ours_kw + hosts_kw + network_kw) * (site.pue - 1),
    )
