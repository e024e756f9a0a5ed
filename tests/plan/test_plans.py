"""The shipped environment `dev`, from its files to its plan."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from corral.catalog.aws.instance_types import NetworkCard, find_instance_type
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, NodePlan
from corral.model.serialization import from_json, to_json
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster, slurm_memory_mib
from corral.plan.head import head_address
from corral.plan.network_interfaces import plan_nics
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster

P4D = "p4d.24xlarge"


def test_p4d_takes_one_ena_interface_and_one_efa_only_interface_a_card() -> None:
    nics = [(n.card, n.device, n.interface_type.value) for n in plan_nics(find_instance_type(P4D), efa=True)]
    assert nics == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]


def test_a_type_whose_cards_know_only_classic_efa_takes_it_on_the_primary_interface() -> None:
    cards = (NetworkCard(index=0, interface_types=("interface", "efa"), maximum_interfaces=4),)
    machine = replace(find_instance_type(P4D), network_cards=cards, efa_maximum=1)
    assert [(n.card, n.device, n.interface_type.value) for n in plan_nics(machine, efa=True)] == [(0, 0, "efa")]


def test_without_efa_there_is_one_interface() -> None:
    nics = [(n.card, n.device, n.interface_type.value) for n in plan_nics(find_instance_type(P4D), efa=False)]
    assert nics == [(0, 0, "interface")]


def test_slurm_gets_less_memory_than_the_machine_has() -> None:
    gres = dev_cluster().queue("train").node.gres
    assert dev_cluster().queue("train").node == NodePlan(
        sockets=2, cores_per_socket=24, threads_per_core=2, real_memory_mib=1120665, gres=gres
    )


# In bytes. Source: karpenter-provider-aws, zz_generated.memory_overhead.go at 15e8769: of each size the most.
@pytest.mark.parametrize(
    ("memory_mib", "kept_bytes"),
    [
        (4 * 1024, 453677056),  # c5.large
        (5376, 478851072),  # c5n.large
        (8 * 1024, 645001216),  # c5d.xlarge
        (10752, 695332864),  # c5n.xlarge
        (16 * 1024, 910217216),  # c5.2xlarge
        (21504, 1128321024),  # c5n.2xlarge
        (32 * 1024, 1558085632),  # c5.4xlarge
        (72 * 1024, 3691573248),  # c5d.9xlarge
        (384 * 1024, 15314132992),  # m5d.24xlarge
    ],
)
def test_slurm_gets_no_memory_that_a_machine_keeps_for_itself(memory_mib: int, kept_bytes: int) -> None:
    assert slurm_memory_mib(memory_mib) <= memory_mib - kept_bytes / 2**20


def test_offers_keep_the_declared_order_of_pools_then_the_bases_order_of_zones() -> None:
    offers = [
        (o.key, o.pool, o.market.value, o.zone_id, o.placement_group) for o in dev_cluster().queue("train").offers
    ]
    assert offers == [
        ("train-spot-use1-az1", 1, "spot", "use1-az1", "train-use1-az1"),
        ("train-spot-use1-az2", 1, "spot", "use1-az2", "train-use1-az2"),
        ("train-on-demand-use1-az1", 2, "on-demand", "use1-az1", "train-use1-az1"),
        ("train-on-demand-use1-az2", 2, "on-demand", "use1-az2", "train-use1-az2"),
    ]


def test_a_placement_group_never_spans_zones() -> None:
    assert [(g.key, g.zone_id) for g in dev_cluster().placement_groups] == [
        ("train-use1-az1", "use1-az1"),
        ("train-use1-az2", "use1-az2"),
    ]


def test_the_heads_address_follows_from_its_name_and_lies_where_aws_assigns_none() -> None:
    zone = dev_base().zones[0]
    assert (str(head_address("dev", zone)), head_address("dev", zone) in zone.heads) == ("10.64.0.23", True)


def test_an_address_outside_the_heads_range_is_refused_with_the_range() -> None:
    environment = read_environment(PROJECT, "dev")
    head = environment.cluster.head.model_copy(update={"address": IPv4Address("10.64.9.9")})
    with pytest.raises(SpecErrors) as caught:
        plan_cluster(environment.cluster.model_copy(update={"head": head}), plan_base(environment.base))
    assert str(caught.value).partition("yaml: ")[2] == (
        "head.address: 10.64.9.9 is not reserved for heads in use1-az1 - use one of 10.64.0.4 to 10.64.0.62"
    )


@pytest.mark.parametrize("address", ["10.20.32.0", "10.20.32.3", "10.20.63.255"])
def test_an_address_that_aws_keeps_in_an_adopted_subnet_is_refused(address: str) -> None:
    environment = read_environment(PROJECT, "mixed")
    head = environment.cluster.head.model_copy(update={"address": IPv4Address(address)})
    with pytest.raises(SpecErrors, match=f"head.address: {address} is reserved by AWS, like the first four"):
        plan_cluster(environment.cluster.model_copy(update={"head": head}), plan_base(environment.base))


def test_the_boxs_profile_stands_in_for_the_declared_image() -> None:
    assert [dev_cluster(image_profile=p).image.slurm_version for p in (None, "box-debian-12")] == ["23.11", "22.05"]


def test_only_the_image_differs_in_the_box() -> None:
    ours, boxed = dev_cluster(), dev_cluster(image_profile="box-debian-12")
    assert replace(boxed, image=ours.image) == ours


def test_every_resource_carries_the_names_of_base_and_cluster() -> None:
    assert (dev_base().tags, dev_cluster().tags) == (
        {"corral:base": "dev"},
        {"corral:base": "dev", "corral:cluster": "dev"},
    )


def test_cluster_json_gives_the_plan_back() -> None:
    assert from_json(ClusterPlan, to_json(dev_cluster())) == dev_cluster()


def test_a_base_plan_survives_json() -> None:
    assert from_json(BasePlan, to_json(dev_base())) == dev_base()
