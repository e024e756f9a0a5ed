"""Static nodes on a base whose zones have 447 addresses each: too many are refused."""

from __future__ import annotations

from typing import Any

import pytest

from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.spec_errors import SpecErrors
from corral.spec.validation_context import ValidationContext

BOTH, FIRST = ["use1-az1", "use1-az2"], ["use1-az1"]
BLOCK = {"market": "capacity-block", "zones": FIRST, "ids": ["cr-0123456789abcdef0"], "count": 4}


def queue(name: str, least: int, zones: list[str] = BOTH, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "instance_type": "p5.48xlarge",
        "nodes": {"min": least, "max": 1000},
        "capacity": [{"market": "on-demand", "zones": zones}],
        **fields,
    }


def planned(*queues: dict[str, Any], **storage: Any) -> ClusterPlan:
    network = {"cidr": "10.64.0.0/20", "zones": BOTH}
    base = parse_base(
        {"network": network, "storage": {"home": {}} if storage else {}},
        name="b",
        where="b",
        context=ValidationContext(region="us-east-1"),
    )
    spec = {"queues": list(queues), "storage": storage}
    cluster = parse_cluster(spec, name="c", where="c", context=ValidationContext(region="us-east-1", base=base))
    return plan_cluster(cluster, plan_base(base))


def refused(*queues: dict[str, Any], **storage: Any) -> str:
    with pytest.raises(SpecErrors) as caught:
        planned(*queues, **storage)
    return str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"least": 447},
        {"least": 13, "efa": "with-ena"},
        {"least": 894, "efa": "off"},  # without EFA they may use both zones
        {"least": 20, "capacity": [BLOCK, {"market": "spot", "zones": ["use1-az2"]}]},  # all of them on spot
    ],
)
def test_nodes_that_fit_are_planned(fields: dict[str, Any]) -> None:
    assert planned(queue("train", **fields)).queues[0].min_nodes == fields["least"]


def test_more_nodes_than_the_subnets_have_addresses_for_are_refused() -> None:
    assert refused(queue("train", 895, efa="off")) == (
        "c: queues[0].nodes.min: 895 nodes do not fit into the subnets of use1-az1, use1-az2, which hold 894"
        " - use 894 or less, or larger subnets"
    )


def test_nodes_with_ena_need_an_address_for_each_interface() -> None:
    assert refused(queue("train", 14, FIRST, efa="with-ena")) == (
        "c: queues[0].nodes.min: 14 nodes with 32 addresses each do not fit into the subnets of use1-az1, which hold"
        " 13 - use 13 or less, or larger subnets"
    )


def test_nodes_with_efa_that_no_one_zone_holds_are_refused() -> None:
    assert refused(queue("train", 448)) == (
        "c: queues[0].nodes.min: 448 nodes do not fit into one zone, and EFA does not cross zones: the zones hold"
        " 447 in use1-az1, 447 in use1-az2 - use 447 or less, or a queue for each zone"
    )


def test_counted_capacity_and_addresses_are_weighed_together() -> None:
    pools = [BLOCK, {"market": "spot", "zones": ["use1-az2"]}]
    assert refused(queue("train", 14, efa="with-ena", capacity=pools)) == (
        "c: queues[0].nodes.min: 14 nodes do not fit into one zone, and EFA does not cross zones: the zones hold"
        " 4 in use1-az1, 13 in use1-az2 - use 13 or less, or a queue for each zone"
    )


def test_queues_that_fit_alone_and_not_together_are_refused() -> None:
    assert refused(queue("a", 300, FIRST), queue("b", 148, FIRST), queue("c", 10)) == (
        "c: queues: the static nodes of a, b need 448 addresses, but the subnets of use1-az1 have 447"
        " - lower nodes.min, or use larger subnets"
    )


def test_home_and_lustre_leave_fewer_addresses() -> None:
    lustre = [{"name": "scratch", "size_gib": 9600, "zone": "use1-az1"}]
    assert "which hold 441 -" in refused(queue("train", 447, FIRST), lustre=lustre)
