"""Owned hardware compared with rented machines: USD per accelerator hour, and the break-even points.

The cost of an owned accelerator hour is the yearly cost of the fleet divided by its working hours:
(price x (1 - residual) / years + energy + site + staff + upkeep) / (accelerators x 8760 x utilisation). Owned hardware
costs money while idle; rented machines only while they work. Depreciation is linear. Source: "Build-vs-rent GPU cost
model" (ai-infrastructure.net), which has the same formula; it excludes interest, taxes and storage.

Energy is a range: from working hours only, at the known load of servers in training, to all hours at maximum power,
since nobody publishes the power between jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.accelerators.power import network_part, server_of, training_load
from corral.forecast.cost.cost_range import Usd, total
from corral.forecast.cost.pool_capacity import MarketCapacity
from corral.model.enums import Market
from corral.spec.models.buy import BuySpec
from corral.spec.yaml.buy_files import Purchase

HOURS_PER_YEAR, MONTHS_PER_YEAR = 8760, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKw:
    """Power of a server with its share of the network, without the site: typical in training, and maximum."""

    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The cost of a fleet: its price, and yearly costs by purpose.

    `energy`: of a year at its utilisation. `energy_at_work`: of a year without idle time.
    """

    accelerators: int
    utilisation: float
    price_usd: float
    depreciation_usd: float
    upkeep_usd: float
    staff_usd: float
    site_usd: float
    energy: Usd
    energy_at_work: Usd
    kw: ServerKw

    @property
    def hours(self) -> float:
        """Accelerator hours per year, working or idle."""
        return self.accelerators * HOURS_PER_YEAR

    @property
    def fixed_usd(self) -> float:
        """The yearly cost independent of use, without energy."""
        return self.depreciation_usd + self.upkeep_usd + self.staff_usd + self.site_usd

    @property
    def running(self) -> Usd:
        """Yearly costs on top of the purchase price."""
        return total([Usd.exact(self.upkeep_usd + self.staff_usd + self.site_usd), self.energy])

    @property
    def usd_per_year(self) -> Usd:
        """The total yearly cost."""
        return total([Usd.exact(self.fixed_usd), self.energy])

    @property
    def usd_per_accelerator_hour(self) -> Usd:
        """The cost of a working accelerator hour."""
        return self.usd_per_year.times(1 / (self.hours * self.utilisation))


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The points where owning costs as much as renting, from the best to the worst case; None if never.

    `utilisation` may exceed 1, which is out of reach.
    """

    months_low: float | None
    months_high: float | None
    utilisation_low: float | None
    utilisation_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """The same accelerators from one market. Without a known price, `usd_per_accelerator_hour` is None."""

    market: Market
    usd_per_accelerator_hour: Usd | None
    source: str | None
    break_even: BreakEven | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RentVsBuy:
    """Purchased hardware compared with each market of the queue that it would replace."""

    purchase: Purchase
    owned: Owned
    rented: tuple[Rented, ...]


def compare_rent_vs_buy(purchase: Purchase, found: tuple[MarketCapacity, ...]) -> RentVsBuy:
    """The comparison with each market of the queue, in the order of its offers."""
    owned = own(purchase.spec, purchase.servers, kw_of(purchase))
    return RentVsBuy(purchase=purchase, owned=owned, rented=tuple(_rented(purchase, owned, found)))


def kw_of(purchase: Purchase) -> ServerKw:
    """Power of a server: as declared, otherwise scaled from the published server with its accelerators."""
    load = training_load()
    if purchase.spec.kw_per_server is not None:
        most = purchase.spec.kw_per_server
        return ServerKw(low=most * load.low, high=most * load.high, source=purchase.file)
    server = server_of(purchase.accelerator)
    assert server is not None  # buy_files checks it
    cards = purchase.spec.accelerators_per_server / server.accelerators
    most = server.most_w / 1000 * cards * (1 + network_part().value)
    return ServerKw(low=most * load.low, high=most * load.high, source=f"{server.name}: {server.source}")


def own(spec: BuySpec, servers: int, kw: ServerKw) -> Owned:
    """The cost of so many of these servers with this power."""
    price = servers * (spec.usd_per_server + spec.accelerators_per_server * spec.usd_per_accelerator)
    usd_per_kw = servers * spec.pue * HOURS_PER_YEAR * spec.usd_per_kwh
    at_work = Usd(kw.low * usd_per_kw, kw.high * usd_per_kw)
    return Owned(
        accelerators=servers * spec.accelerators_per_server,
        utilisation=spec.utilisation,
        price_usd=price,
        depreciation_usd=price * (1 - spec.residual) / spec.years,
        upkeep_usd=price * spec.upkeep,
        staff_usd=spec.usd_staff_per_year,
        site_usd=servers * kw.high * spec.usd_per_kw_month * MONTHS_PER_YEAR,
        energy=Usd(at_work.low * spec.utilisation, at_work.high),
        energy_at_work=at_work,
        kw=kw,
    )


def break_even(owned: Owned, rented: Usd) -> BreakEven:
    """The break-even points for this price per accelerator hour.

    Months: price / (monthly rent - monthly running costs). Utilisation u: (fixed + energy) / (hours x u) = rent, with
    energy proportional to work at best, and as high when idle at worst.
    """
    work = owned.hours * owned.utilisation
    best = rented.high * owned.hours - owned.energy_at_work.low
    worst = rented.low * owned.hours
    return BreakEven(
        months_low=_months(owned.price_usd, rented.high * work - owned.running.low),
        months_high=_months(owned.price_usd, rented.low * work - owned.running.high),
        utilisation_low=owned.fixed_usd / best if best > 0 else None,
        utilisation_high=(owned.fixed_usd + owned.energy_at_work.high) / worst if worst > 0 else None,
    )


def _months(price: float, saved_per_year: float) -> float | None:
    return price / saved_per_year * MONTHS_PER_YEAR if saved_per_year > 0 else None


def _rented(purchase: Purchase, owned: Owned, found: tuple[MarketCapacity, ...]) -> Iterator[Rented]:
    each = purchase.machine.accelerator.count if purchase.machine.accelerator else 1
    for one in found:
        usd = one.usd_per_node_hour.times(1 / each) if one.usd_per_node_hour else None
        yield Rented(
            market=one.market,
            usd_per_accelerator_hour=usd,
            source=one.source,
            break_even=break_even(owned, usd) if usd else None,
        )
