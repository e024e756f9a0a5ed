"""Warnings about a plan: limits, distant data, zones that do not offer a type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from corral.forecast.cost.budget_limits import CostLimit
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Sum
from corral.forecast.cost.pool_capacity import NO_COUNTS, Counts
from corral.forecast.cost.price_source import PriceList
from corral.forecast.warnings import (
    MAX_UNITS_PER_VPC,
    PlanWarning,
    address_units,
    interfaces,
    limit_warnings,
    plan_warnings,
    replaced_type_warnings,
)
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.spec_errors import SpecError
from corral.spec.yaml.catalog_file import parse_catalog
from environments import dev_base, dev_cluster

PRICES = catalog_prices("us-east-1")


def warnings_of(
    base: BasePlan, cluster: ClusterPlan, prices: PriceList, counts: Counts = NO_COUNTS
) -> tuple[PlanWarning, ...]:
    """All warnings except that of the boot, which every environment with a shipped image has."""
    return tuple(warning for warning in plan_warnings(base, cluster, prices, counts) if warning.about != "boot")


def sized(nodes: int, instance_type: str = "p5.48xlarge", nics: int = 33) -> ClusterPlan:
    """`dev` with so many nodes of this type, each with so many interfaces."""
    (queue,) = dev_cluster().queues
    first = queue.nics[0]
    wide = replace(queue, instance_type=instance_type, max_nodes=nodes, nics=(first, *queue.nics[1:2] * (nics - 1)))
    return replace(dev_cluster(), queues=(wide,), lustre=())


def about_and_text(cluster: ClusterPlan) -> list[str]:
    return [warning.text for warning in warnings_of(dev_base(), cluster, PRICES)]


def test_install_time_is_the_last_warning() -> None:
    assert plan_warnings(dev_base(), dev_cluster(), PRICES)[-1] == PlanWarning(
        about="boot",
        message="installs Slurm and other missing packages: about 1 min per node, 2 min for the head",
        fix="use an image with these packages to save that time",
    )


def test_own_image_has_no_install_time_warning() -> None:
    own = replace(dev_cluster(), image=replace(dev_cluster().image, image_id="ami-0123456789abcdef0", parameter=None))
    assert [warning for warning in plan_warnings(dev_base(), own, PRICES) if warning.about == "boot"] == []


def test_152_p5_fill_a_regions_interfaces() -> None:
    assert [interfaces(sized(count)) for count in (151, 152)] == [4983, 5016]


def test_more_interfaces_than_the_quota_are_a_warning() -> None:
    text = "all nodes together have 5,016 network interfaces, but a region's quota is 5,000"
    assert text in about_and_text(sized(152))


def test_27500_p5_exceed_the_units_of_one_vpc() -> None:
    assert address_units(sized(27_500)) == 907_500 > MAX_UNITS_PER_VPC
    assert (
        "all nodes together need 907,500 network address units, but a VPC holds at most 256,000 - divide the cluster"
        " over several bases"
    ) in about_and_text(sized(27_500))


def test_more_units_than_the_default_quota_are_a_warning() -> None:
    text = "all nodes together need 66,000 network address units, but a VPC holds 64,000 by default"
    assert text in about_and_text(sized(2_000))


def test_small_subnet_is_a_warning_about_its_zone() -> None:
    found = [warning for warning in warnings_of(dev_base(), sized(9_000), PRICES) if warning.about.startswith("zone")]
    assert found[0] == PlanWarning(
        about="zone use1-az1",
        message="all nodes that may run there need 9,001 addresses, but the subnet has 8,127",
    )


def test_type_that_a_zone_does_not_offer_is_a_warning() -> None:
    warning, *_ = warnings_of(dev_base(), sized(1, "p5en.48xlarge", 17), PRICES)
    assert warning == PlanWarning(
        about="queue train",
        message="p5en.48xlarge is not offered in use1-az1 by the catalog's snapshot",
        fix="change the zones of its capacity: it is in use1-az2, use1-az6",
    )


def test_data_in_another_zone_is_a_warning_with_the_traffic_price() -> None:
    warning = warnings_of(dev_base(), dev_cluster(), PRICES)[-1]
    assert (warning.about, warning.text) == (
        "Lustre scratch",
        "is in use1-az1, nodes of train may run in use1-az2: reading from there is slower and costs 0.02 USD per GB",
    )


def test_overridden_type_is_a_warning() -> None:
    row = "\n".join(
        [
            '[instances."t3.medium"]',
            'architecture = "x86_64"',
            "vcpus = 2",
            "cores = 1",
            "threads_per_core = 2",
            "sockets = 1",
            "memory_mib = 4096",
            'network_cards = [{first = 0, last = 0, interface_types = ["interface"], maximum_interfaces = 3}]',
            "network_gbps = 5",
            "network_baseline_gbps = 0.256",
            "efa_maximum = 0",
            'markets = ["on-demand"]',
        ]
    )
    (warning,) = replaced_type_warnings(parse_catalog(row))
    assert warning.about == "type t3.medium"


def test_exceeded_limit_is_a_warning_with_its_fix() -> None:
    refusal = SpecError(file="spec.yaml", path="usd_per_hour_max", message="an hour costs 2 USD", fix="raise the limit")
    over = CostLimit(field="usd_per_hour_max", usd=1.0, cost=Sum(usd=None), refusal=refusal)
    assert limit_warnings([replace(over, refusal=None), over]) == (
        PlanWarning(about="limit", message="spec.yaml: usd_per_hour_max: an hour costs 2 USD", fix="raise the limit"),
    )


def test_queue_with_efa_in_several_zones_is_a_warning() -> None:
    assert warnings_of(dev_base(), dev_cluster(), PRICES)[0] == PlanWarning(
        about="queue train",
        message="EFA does not connect use1-az1, use1-az2: a job with EFA needs all its nodes in one zone",
    )


def test_more_nodes_than_the_capacity_counts_are_a_warning() -> None:
    cluster = dev_cluster()  # two pools, at most 4 nodes
    texts = [
        [warning.text for warning in warnings_of(dev_base(), cluster, PRICES, {("train", 1): 1, ("train", 2): second})]
        for second in (2, 3)
    ]
    text = "nodes.max is 4, but its capacity is 3: the other nodes can never start"
    assert [text in found for found in texts] == [True, False]


def test_own_type_has_no_zone_warning() -> None:
    texts = [warning.text for warning in warnings_of(dev_base(), sized(1, "p9.test"), PRICES)]
    assert [text for text in texts if "offered" in text] == []


def offered(**changes: object) -> ClusterPlan:
    """`dev` whose queue has only its first offer, with these changes."""
    (queue,) = dev_cluster().queues
    one = replace(queue, instance_type="p5.48xlarge", efa=False, offers=(replace(queue.offers[0], **changes),))  # type: ignore[arg-type]
    return replace(dev_cluster(), queues=(one,), lustre=())


def texts_about(cluster: ClusterPlan, counts: Counts = NO_COUNTS) -> list[str]:
    return [warning.text for warning in warnings_of(dev_base(), cluster, PRICES, counts)]


def test_limit_below_the_cheapest_zone_is_a_warning_with_both_prices() -> None:
    text = "spot at a limit of 1.50 USD an hour is not expected to start: the cheapest known zone costs 17.63"
    assert texts_about(offered(max_price_usd_per_hour=1.5)) == [text]
    assert texts_about(offered(max_price_usd_per_hour=17.7)) == []


@pytest.mark.parametrize(
    ("count", "cost"),
    [
        (4, "4 x 55.04 = 220.16 USD an hour"),
        (None, "55.04 USD an hour per instance - set `count` for the total"),
    ],
)
def test_cost_of_an_idle_reservation_is_a_warning(count: int | None, cost: str) -> None:
    counts = {("train", 1): count} if count else {}
    text = f"its reservation costs money while it exists, even without running nodes: {cost}"
    assert texts_about(offered(market=Market.RESERVATION, reservation="cr-1"), counts) == [text]


def test_purchase_cost_of_a_block_is_a_warning() -> None:
    text = "its capacity block is billed as a whole at purchase, used or not: 8 x 47.76 = 382.08 USD an hour"
    cluster = offered(market=Market.CAPACITY_BLOCK, reservation="cr-1")
    assert texts_about(cluster, {("train", 1): 8}) == [f"{text}, for all its hours"]


def test_reserved_capacity_without_a_price_is_a_warning() -> None:
    (queue,) = offered(market=Market.RESERVATION, reservation="cr-1").queues
    strange = replace(dev_cluster(), queues=(replace(queue, instance_type="p9.test"),), lustre=())
    assert texts_about(strange)[0].endswith("nodes: at an unknown price of p9.test")


def in_zones(name: str, *zones: str) -> QueuePlan:
    """The queue of `dev` under this name, with an offer in each of these zones."""
    (queue,) = dev_cluster().queues
    return replace(queue, name=name, offers=tuple(replace(queue.offers[0], zone_id=zone) for zone in zones))


def test_file_system_far_from_several_queues_is_one_warning() -> None:
    far = [in_zones(name, "use1-az1", "use1-az2") for name in ("train", "eval")]
    queues = (*far, in_zones("small", "use1-az2"), in_zones("near", "use1-az1"))
    texts = [warning.text for warning in warnings_of(dev_base(), replace(dev_cluster(), queues=queues), PRICES)]
    assert [text for text in texts if "reading" in text] == [
        "is in use1-az1, nodes of train, eval, small may run in use1-az2: reading from there is slower"
        " and costs 0.02 USD per GB"
    ]


def test_queues_with_different_far_zones_are_named_separately() -> None:
    queues = (in_zones("train", "use1-az2"), in_zones("eval", "use1-az4"))
    warning = warnings_of(dev_base(), replace(dev_cluster(), queues=queues), PRICES)[-1]
    assert warning.text.partition(":")[0] == (
        "is in use1-az1, nodes of train may run in use1-az2, of eval may run in use1-az4"
    )


def test_type_that_the_region_lacks_is_the_first_warning() -> None:
    some, nowhere = in_zones("some", "use1-az1"), in_zones("nowhere", "use1-az1")
    queues = (replace(some, instance_type="p5en.48xlarge"), replace(nowhere, instance_type="trn2.48xlarge"))
    warnings = warnings_of(dev_base(), replace(dev_cluster(), queues=queues), PRICES)
    assert [warning.about for warning in warnings[:2]] == ["queue nowhere", "queue some"]


def far_reservation() -> ClusterPlan:
    """`dev` whose queue has EFA and two nodes, from a reservation in another zone than its data."""
    (queue,) = dev_cluster().queues
    reserved = replace(queue.offers[0], pool=1, market=Market.RESERVATION, reservation="cr-1", zone_id="use1-az2")
    return replace(dev_cluster(), queues=(replace(queue, max_nodes=2, offers=(reserved,)),))


def plans_with_warnings() -> Iterator[ClusterPlan]:
    """Clusters that together have a warning of each kind."""
    yield dev_cluster()
    yield from (sized(nodes) for nodes in (152, 2_000, 9_000, 27_500))
    yield from (sized(1, "p5en.48xlarge", 17), sized(1, "trn2.48xlarge"), offered(max_price_usd_per_hour=1.5))
    yield from (offered(market=market, reservation="cr-1") for market in (Market.RESERVATION, Market.CAPACITY_BLOCK))
    yield far_reservation()


def test_no_message_contains_its_fix() -> None:
    counts: tuple[Counts, ...] = (NO_COUNTS, {("train", 1): 1})
    messages = {
        warning.message
        for cluster in plans_with_warnings()
        for known in counts
        for warning in plan_warnings(dev_base(), cluster, PRICES, known)
    }
    assert (len(messages), [text for text in messages if " - " in text or " set " in text or "; " in text]) == (24, [])


def test_warnings_are_ordered_by_capacity_cost_speed() -> None:
    texts = [warning.text for warning in warnings_of(dev_base(), far_reservation(), PRICES, {("train", 1): 1})]
    assert [text.split()[0] for text in texts] == ["nodes.max", "its", "reservation", "is"]
