"""What a run pays for the bytes that it moves to and from a home with Elastic throughput, beside what it stores there.

Source: Amazon EFS pricing page, "Elastic Throughput": by the GB read and the GB written.
"""

from __future__ import annotations

from collections.abc import Iterable

from corral.forecast.money import Usd
from corral.forecast.prices import PriceList
from corral.forecast.storage import Way
from corral.forecast.whole.crossing import Flow
from corral.forecast.whole.saving import HOME

WHAT = "EFS: checkpoints and tokens, written and read"
_GB = 1e9
_SERVICES = {Way.READ: "efs-elastic-read-gb", Way.WRITE: "efs-elastic-written-gb"}


def elastic_usd(found: Iterable[Flow], prices: PriceList) -> Usd | None:
    """What the home's of these flows cost. None where a price is not known, or nothing bounds the bytes."""
    usd = Usd.exact(0.0)
    for flow in found:
        if flow.place != HOME:
            continue
        price = prices.service(_SERVICES[flow.way])
        if price is None or flow.high is None:
            return None
        usd = usd.plus(Usd(flow.low, flow.high).times(price.usd / _GB))
    return usd
