"""The status of an environment, from the resources of an account."""

from dataclasses import replace
from datetime import UTC, datetime

from corral.forecast.cost.cost_range import Usd
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.status import InstanceGroup, Status, find_status
from worked_example import UNPRICED_LUSTRE, RoundPrices

OWN = {"corral:base": "dev", "corral:cluster": "dev"}
SPOT = {**OWN, "corral:queue": "train", "corral:offer": "train-spot-use1-az1"}
VPC = AwsResource(kind=ResourceKind.VPC, id="vpc-1", tags={"corral:base": "dev"})
NAT = AwsResource(kind=ResourceKind.NAT_GATEWAY, id="nat-1", tags={"corral:base": "dev"})
HEAD = AwsResource(
    kind=ResourceKind.INSTANCE, id="i-0", tags=OWN, state="running", type="m7i.2xlarge", market="on-demand"
)
NODE = AwsResource(
    kind=ResourceKind.INSTANCE,
    id="i-1",
    tags={**SPOT, "corral:nodes": "train-[1-2]"},
    state="running",
    type="p4d.24xlarge",
    market="spot",
    launch_index=0,
)
OTHER = AwsResource(
    kind=ResourceKind.INSTANCE, id="i-9", tags={"corral:base": "dev", "corral:cluster": "big"}, type="m7i.2xlarge"
)
ENDS = datetime(2026, 11, 22, 8, tzinfo=UTC)


def status(*resources: AwsResource) -> Status:
    return find_status(resources, "dev", "dev", "us-east-1", ENDS, RoundPrices())


def test_without_resources_an_environment_is_not_up() -> None:
    found = status()
    assert (found.base_is_up, found.cluster_is_up, found.head, found.usd_per_hour.usd) == (
        False,
        False,
        None,
        Usd(0, 0),
    )


def test_base_alone_is_up_without_its_cluster() -> None:
    found = status(VPC, NAT)
    assert (found.base_is_up, found.cluster_is_up) == (True, False)


def test_nodes_are_those_of_the_instances_that_are_left_of_their_launches() -> None:
    left = replace(NODE, id="i-2", launch_index=1)
    later = replace(NODE, id="i-3", tags={**SPOT, "corral:nodes": "train-3"})
    assert status(VPC, HEAD, left, later).groups[0].nodes == ("train-[2-3]",)


def test_head_is_the_instance_without_a_queue() -> None:
    head = status(VPC, NODE, HEAD).head
    assert head is not None and head.id == "i-0"


def test_other_clusters_on_the_base_do_not_count() -> None:
    found = status(VPC, OTHER)
    assert (found.cluster_is_up, found.cluster_usd_per_hour.usd) == (False, Usd(0, 0))


def test_instances_are_grouped_by_queue_offer_and_state() -> None:
    twin, pending = replace(NODE, id="i-2", launch_index=1), replace(NODE, id="i-3", tags=SPOT, state="pending")
    assert status(VPC, HEAD, NODE, twin, pending).groups == (
        InstanceGroup(
            queue="train",
            offer="train-spot-use1-az1",
            type="p4d.24xlarge",
            state="pending",
            count=1,
            nodes=(),
            usd_per_hour=Usd(2.0, 8.0),
        ),
        InstanceGroup(
            queue="train",
            offer="train-spot-use1-az1",
            type="p4d.24xlarge",
            state="running",
            count=2,
            nodes=("train-[1-2]",),
            usd_per_hour=Usd(4.0, 16.0),
        ),
    )


def test_cost_now_is_that_of_base_and_cluster() -> None:
    found = status(VPC, NAT, HEAD, NODE).usd_per_hour.usd
    assert found is not None
    assert (round(found.low, 6), round(found.high, 6)) == (2.45, 8.45)


def test_a_bucket_that_is_not_measured_does_not_make_the_sum_incomplete() -> None:
    bucket = AwsResource(kind=ResourceKind.BUCKET, id="b", tags={"corral:base": "dev", "Name": "corral-dev-artefacts"})
    assert status(VPC, NAT, bucket, HEAD).usd_per_hour == status(VPC, NAT, HEAD).usd_per_hour


def test_what_has_no_price_makes_the_sums_incomplete() -> None:
    found = status(VPC, NAT, UNPRICED_LUSTRE, HEAD)
    missing = ("lustre file system data (19,200 GiB)",)
    assert (found.base_usd_per_hour.missing, found.cluster_usd_per_hour.missing, found.usd_per_hour.missing) == (
        missing,
        (),
        missing,
    )


def test_a_machine_under_a_name_of_no_login_node_is_left_out_and_named() -> None:
    one = replace(HEAD, id="i-7", tags={**OWN, "corral:login": "login-1"})
    found = status(VPC, HEAD, one, replace(HEAD, id="i-8", tags={**OWN, "corral:login": "login-1 github.com"}))
    assert (found.login, found.warnings) == (
        (one,),
        (
            "i-8 is left out: its tag corral:login is 'login-1 github.com', which is not the name of a login node"
            " - find out who tagged it, then end it or remove the tag",
        ),
    )
