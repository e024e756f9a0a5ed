"""Hardware of one's own against rented machines: USD for an hour of an accelerator, and where both cost the same.

An hour of an owned accelerator costs what all of them cost in a year, over the hours in which they are at work:
(price x (1 - residual) / years + energy + site + staff + upkeep) / (accelerators x 8760 x utilisation). What stands
idle is paid for; rented machines are paid for while they work. Depreciation is a straight line. Source: "Build-vs-rent
GPU cost model" (ai-infrastructure.net), which has the same formula; interest, taxes and storage are not in it.

Energy is a range: from working hours alone at the load that servers are known to have in training, to all hours at
the most that they take, as nobody publishes what they take between two jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.power import network_part, server_of, training_load
from corral.forecast.capacity import Supply
from corral.forecast.money import Usd, total
from corral.model.markets import Market
from corral.spec.buy import BuySpec
from corral.spec.buy_files import Purchase

HOURS_PER_YEAR, MONTHS_PER_YEAR = 8760, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKw:
    """What a server takes with its part of the network, without the site: while it trains at least, and the most."""

    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What a fleet costs: once, and in a year by what it is for. `energy_at_work`: of a year in which it never idles.

    `energy`: of a year at its utilisation.
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
        """Hours of accelerators in a year, working or not."""
        return self.accelerators * HOURS_PER_YEAR

    @property
    def fixed_usd(self) -> float:
        """What a year costs whether anything works or not, but for energy."""
        return self.depreciation_usd + self.upkeep_usd + self.staff_usd + self.site_usd

    @property
    def running(self) -> Usd:
        """What a year costs beside the price."""
        return total([Usd.exact(self.upkeep_usd + self.staff_usd + self.site_usd), self.energy])

    @property
    def usd_per_year(self) -> Usd:
        """All of a year."""
        return total([Usd.exact(self.fixed_usd), self.energy])

    @property
    def usd_per_accelerator_hour(self) -> Usd:
        """For an hour in which an accelerator is at work."""
        return self.usd_per_year.times(1 / (self.hours * self.utilisation))


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where owning costs what renting does, from the best for owning to the worst; None where it never does.

    `utilisation` may be more than 1, which nothing can reach.
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
class RentOrBuy:
    """Hardware to buy beside each market of the queue that it would replace."""

    purchase: Purchase
    owned: Owned
    rented: tuple[Rented, ...]


def rent_or_buy(purchase: Purchase, found: tuple[Supply, ...]) -> RentOrBuy:
    """The comparison with what each market of the queue costs, in the order in which they are tried."""
    owned = own(purchase.spec, purchase.servers, kw_of(purchase))
    return RentOrBuy(purchase=purchase, owned=owned, rented=tuple(_rented(purchase, owned, found)))


def kw_of(purchase: Purchase) -> ServerKw:
    """What a server takes: as declared, else by the published server with its accelerators, for as many as it has."""
    load = training_load()
    if purchase.spec.kw_per_server is not None:
        most = purchase.spec.kw_per_server
        return ServerKw(low=most * load.low, high=most * load.high, source=purchase.file)
    server = server_of(purchase.accelerator)
    assert server is not None  # buy_files has seen to it
    cards = purchase.spec.cards_per_server / server.accelerators
    most = server.most_w / 1000 * cards * (1 + network_part().value)
    return ServerKw(low=most * load.low, high=most * load.high, source=f"{server.name}: {server.source}")


def own(spec: BuySpec, servers: int, kw: ServerKw) -> Owned:
    """What so many of these servers cost, each of which takes so much."""
    price = servers * (spec.usd_per_server + spec.cards_per_server * spec.usd_per_card)
    usd_per_kw = servers * spec.pue * HOURS_PER_YEAR * spec.usd_per_kwh
    at_work = Usd(kw.low * usd_per_kw, kw.high * usd_per_kw)
    return Owned(
        accelerators=servers * spec.cards_per_server,
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
    """Against this price of an accelerator's hour.

    Months: price / (rent - running costs) of a month. Utilisation: where (fixed + energy) / (hours x u) is the rent,
    energy in proportion to the work at best, and the same for idle ones at worst.
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


def _rented(purchase: Purchase, owned: Owned, found: tuple[Supply, ...]) -> Iterator[Rented]:
    each = purchase.machine.accelerator.count if purchase.machine.accelerator else 1
    for one in found:
        usd = one.usd_per_node_hour.times(1 / each) if one.usd_per_node_hour else None
        yield Rented(
            market=one.market,
            usd_per_accelerator_hour=usd,
            source=one.source,
            break_even=break_even(owned, usd) if usd else None,
        )
