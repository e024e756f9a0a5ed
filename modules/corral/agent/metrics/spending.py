"""What the cluster costs: dollars an hour of what runs now, and since the cluster began. `SpendingMeter` keeps a file.

Prices are those of the catalogue when the cluster was last deployed, without the base's network, traffic and taxes. The
bill differs; `corral usage` computes it from each machine's own times.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.cluster.models import Instance
from corral.agent.file_install import Placement, install
from corral.model.monitoring import ClusterPrices, PriceRange
from corral.model.serialization import from_json, to_line

SPENDING = Path("/var/lib/corral/spending.json")
_SAVE_EVERY_S = 60.0
_SECONDS_PER_HOUR = 3600.0
_NOTHING = PriceRange(low=0.0, high=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The sum until `at`, in seconds since 1970, and the rate from then on."""

    at: float
    sum: PriceRange
    rate: PriceRange


def rate_of(prices: ClusterPrices, instances: Iterable[Instance]) -> PriceRange:
    """US dollars an hour of the cluster with these instances."""
    found = [prices.fixed, *(prices.offers.get(one.offer, _NOTHING) for one in instances if one.active)]
    return PriceRange(low=sum(one.low for one in found), high=sum(one.high for one in found))


def continued(spending: Spending | None, rate: PriceRange, now: float) -> Spending:
    """The spending until now. Between two readings, also while no head ran, the former rate counts."""
    if spending is None:
        return Spending(at=now, sum=_NOTHING, rate=rate)
    hours = max(0.0, now - spending.at) / _SECONDS_PER_HOUR
    total = PriceRange(
        low=spending.sum.low + hours * spending.rate.low, high=spending.sum.high + hours * spending.rate.high
    )
    return Spending(at=now, sum=total, rate=rate)


@dataclass(kw_only=True)
class SpendingMeter:
    """Adds up what the cluster costs, in a file on the state volume, which a new head continues."""

    file: Path
    clock: Callable[[], float]
    _held: Spending | None = None
    _saved_at: float | None = None

    def read(self, rate: PriceRange) -> Spending:
        """The spending until now, at this rate from now on. Raises OSError if it cannot be saved."""
        if self._held is None:
            self._held = self._load()
        now = self.clock()
        is_new = self._held is None or self._held.rate != rate
        self._held = continued(self._held, rate, now)
        if is_new or self._saved_at is None or now - self._saved_at >= _SAVE_EVERY_S:
            content = to_line(self._held).encode()
            install((Placement(path=str(self.file), content=content, mode=0o600),))
            self._saved_at = now
        return self._held

    def _load(self) -> Spending | None:
        try:
            return from_json(Spending, self.file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # of another version, or cut off: the sum begins anew
            return None
