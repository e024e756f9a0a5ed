"""The power of machines that train and the energy of a run: accelerators, hosts, network, and the site around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.catalog.power import ServerPower


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where machines stand. `load`: part of their most that servers take on average.

    `network_part`: switches and storage, as part of the servers' power; `pue`: power of the site for each of all that.
    """

    pue: float
    load: float = 1.0
    network_part: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Kilowatts by what takes them; `site_kw` is cooling, conversion, light."""

    accelerators_kw: float
    hosts_kw: float
    network_kw: float
    site_kw: float

    @property
    def computers_kw(self) -> float:
        """All but what the site adds."""
        return self.accelerators_kw + self.hosts_kw + self.network_kw

    @property
    def total_kw(self) -> float:
        """All of it."""
        return self.computers_kw + self.site_kw

    def plus(self, other: Power) -> Power:
        """Both together."""
        return Power(
            accelerators_kw=self.accelerators_kw + other.accelerators_kw,
            hosts_kw=self.hosts_kw + other.hosts_kw,
            network_kw=self.network_kw + other.network_kw,
            site_kw=self.site_kw + other.site_kw,
        )

    def energy_mwh(self, hours: float) -> float:
        """What it takes in so many hours, in MWh."""
        return self.total_kw * hours / 1000


def cluster_power(server: ServerPower, accelerators: int, site: Site) -> Power:
    """Power of so many accelerators in such servers; parts of a server count as parts.

    P = servers x most x load x (1 + network) x PUE.
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


def node_power(server: ServerPower, site: Site) -> Power:
    """Power of one such server, with its part of network and site."""
    return cluster_power(server, server.accelerators, site)


def mixed_power(parts: Iterable[tuple[ServerPower, int]], site: Site) -> Power:
    """Power of several kinds of server at one site, each with how many accelerators it has in all."""
    total = Power(accelerators_kw=0.0, hosts_kw=0.0, network_kw=0.0, site_kw=0.0)
    for server, accelerators in parts:
        total = total.plus(cluster_power(server, accelerators, site))
    return total


def accelerators_energy_mwh(accelerator_hours: float, watts: float, *, pue: float = 1.0) -> float:
    """Energy as most papers count it: hours of all accelerators by the power of one, and the site. No host, no network.

    Source: Luccioni et al., arXiv:2211.02001; Touvron et al., arXiv:2302.13971, Table 15.
    """
    return accelerator_hours * watts * pue / 1e6
