"""What people see of a plan: the same facts at every width, plain text where nobody looks."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from corral.forecast.cost import forecast_cost
from corral.forecast.money import Sum
from corral.forecast.prices import Service, ServicePrice
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.lustre import LustrePlan
from corral.report.amounts import lacking, summed
from corral.report.cost import cost_view
from corral.report.documents import cost_document
from corral.report.plan import plan_view
from worked_example import BASE, CLUSTER, RoundPrices

COST = forecast_cost(BASE, CLUSTER, RoundPrices())


def seen(width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, markup=False, emoji=False)
    for part in (*plan_view(BASE, CLUSTER), *cost_view(COST)):
        console.print(part)
    return out.getvalue()


def words(text: str) -> list[str]:
    return sorted(re.sub(r"[─\s]+", " ", text).split())


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in seen(width).splitlines()) <= width


def test_narrow_and_wide_say_the_same() -> None:
    assert words(seen(80)) == words(seen(160))


def test_colour_adds_nothing_but_colour() -> None:
    assert re.sub(r"\x1b\[[0-9;]*m", "", seen(120, colour=True)) == seen(120)


def test_plain_output_has_no_escapes() -> None:
    assert "\x1b" not in seen(80)


def test_every_interface_of_a_node_is_shown_by_card_and_device() -> None:
    rows = [line.split() for line in seen(160).splitlines() if "(no address)" in line or "ENA (IP)" in line]
    assert [row[:3] for row in rows] == [["0", "0", "ENA"], ["0", "1", "EFA"], ["1", "0", "EFA"]]


def test_node_is_shown_as_slurm_will_have_it() -> None:
    assert "Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=1120665" in seen(160)


def test_spot_is_a_range_and_on_demand_is_one_price() -> None:
    rows = [line.split() for line in seen(160).splitlines() if line.strip().startswith("train ")]
    assert rows == [
        ["train", "spot", "4", "2.00", "-", "6.00", "8.00", "-", "24.00", "[2]"],
        ["train", "on-demand", "4", "20.00", "80.00", "[2]"],
    ]


def test_every_mark_of_a_source_has_its_footnote() -> None:
    text = seen(160)
    marks = set(re.findall(r"\[(\d+)\] *$", text, re.MULTILINE))
    notes = set(re.findall(r"^  \[(\d+)\] ", text, re.MULTILINE))
    assert marks == notes == {"1", "2"}


def test_missing_price_is_said_below_the_sums() -> None:
    assert "No price is known for alarm: the sums are too low by that." in seen(160)


def test_a_budget_is_told_with_what_makes_it_count() -> None:
    told = " ".join(seen(160).split())
    assert "counts only once the tag corral:base is activated as a cost allocation tag (billing console)" in told


def test_quotas_say_what_is_needed_and_mark_what_a_new_account_lacks() -> None:
    rows = [" ".join(line.split()) for line in seen(160).splitlines() if "L-7212CCBC" in line]
    assert rows == ["All P4, P3 and P2 Spot Instance Requests L-7212CCBC ! 384 vCPUs 0 queue train"]


def test_quotas_that_every_account_has_are_counted_only() -> None:
    assert "Of 9 others it needs no more than a new account has; --json lists them." in seen(160)


DATA = LustrePlan(
    name="data",
    zone_id="use1-az1",
    size_gib=19_200,
    deployment="PERSISTENT_2",
    throughput_mbps_per_tib=250,
    mount="/data",
    data=(),
    kept=True,
)
WITH_DATA = replace(BASE, lustre=(DATA,))


def told(prices: RoundPrices, base: BasePlan = WITH_DATA, cluster: ClusterPlan = CLUSTER) -> str:
    out = io.StringIO()
    console = Console(file=out, width=400, highlight=False, markup=False, emoji=False)
    cost = forecast_cost(base, cluster, prices)
    for part in (*plan_view(base, cluster, (), cost.kept), *cost_view(cost)):
        console.print(part)
    return "\n".join(" ".join(line.split()) for line in out.getvalue().splitlines())


class LustrePrices(RoundPrices):
    """The same, with a price for the Lustre of the base."""

    def service(self, service: Service) -> ServicePrice | None:
        known = service == "lustre-persistent-2-ssd-250-gib-month"
        return ServicePrice(usd=0.1, source="lustre") if known else super().service(service)


def test_lustre_of_the_base_is_kept_and_told_with_its_cost() -> None:
    text = told(LustrePrices())
    assert "kept bucket, key, home, Lustre data, with the network that Lustre stands in: they survive" in text
    assert "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB): 1,920.00 USD a month, down or up" in text
    assert (
        "kept when down 1,927.30 a month, of that Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB) for 1,920.00,"
        " and what is stored in bucket and home"
    ) in text


def test_kept_lustre_without_a_price_is_told_so() -> None:
    text = told(RoundPrices())
    assert "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB): at a price that is not known, down or up" in text
    assert (
        "kept when down at least 7.30 a month (no price is known for Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)),"
        " and what is stored in bucket and home"
    ) in text


def test_every_sum_says_what_it_lacks() -> None:
    lustre = "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)"
    text = told(RoundPrices())
    assert f"idle base at least 76.65 a month (no price is known for {lustre})" in text
    assert "an hour, on top of the base (no price is known for alarm)" in text
    assert (
        f"all nodes at least 8.77 - 80.77 an hour, base and cluster included (no price is known for {lustre}; " in text
    )


def test_a_sum_of_which_nothing_is_known_is_a_question_mark() -> None:
    nothing = Sum.of([("this", None), ("that", None)])
    assert summed(nothing) + lacking(nothing) == "? (no price is known for this; that)"


def test_the_document_names_the_sums_that_lack_something() -> None:
    found = cost_document(forecast_cost(replace(BASE, lustre=(DATA,)), CLUSTER, RoundPrices()))
    lustre = "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)"
    assert found["incomplete"] == {
        "idle_base_usd_per_month": [lustre],
        "idle_cluster_usd_per_hour": ["alarm"],
        "maximum_usd_per_hour": [lustre, "alarm"],
        "kept_usd_per_month": [lustre],
    }


def test_spot_that_cannot_start_is_told_so_in_its_row() -> None:
    (queue,) = CLUSTER.queues
    low = replace(queue.offers[0], max_price_usd_per_hour=1.5)
    text = told(RoundPrices(), BASE, replace(CLUSTER, queues=(replace(queue, offers=(low, queue.offers[1])),)))
    assert "train spot 0 limit too low - [2]" in text


def told_of_queue(**changes: Any) -> list[str]:
    """The lines of the queue's own facts, up to its offers, where it is so changed."""
    (queue,) = CLUSTER.queues
    text = told(RoundPrices(), BASE, replace(CLUSTER, queues=(replace(queue, **{"nvme_mount": "/nvme", **changes}),)))
    facts, _, _ = text.partition("jobs have no time limit\n")[2].partition("\norder")
    return [line for line in facts.splitlines() if line]


