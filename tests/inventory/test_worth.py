"""What things cost a month, in round prices."""

import pytest

from corral.forecast.money import Usd
from corral.inventory.things import Kind, Thing
from corral.inventory.worth import usd_per_month
from worked_example import RoundPrices


@pytest.mark.parametrize(
    ("thing", "usd"),
    [
        (Thing(kind=Kind.INSTANCE, id="i", type="p4d.24xlarge", market="on-demand"), Usd(14_600, 14_600)),
        (Thing(kind=Kind.INSTANCE, id="i", type="p4d.24xlarge", market="spot"), Usd(1460, 5840)),
        (Thing(kind=Kind.INSTANCE, id="i", type="p4d.24xlarge", state="stopped"), Usd(0, 0)),
        (Thing(kind=Kind.INSTANCE, id="i", type="p9.huge"), None),
        (Thing(kind=Kind.NAT_GATEWAY, id="n"), Usd(36.5, 36.5)),
        (Thing(kind=Kind.ENDPOINT, id="e", type="Gateway"), Usd(0, 0)),
        (Thing(kind=Kind.VOLUME, id="v", size_gib=50), Usd(5, 5)),
        (Thing(kind=Kind.HOME, id="f", size_gib=None), None),
        (Thing(kind=Kind.LUSTRE, id="f", size_gib=1200, type="SCRATCH_2"), Usd(175.2, 175.2)),
        (Thing(kind=Kind.KEY, id="k"), Usd(7.3, 7.3)),
        (Thing(kind=Kind.SUBNET, id="s"), Usd(0, 0)),
        (Thing(kind=Kind.OTHER, id="o"), None),
    ],
    ids=lambda value: f"{value.kind}-{value.type or ''}{value.market or ''}" if isinstance(value, Thing) else "",
)
def test_worth(thing: Thing, usd: Usd | None) -> None:
    found = usd_per_month(thing, RoundPrices())
    assert (found and Usd(round(found.low, 6), round(found.high, 6))) == usd
