"""What somebody is told beside the plan: limits, far data, places that do not offer a type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.catalog.project import parse_catalogue
from corral.forecast.capacity import NO_COUNTS, Counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.notes import MOST_UNITS_PER_VPC, Note, address_units, interfaces, replaced
from corral.forecast.notes import notes as all_notes
from corral.forecast.prices import PriceList
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import Market
from environments import dev_base, dev_cluster

PRICES = catalogue_prices("us-east-1")


def notes(base: BasePlan, cluster: ClusterPlan, prices: PriceList, counts: Counts = NO_COUNTS) -> tuple[Note, ...]:
    """All but that of the boot, which every environment with a shipped image has."""
    return tuple(note for note in all_notes(base, cluster, prices, counts) if note.about != "boot")


def sized(nodes: int, instance_type: str = "p5.48xlarge", nics: int = 33) -> ClusterPlan:
    """`dev` with so many nodes of this type, each with so many interfaces."""
    (queue,) = dev_cluster().queues
    first = queue.nics[0]
    wide = replace(queue, instance_type=instance_type, max_nodes=nodes, nics=(first, *queue.nics[1:2] * (nics - 1)))
    return replace(dev_cluster(), queues=(wide,), lustre=())


def told(cluster: ClusterPlan) -> list[str]:
    return [note.text for note in notes(dev_base(), cluster, PRICES)]


def test_the_minutes_that_packages_take_are_told_last() -> None:
    assert all_notes(dev_base(), dev_cluster(), PRICES)[-1] == Note(
        about="boot",
        text="installs Slurm and what else the image lacks: about 1 min of a node's, 2 min of the head's;"
        " an image of your own that has them saves it",
    )


def test_of_an_image_of_ones_own_no_minutes_are_told() -> None:
    own = replace(dev_cluster(), image=replace(dev_cluster().image, image_id="ami-0123456789abcdef0", parameter=None))
    assert [note for note in all_notes(dev_base(), own, PRICES) if note.about == "boot"] == []


def test_152_p5_fill_a_regions_interfaces() -> None:
    assert [interfaces(sized(count)) for count in (151, 152)] == [4983, 5016]


def test_more_interfaces_than_the_quota_are_told() -> None:
    text = "every node together has 5,016 network interfaces, and a region's quota is 5,000 unless it was raised"
    assert text in told(sized(152))


def test_why_one_vpc_cannot_hold_27500_p5_is_told() -> None:
    assert address_units(sized(27_500)) == 907_500 > MOST_UNITS_PER_VPC
    assert (
        "every node together takes 907,500 network address units, and a VPC holds 256,000 at most:"
        " one VPC cannot hold this - divide it over several bases"
    ) in told(sized(27_500))


def test_more_units_than_the_default_quota_are_told() -> None:
    text = "every node together takes 66,000 network address units, and a VPC holds 64,000 unless its quota was raised"
    assert text in told(sized(2_000))


def test_a_subnet_that_is_too_small_is_told_by_zone() -> None:
    found = [note for note in notes(dev_base(), sized(9_000), PRICES) if note.about.startswith("zone")]
    assert found[0] == Note(
        about="zone use1-az1",
        text="every node that may run there takes 9,001 addresses, and the subnet has 8,127",
    )


def test_a_type_that_a_zone_does_not_offer_is_told() -> None:
    note, *_ = notes(dev_base(), sized(1, "p5en.48xlarge", 17), PRICES)
    assert (note.about, note.text.split(";")[0]) == (
        "queue train",
        "p5en.48xlarge was not offered in use1-az1 when last looked",
    )


def test_data_in_another_zone_is_told_with_its_price() -> None:
    note = notes(dev_base(), dev_cluster(), PRICES)[-1]
    assert (note.about, note.text) == (
        "Lustre scratch",
        "is in use1-az1, nodes of train may run in use1-az2: reading from there is slower"
        " and costs 0.02 USD for each GB",
    )


def test_a_shipped_type_that_the_project_states_anew_is_told() -> None:
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
    (note,) = replaced(parse_catalogue(row))
    assert note.about == "type t3.medium"


def test_a_queue_with_efa_over_zones_is_told_what_that_costs() -> None:
    assert notes(dev_base(), dev_cluster(), PRICES)[0] == Note(
        about="queue train",
        text="EFA does not join nodes of use1-az1, use1-az2: a job that needs it needs all its nodes in one zone",
    )


def test_more_nodes_than_all_capacity_counts_are_told_as_never_starting() -> None:
    cluster = dev_cluster()  # two pools, at most 4 nodes
    texts = [
        [note.text for note in notes(dev_base(), cluster, PRICES, {("train", 1): 1, ("train", 2): second})]
        for second in (2, 3)
    ]
    told = "nodes.max is 4, and its capacity counts 3: the others can never start"
    assert [told in found for found in texts] == [True, False]


def test_of_a_type_of_the_projects_own_no_snapshot_is_asked() -> None:
    texts = [note.text for note in notes(dev_base(), sized(1, "p9.test"), PRICES)]
    assert [text for text in texts if "offered" in text] == []


def offered(**changes: object) -> ClusterPlan:
    """`dev` whose queue has its first offer alone, so changed."""
    (queue,) = dev_cluster().queues
    one = replace(queue, instance_type="p5.48xlarge", efa=False, offers=(replace(queue.offers[0], **changes),))  # type: ignore[arg-type]
    return replace(dev_cluster(), queues=(one,), lustre=())


def told_of(cluster: ClusterPlan, counts: Counts = NO_COUNTS) -> list[str]:
    return [note.text for note in notes(dev_base(), cluster, PRICES, counts)]


def test_a_limit_below_the_cheapest_zone_is_told_with_both_figures() -> None:
    text = "spot at 1.50 USD an hour at most is not expected to start: the cheapest zone known took 17.63"
    assert told_of(offered(max_price_usd_per_hour=1.5)) == [text]
    assert told_of(offered(max_price_usd_per_hour=17.7)) == []


@pytest.mark.parametrize(
    ("count", "cost"),
    [
        (4, "4 x 55.04 = 220.16 USD an hour"),
        (None, "55.04 USD an hour for each instance (`count` does not say how many)"),
    ],
)
def test_what_a_reservation_costs_without_a_node_is_told(count: int | None, cost: str) -> None:
    counts = {("train", 1): count} if count else {}
    text = f"its reservation costs money as long as there is one, with no node running, too: {cost}"
    assert told_of(offered(market=Market.RESERVATION, reservation="cr-1"), counts) == [text]


def test_what_a_block_costs_when_it_is_bought_is_told() -> None:
    text = "its capacity block is paid for as a whole when it is bought, used or not: 8 x 47.76 = 382.08 USD an hour"
    cluster = offered(market=Market.CAPACITY_BLOCK, reservation="cr-1")
    assert told_of(cluster, {("train", 1): 8}) == [f"{text}, for all its hours"]


def test_reserved_capacity_without_a_price_is_told_all_the_same() -> None:
    (queue,) = offered(market=Market.RESERVATION, reservation="cr-1").queues
    strange = replace(dev_cluster(), queues=(replace(queue, instance_type="p9.test"),), lustre=())
    assert told_of(strange)[0].endswith("too: at a price of p9.test that is not known")


def in_zones(name: str, *zones: str) -> QueuePlan:
    """The queue of `dev` under this name, with an offer in each of these zones."""
    (queue,) = dev_cluster().queues
    return replace(queue, name=name, offers=tuple(replace(queue.offers[0], zone_id=zone) for zone in zones))


def test_a_file_system_far_from_several_queues_is_told_once() -> None:
    far = [in_zones(name, "use1-az1", "use1-az2") for name in ("train", "eval")]
    queues = (*far, in_zones("small", "use1-az2"), in_zones("near", "use1-az1"))
    texts = [note.text for note in notes(dev_base(), replace(dev_cluster(), queues=queues), PRICES)]
    assert [text for text in texts if "reading" in text] == [
        "is in use1-az1, nodes of train, eval, small may run in use1-az2: reading from there is slower"
        " and costs 0.02 USD for each GB"
    ]


def test_queues_with_other_far_zones_are_told_apart() -> None:
    queues = (in_zones("train", "use1-az2"), in_zones("eval", "use1-az4"))
    note = notes(dev_base(), replace(dev_cluster(), queues=queues), PRICES)[-1]
    assert note.text.partition(":")[0] == (
        "is in use1-az1, nodes of train may run in use1-az2, of eval may run in use1-az4"
    )


def test_a_type_that_the_region_does_not_have_is_told_first() -> None:
    some, nowhere = in_zones("some", "use1-az1"), in_zones("nowhere", "use1-az1")
    queues = (replace(some, instance_type="p5en.48xlarge"), replace(nowhere, instance_type="trn2.48xlarge"))
    told = notes(dev_base(), replace(dev_cluster(), queues=queues), PRICES)
    assert [note.about for note in told[:2]] == ["queue nowhere", "queue some"]


def test_capacity_is_told_before_money_and_money_before_speed() -> None:
    (queue,) = dev_cluster().queues
    reserved = replace(queue.offers[0], pool=1, market=Market.RESERVATION, reservation="cr-1", zone_id="use1-az2")
    cluster = replace(dev_cluster(), queues=(replace(queue, max_nodes=2, offers=(reserved,)),))
    texts = [note.text for note in notes(dev_base(), cluster, PRICES, {("train", 1): 1})]
    assert [text.split()[0] for text in texts] == ["nodes.max", "its", "reservation", "is"]
