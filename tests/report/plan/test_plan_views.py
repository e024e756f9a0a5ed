"""The views of a plan: the same facts at every width, plain text without a terminal."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from corral.forecast.cost.cost_range import Sum
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.price_source import Service, ServiceRate
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.lustre import LustrePlan
from corral.report.formatting import lacking, summed
from corral.report.plan.cost_view import cost_view
from corral.report.plan.plan_json import cost_document
from corral.report.plan.plan_view import plan_view
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


def test_narrow_and_wide_output_have_the_same_words() -> None:
    assert words(seen(80)) == words(seen(160))


def test_colour_changes_no_text() -> None:
    assert re.sub(r"\x1b\[[0-9;]*m", "", seen(120, colour=True)) == seen(120)


def test_plain_output_has_no_escapes() -> None:
    assert "\x1b" not in seen(80)


def test_every_interface_of_a_node_is_shown_by_card_and_device() -> None:
    rows = [line.split() for line in seen(160).splitlines() if "(no address)" in line or "ENA (IP)" in line]
    assert [row[:3] for row in rows] == [["0", "0", "ENA"], ["0", "1", "EFA"], ["1", "0", "EFA"]]


def test_node_is_shown_as_in_slurm_conf() -> None:
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
    footnotes = set(re.findall(r"^  \[(\d+)\] ", text, re.MULTILINE))
    assert marks == footnotes == {"1", "2"}


def test_missing_prices_are_named_below_the_sums() -> None:
    assert "No known price for alarm: the sums do not include it." in seen(160)


def test_budget_is_shown_with_the_tag_to_activate() -> None:
    text = " ".join(seen(160).split())
    assert "counts only once the tag corral:base is activated as a cost allocation tag (billing console)" in text


def test_quotas_show_the_need_and_mark_what_a_new_account_lacks() -> None:
    rows = [" ".join(line.split()) for line in seen(160).splitlines() if "L-7212CCBC" in line]
    assert rows == ["All P4, P3 and P2 Spot Instance Requests L-7212CCBC ! 384 vCPUs 0 queue train"]


def test_quotas_within_the_defaults_are_only_counted() -> None:
    assert "9 more are within the defaults of a new account; --json lists them." in seen(160)


DATA = LustrePlan(
    name="data",
    zone_id="use1-az1",
    size_gib=19_200,
    deployment="PERSISTENT_2",
    throughput_mbps_per_tib=250,
    mount="/data",
    data=(),
    retained=True,
)
WITH_DATA = replace(BASE, lustre=(DATA,))


def plan_text(prices: RoundPrices, base: BasePlan = WITH_DATA, cluster: ClusterPlan = CLUSTER) -> str:
    out = io.StringIO()
    console = Console(file=out, width=400, highlight=False, markup=False, emoji=False)
    cost = forecast_cost(base, cluster, prices)
    for part in (*plan_view(base, cluster, (), cost.retained), *cost_view(cost)):
        console.print(part)
    return "\n".join(" ".join(line.split()) for line in out.getvalue().splitlines())


class LustrePrices(RoundPrices):
    """Round prices, with one for the Lustre of the base."""

    def service(self, service: Service) -> ServiceRate | None:
        known = service == "lustre-persistent-2-ssd-250-gib-month"
        return ServiceRate(usd=0.1, source="lustre") if known else super().service(service)


def test_lustre_of_the_base_is_retained_and_shown_with_its_cost() -> None:
    text = plan_text(LustrePrices())
    assert "retained bucket, key, home, Lustre data, with the network of Lustre, by every" in text
    assert "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB): 1,920.00 USD a month, up or down" in text
    assert (
        "when down 1,923.65 a month, including Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB) for 1,920.00,"
        " plus the data stored in bucket and home"
    ) in text


def test_retained_lustre_without_a_price_is_shown_as_unknown() -> None:
    text = plan_text(RoundPrices())
    assert "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB): at an unknown price, up or down" in text
    assert (
        "when down at least 3.65 a month (no known price for Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)),"
        " plus the data stored in bucket and home"
    ) in text


def test_every_sum_names_its_missing_prices() -> None:
    lustre = "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)"
    text = plan_text(RoundPrices())
    assert f"idle base at least 76.65 a month (no known price for {lustre})" in text
    assert "an hour, on top of the base (no known price for alarm)" in text
    assert f"all nodes at least 8.77 - 80.77 an hour, including base and cluster (no known price for {lustre}; " in text


def test_sum_without_any_known_price_is_a_question_mark() -> None:
    nothing = Sum.of([("this", None), ("that", None)])
    assert summed(nothing) + lacking(nothing) == "? (no known price for this; that)"


def test_document_names_incomplete_sums() -> None:
    found = cost_document(forecast_cost(replace(BASE, lustre=(DATA,)), CLUSTER, RoundPrices()))
    lustre = "Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)"
    assert found["incomplete"] == {
        "idle_base_usd_per_month": [lustre],
        "idle_cluster_usd_per_hour": ["alarm"],
        "maximum_usd_per_hour": [lustre, "alarm"],
        "retained_usd_per_month": [lustre],
    }


def test_spot_with_a_limit_too_low_is_marked_in_its_row() -> None:
    (queue,) = CLUSTER.queues
    low = replace(queue.offers[0], max_price_usd_per_hour=1.5)
    text = plan_text(RoundPrices(), BASE, replace(CLUSTER, queues=(replace(queue, offers=(low, queue.offers[1])),)))
    assert "train spot 0 limit too low - [2]" in text


def queue_facts(**changes: Any) -> list[str]:
    """The lines of the changed queue's own settings, up to its offers."""
    (queue,) = CLUSTER.queues
    text = plan_text(
        RoundPrices(), BASE, replace(CLUSTER, queues=(replace(queue, **{"nvme_mount": "/nvme", **changes}),))
    )
    facts, _, _ = text.partition("jobs have no time limit\n")[2].partition("\norder")
    return [line for line in facts.splitlines() if line]


def test_queue_with_defaults_shows_no_settings() -> None:
    assert queue_facts() == []


def test_image_of_a_queue_is_shown_if_it_is_not_the_clusters() -> None:
    neuron = replace(CLUSTER.image, profile="ubuntu-24.04-neuron-dlami", parameter="/aws/service/neuron/image_id")
    assert queue_facts(image=neuron) == [
        "image ubuntu-24.04-neuron-dlami: Ubuntu 24.04, Python 3.12, Slurm 23.11",
        "newest of /aws/service/neuron/image_id at the first `corral up`, then pinned",
    ]


def test_id_of_a_queues_own_image_is_shown() -> None:
    own = replace(CLUSTER.image, image_id="ami-0123456789abcdef0", parameter=None)
    assert queue_facts(image=own)[1] == "ami-0123456789abcdef0"


def test_the_clusters_image_is_not_repeated() -> None:
    assert queue_facts(image=CLUSTER.image) == []


def test_settings_of_a_queue_are_one_line() -> None:
    extra = {"PriorityTier": "10"}
    assert queue_facts(root_gib=500, nvme_mount="/local", exclusive=True, weight=10, extra=extra) == [
        "set root 500 GiB; NVMe disks on /local; jobs take whole nodes; weight 10; PriorityTier=10"
    ]


def test_disks_that_are_not_mounted_are_shown() -> None:
    assert queue_facts(nvme_mount=None) == ["set NVMe disks not mounted"]