def test_a_queue_without_wishes_of_its_own_tells_none() -> None:
    assert told_of_queue() == []


def test_the_image_of_a_queue_is_told_where_it_is_not_the_clusters() -> None:
    neuron = replace(CLUSTER.image, profile="ubuntu-24.04-neuron-dlami", parameter="/aws/service/neuron/image_id")
    assert told_of_queue(image=neuron) == [
        "image ubuntu-24.04-neuron-dlami: Ubuntu 24.04, Python 3.12, Slurm 23.11",
        "newest of /aws/service/neuron/image_id at the first up, then pinned",
    ]


def test_the_id_of_a_queues_own_image_is_told() -> None:
    own = replace(CLUSTER.image, image_id="ami-0123456789abcdef0", parameter=None)
    assert told_of_queue(image=own)[1] == "ami-0123456789abcdef0"


def test_the_clusters_image_is_not_told_again() -> None:
    assert told_of_queue(image=CLUSTER.image) == []


def test_what_a_queue_sets_is_told_in_a_line() -> None:
    extra = {"PriorityTier": "10"}
    assert told_of_queue(root_gib=500, nvme_mount="/local", exclusive=True, weight=10, extra=extra) == [
        "set root 500 GiB; NVMe disks on /local; jobs take whole nodes; weight 10; PriorityTier=10"
    ]


def test_disks_that_are_not_mounted_are_told() -> None:
    assert told_of_queue(nvme_mount=None) == ["set NVMe disks mounted nowhere"]
