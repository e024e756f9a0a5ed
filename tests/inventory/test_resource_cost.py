"""Monthly costs of resources, in round prices."""

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.inventory.resource_cost import usd_per_month
from corral.inventory.resources import AwsResource, ResourceKind
from worked_example import RoundPrices


@pytest.mark.parametrize(
    ("resource", "usd"),
    [
        (AwsResource(kind=ResourceKind.INSTANCE, id="i", type="p4d.24xlarge", market="on-demand"), Usd(14_600, 14_600)),
        (AwsResource(kind=ResourceKind.INSTANCE, id="i", type="p4d.24xlarge", market="spot"), Usd(1460, 5840)),
        (AwsResource(kind=ResourceKind.INSTANCE, id="i", type="p4d.24xlarge", state="stopped"), Usd(0, 0)),
        (AwsResource(kind=ResourceKind.INSTANCE, id="i", type="p9.huge"), None),
        (AwsResource(kind=ResourceKind.NAT_GATEWAY, id="n"), Usd(36.5, 36.5)),
        (AwsResource(kind=ResourceKind.LOAD_BALANCER, id="l", type="internal"), Usd(29.2, 29.2)),
        (AwsResource(kind=ResourceKind.LOAD_BALANCER, id="l", type="internet-facing"), Usd(32.85, 32.85)),
        (AwsResource(kind=ResourceKind.TARGET_GROUP, id="t"), Usd(0, 0)),
        (AwsResource(kind=ResourceKind.ENDPOINT, id="e", type="Gateway"), Usd(0, 0)),
        (AwsResource(kind=ResourceKind.VOLUME, id="v", size_gib=50), Usd(5, 5)),
        (AwsResource(kind=ResourceKind.HOME, id="f", size_gib=None), None),
        (AwsResource(kind=ResourceKind.HOME, id="f", size_gib=100), Usd(30, 30)),
        (AwsResource(kind=ResourceKind.BUCKET, id="b", size_gib=100), Usd(2, 2)),
        (AwsResource(kind=ResourceKind.LUSTRE, id="f", size_gib=1200, type="SCRATCH_2"), Usd(175.2, 175.2)),
        (AwsResource(kind=ResourceKind.KEY, id="k"), Usd(3.65, 3.65)),
        (AwsResource(kind=ResourceKind.SUBNET, id="s"), Usd(0, 0)),
        (AwsResource(kind=ResourceKind.OTHER, id="o"), None),
    ],
    ids=lambda value: f"{value.kind}-{value.type or ''}{value.market or ''}" if isinstance(value, AwsResource) else "",
)
def test_worth(resource: AwsResource, usd: Usd | None) -> None:
    found = usd_per_month(resource, RoundPrices())
    assert (found and Usd(round(found.low, 6), round(found.high, 6))) == usd
