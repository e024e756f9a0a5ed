"""What machines of a run download through the base's NAT gateway when they start: container images and packages.

What a job fetches while it trains is nobody's to know before, nor what comes from S3, which has an endpoint of its own.
"""

from __future__ import annotations

from corral.forecast.bill import GATEWAY, CostForecast
from corral.forecast.money import Usd
from corral.forecast.prices import PriceList, Service
from corral.forecast.reliability import CourseRange
from corral.spec.run import RunSpec


def downloads_what(run: RunSpec) -> str:
    """The charge in words."""
    return f"NAT gateway: {run.download_gb:g} GB for each machine that starts"


def downloads_usd(run: RunSpec, found: CourseRange, cost: CostForecast, prices: PriceList) -> Usd | None:
    """All nodes start once, and one more with each interruption. None where no price, or no end, is known."""
    if not any(item.what == GATEWAY for item in cost.base):
        return Usd.exact(0.0)
    price, worst = prices.service(Service.NAT_GATEWAY_GB), found.worst
    least = found.best.interruptions or 0.0
    if price is None or worst.interruptions is None:
        return None
    each = price.usd * run.download_gb
    return Usd((run.nodes + least) * each, (run.nodes + worst.interruptions) * each)
