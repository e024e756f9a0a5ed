"""Each fault through the real endpoint: the error in boto3, and the result of DescribeInstances."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from vpc_fixtures import LaunchNetwork, described, launch, node_template

import boxes
from corral.box import client, control
from corral.box.client import BoxError, BoxStatus

Clients = Callable[..., Any]
IN_S = 240  # many times what anything here takes
PLAIN = {"InstanceType": "m7i.large"}
NODES = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "train-[1-2]"}]}]
DAY = 24


def once(box: BoxStatus, service: str = "ec2") -> Any:
    """A client without retries: a retry would hide a refusal, or use one up."""
    return boto3.client(
        service,
        endpoint_url=box.url,
        region_name="us-east-1",
        **boxes.owner_keys(box),
        config=Config(retries={"total_max_attempts": 1}),
    )


def run(
    box: BoxStatus, launch_network: LaunchNetwork, least: int = 1, most: int | None = None, **request: Any
) -> list[str]:
    """The ids of new instances."""
    wanted = {"ImageId": launch_network.image, "SubnetId": launch_network.subnet, **PLAIN, **request}
    made = once(box).run_instances(MinCount=least, MaxCount=most or least, **wanted)
    return [one["InstanceId"] for one in made["Instances"]]


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, int]:
    """The code and the HTTP status with which a call was refused."""
    with pytest.raises(ClientError) as raised:
        call(*arguments, **named)
    return raised.value.response["Error"]["Code"], raised.value.response["ResponseMetadata"]["HTTPStatusCode"]


def until(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + IN_S
    while not (held := found()):
        assert time.monotonic() < deadline, f"nothing within {IN_S} s"
        time.sleep(0.1)
    return held


def state(aws: Clients, instance_id: str) -> str:
    return str(described(aws, instance_id)["State"]["Name"])


def ended(aws: Clients, instance_id: str) -> tuple[str, str]:
    """The reason code of a terminated instance, and EC2's transition reason."""
    shown = until(lambda: (one := described(aws, instance_id))["State"]["Name"] == "terminated" and one)
    return shown["StateReason"]["Code"], shown["StateTransitionReason"]


def test_without_capacity_a_launch_is_refused_as_ec2_does(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity")
    assert refused(run, box, launch_network) == ("InsufficientInstanceCapacity", 500)


@pytest.mark.parametrize(
    "elsewhere",
    [{"type": "p5.48xlarge"}, {"zone": "use1-az2"}, {"market": "spot"}, {"target": "train"}],
    ids=lambda words: next(iter(words)),
)
def test_no_capacity_applies_only_within_its_scope(
    box: BoxStatus, launch_network: LaunchNetwork, elsewhere: Any
) -> None:
    control.inject_fault(box.dir, "no-capacity", **elsewhere)
    assert len(run(box, launch_network)) == 1


@pytest.mark.parametrize(
    ("fault_parameters", "request_parameters"),
    [
        ({"type": "m7i.large"}, {}),
        ({"zone": "use1-az1"}, {}),
        ({"zone": "us-east-1b"}, {}),
        ({"market": "on-demand"}, {}),
        ({"market": "spot"}, {"InstanceMarketOptions": {"MarketType": "spot"}}),
        ({"target": "train-2"}, {"TagSpecifications": NODES}),
    ],
    ids=lambda words: ",".join(words.values()) if all(isinstance(one, str) for one in words.values()) else "",
)
def test_no_capacity_applies_within_its_scope(
    box: BoxStatus, launch_network: LaunchNetwork, fault_parameters: dict[str, str], request_parameters: dict[str, Any]
) -> None:
    control.inject_fault(box.dir, "no-capacity", **fault_parameters)
    assert refused(run, box, launch_network, **request_parameters) == ("InsufficientInstanceCapacity", 500)


def test_a_launch_into_a_reservation_without_capacity_is_refused_as_one(
    box: BoxStatus, launch_network: LaunchNetwork
) -> None:
    ec2 = once(box)
    made = ec2.create_capacity_reservation(
        InstanceType="m7i.large", InstancePlatform="Linux/UNIX", AvailabilityZoneId="use1-az1", InstanceCount=1
    )
    target = {"CapacityReservationId": made["CapacityReservation"]["CapacityReservationId"]}
    control.inject_fault(box.dir, "no-capacity", market="reservation")
    parameters = {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}
    assert refused(run, box, launch_network, **parameters) == ("ReservationCapacityExceeded", 400)


def test_a_launch_gets_the_remaining_capacity_if_that_is_enough(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity", remaining="3")
    assert len(run(box, launch_network, 1, 5)) == 3


def test_a_launch_beyond_the_remaining_capacity_gets_nothing(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity", remaining="3")
    assert refused(run, box, launch_network, 4, 5) == ("InsufficientInstanceCapacity", 500)


def test_capacity_returns_after_the_counted_refusals(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity", hits_left="1")
    assert (refused(run, box, launch_network)[0], len(run(box, launch_network))) == ("InsufficientInstanceCapacity", 1)


def test_capacity_returns_after_the_duration(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity", duration="1s")
    time.sleep(1)
    assert len(run(box, launch_network)) == 1


def test_capacity_returns_when_the_fault_is_cleared(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "no-capacity")
    control.clear_faults(box.dir, "no-capacity")
    assert len(run(box, launch_network)) == 1


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("capacity", "Server.InsufficientInstanceCapacity"),
        ("spot", "Server.SpotInstanceTermination"),
        ("volume", "Client.InternalError"),
    ],
)
def test_an_instance_that_fails_after_launch_has_the_reason(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, reason: str, code: str
) -> None:
    control.inject_fault(box.dir, "fail-after-launch", reason=reason, after="0s")
    result, transition = ended(aws, run(box, launch_network)[0])
    assert (result, transition.partition(":")[0]) == (code, code)


def test_an_instance_that_will_fail_is_pending_until_then(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    control.inject_fault(box.dir, "fail-after-launch", after="1h")
    assert state(aws, run(box, launch_network)[0]) == "pending"


def test_the_counted_instances_fail(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "fail-after-launch", after="1h", hits_left="2")
    assert [state(aws, one) for one in run(box, launch_network, 3)] == ["pending", "pending", "running"]


def test_only_the_target_node_of_a_launch_fails(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "fail-after-launch", after="1h", target="train-2")
    assert [state(aws, one) for one in run(box, launch_network, 2, TagSpecifications=NODES)] == ["running", "pending"]


def test_a_second_termination_keeps_the_first_reason(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    control.inject_fault(box.dir, "fail-after-launch", after="0s")
    instance_id = run(box, launch_network)[0]
    ended(aws, instance_id)
    aws("ec2").terminate_instances(InstanceIds=[instance_id])
    assert ended(aws, instance_id)[0] == "Server.InsufficientInstanceCapacity"


def test_a_throttled_call_has_the_status_503(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "throttle")
    assert refused(run, box, launch_network) == ("RequestLimitExceeded", 503)


def test_boto3_outlasts_two_throttled_calls(box: BoxStatus, aws: Clients) -> None:
    control.inject_fault(box.dir, "throttle", call="DescribeVpcs", hits_left="2")
    assert aws("ec2").describe_vpcs()["ResponseMetadata"]["RetryAttempts"] == 2


def test_a_pattern_throttles_all_matching_calls(box: BoxStatus) -> None:
    control.inject_fault(box.dir, "throttle", call="Describe*")
    assert refused(once(box).describe_subnets) == ("RequestLimitExceeded", 503)


@pytest.mark.parametrize(
    ("code", "status"), [("VcpuLimitExceeded", 400), ("UnauthorizedOperation", 403), ("InternalError", 500)]
)
def test_a_refused_call_has_the_code_and_its_status(
    box: BoxStatus, launch_network: LaunchNetwork, code: str, status: int
) -> None:
    control.inject_fault(box.dir, "refuse", code=code)
    assert refused(run, box, launch_network) == (code, status)


def test_the_sixth_launch_at_once_is_throttled(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    ec2 = once(box)
    parameters = {
        "ImageId": launch_network.image,
        "SubnetId": launch_network.subnet,
        "MinCount": 1,
        "MaxCount": 1,
        "DryRun": True,
        **PLAIN,
    }
    result = [refused(ec2.run_instances, **parameters)[0] for _ in range(8)]
    assert (result[:5], "RequestLimitExceeded" in result[5:]) == (["DryRunOperation"] * 5, True)


def test_a_refused_call_has_the_given_message(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "refuse", code="InvalidParameterValue", message="Invalid value 'x' for Y.")
    with pytest.raises(ClientError, match=r"Invalid value 'x' for Y\.$"):
        run(box, launch_network)


def test_a_launch_can_be_refused_for_one_market_only(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "refuse", code="MaxSpotInstanceCountExceeded", market="spot")
    parameters = {"InstanceMarketOptions": {"MarketType": "spot"}}
    result = refused(run, box, launch_network, **parameters)
    assert (result[0], len(run(box, launch_network))) == ("MaxSpotInstanceCountExceeded", 1)


def test_calls_of_other_services_can_be_refused(box: BoxStatus) -> None:
    control.inject_fault(box.dir, "refuse", call="s3:ListBuckets", code="AccessDenied")
    assert refused(once(box, "s3").list_buckets) == ("AccessDenied", 403)


def test_a_late_instance_is_not_listed(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "delayed-visibility", after="1h")
    run(box, launch_network)
    assert once(box).describe_instances()["Reservations"] == []


@pytest.mark.parametrize("call", ["describe_instances", "terminate_instances", "describe_instance_status"])
def test_a_call_that_names_a_late_instance_fails(box: BoxStatus, launch_network: LaunchNetwork, call: str) -> None:
    control.inject_fault(box.dir, "delayed-visibility", after="1h")
    named = run(box, launch_network)
    assert refused(getattr(once(box), call), InstanceIds=named) == ("InvalidInstanceID.NotFound", 400)


def test_the_tags_of_a_late_instance_are_not_listed(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "delayed-visibility", after="1h")
    run(box, launch_network, TagSpecifications=NODES)
    assert once(box).describe_tags(Filters=[{"Name": "key", "Values": ["corral:nodes"]}])["Tags"] == []


def test_a_late_instance_is_listed_after_the_delay(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "delayed-visibility", after="1s")
    instance_id = run(box, launch_network)[0]
    time.sleep(1)
    assert state(aws, instance_id) == "running"


def test_a_repeated_launch_returns_late_instances(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "delayed-visibility", after="1h")
    assert run(box, launch_network, ClientToken="same") == run(box, launch_network, ClientToken="same")


def in_a_block(aws: Clients, launch_network: LaunchNetwork) -> tuple[str, str]:
    """A Capacity Block of one, and the instance in it."""
    ec2 = aws("ec2")
    query = {"InstanceType": "p4d.24xlarge", "InstanceCount": 1, "CapacityDurationHours": DAY}
    offers = ec2.describe_capacity_block_offerings(**query)["CapacityBlockOfferings"]
    offer = next(one["CapacityBlockOfferingId"] for one in offers if one["AvailabilityZone"] == "us-east-1b")
    bought = ec2.purchase_capacity_block(CapacityBlockOfferingId=offer, InstancePlatform="Linux/UNIX")
    block = str(bought["CapacityReservation"]["CapacityReservationId"])
    return block, launch_in(aws, launch_network, block)


def launch_in(aws: Clients, launch_network: LaunchNetwork, block: str) -> str:
    """The id of a new instance in the block."""
    data = {name: value for name, value in node_template(launch_network).items() if name != "Placement"}
    data["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    data["CapacityReservationSpecification"] = {"CapacityReservationTarget": {"CapacityReservationId": block}}
    return str(launch(aws, data)[0]["InstanceId"])


def free_in(aws: Clients, block: str) -> int:
    shown = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[block])["CapacityReservations"][0]
    return int(shown["AvailableInstanceCount"])


def test_an_instance_that_is_cleaned_uses_its_capacity_in_a_block(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    block, instance_id = in_a_block(aws, launch_network)
    control.inject_fault(box.dir, "slow-termination", after="1h", market="capacity-block")
    once(box).terminate_instances(InstanceIds=[instance_id])
    code, _ = refused(launch_in, aws, launch_network, block)
    assert (state(aws, instance_id), free_in(aws, block), code) == ("shutting-down", 0, "ReservationCapacityExceeded")


def test_a_cleaned_instance_frees_its_capacity_in_a_block(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    block, instance_id = in_a_block(aws, launch_network)
    control.inject_fault(box.dir, "slow-termination", after="1s", market="capacity-block")
    once(box).terminate_instances(InstanceIds=[instance_id])
    until(lambda: state(aws, instance_id) == "terminated")
    assert free_in(aws, block) == 1


def test_a_stopped_instance_that_is_cleaned_is_stopping(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    control.inject_fault(box.dir, "slow-termination", after="1h")
    instance_id = run(box, launch_network)[0]
    once(box).stop_instances(InstanceIds=[instance_id])
    assert state(aws, instance_id) == "stopping"


def test_only_instances_of_the_market_are_cleaned(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "slow-termination", after="1h", market="capacity-block")
    instance_id = run(box, launch_network)[0]
    once(box).terminate_instances(InstanceIds=[instance_id])
    assert state(aws, instance_id) == "terminated"


def test_a_killed_instance_ends_with_an_internal_error(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    instance_id = run(box, launch_network)[0]
    control.inject_fault(box.dir, "kill", target=instance_id)
    assert (state(aws, instance_id), ended(aws, instance_id)[0]) == ("shutting-down", "Server.InternalError")


def test_kill_head_kills_the_head_only(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    cluster, queue = ({"Key": f"corral:{key}", "Value": "x"} for key in ("cluster", "queue"))
    head, _node = (
        run(box, launch_network, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])[0]
        for tags in ([cluster], [cluster, queue])
    )
    assert control.inject_fault(box.dir, "kill-head")["instances"] == [head]


def test_a_node_is_found_by_its_launch_index(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    instances = run(box, launch_network, 2, TagSpecifications=NODES)
    assert control.inject_fault(box.dir, "freeze", target="train-2")["instances"] == [instances[1]]


def block(aws: Clients, launch_network: LaunchNetwork) -> tuple[str, str]:
    """A capacity block of one p4d in the launch_network's zone, and its instance."""
    ec2 = aws("ec2")
    offers = ec2.describe_capacity_block_offerings(
        InstanceType="p4d.24xlarge", InstanceCount=1, CapacityDurationHours=DAY
    )
    offer = next(one for one in offers["CapacityBlockOfferings"] if one["AvailabilityZone"] == "us-east-1b")
    bought = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )
    reservation = bought["CapacityReservation"]["CapacityReservationId"]
    data = {**node_template(launch_network), "InstanceMarketOptions": {"MarketType": "capacity-block"}}
    data |= {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation}}}
    del data["Placement"]
    return reservation, launch(aws, data)[0]["InstanceId"]


def test_the_end_of_a_block_terminates_its_instances(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    _, instance_id = block(aws, launch_network)
    control.inject_fault(box.dir, "block-end", target="train", after="0s")
    assert state(aws, instance_id) == "terminated"


def test_the_end_date_of_an_ending_block_is_half_an_hour_later(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    reservation, _ = block(aws, launch_network)
    control.inject_fault(box.dir, "block-end", target="train", after="10m")
    shown = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"][0]
    assert 39 * 60 < (shown["EndDate"].timestamp() - time.time()) < 41 * 60


@pytest.mark.parametrize(
    ("kind", "fault_parameters", "sentence"),
    [
        (
            "freeze",
            {"target": "train-9"},
            "no running instance is 'train-9' - `corral status` lists nodes and instances",
        ),
        ("kill-head", {"target": "dev"}, "no running head of 'dev' - `corral status` lists nodes and instances"),
        (
            "no-capacity",
            {"market": "sport"},
            "unknown market 'sport' - expected one of spot, on-demand, reservation, capacity-block",
        ),
        ("no-capacity", {"type": "p9"}, "'p9' is not an EC2 instance type"),
        ("no-capacity", {"zone": "moon-1a"}, "'moon-1a' is not an EC2 zone - write e.g. us-east-1a or use1-az1"),
        ("no-capacity", {"duration": "soon"}, "'soon' is not a time - write 30s, 2m or 1h"),
        ("throttle", {"hits_left": "-1"}, "'-1' is not a number of times"),
        ("earthquake", {}, "unknown fault 'earthquake'"),
        (
            "no-capacity",
            {"type": "p4d.24xlarges"},
            "'p4d.24xlarges' is not an EC2 instance type - did you mean 'p4d.24xlarge'?",
        ),
        (
            "no-capacity",
            {"duration": "99999999999999h"},
            "'99999999999999h' is too long - the maximum is 8760h, a year",
        ),
        ("spot-notice", {"target": "x", "after": "9000h"}, "'9000h' is too long - the maximum is 8760h, a year"),
        ("throttle", {"duration": "0s"}, "--duration must be positive - write 30s, 2m or 1h"),
        ("throttle", {"hits_left": "0"}, "--count must be 1 or more"),
        ("throttle", {"hits_left": "1" * 5000}, f"'{'1' * 5000}' is not a number of times"),
        ("no-capacity", {"remaining": "all"}, "'all' is not a number of instances"),
        ("throttle", {"call": "NotACall"}, "ec2 has no call 'NotACall'"),
        ("throttle", {"call": "RunInstance"}, "ec2 has no call 'RunInstance' - did you mean 'RunInstances'?"),
        ("throttle", {"call": "s3:Describe*"}, "s3 has no call 'Describe*'"),
        ("throttle", {"call": "root53:ListTagsForResource"}, "unknown service 'root53' - did you mean 'route53'?"),
        ("no-capacity", {"target": ""}, "--target is empty - name a queue or node, or omit it"),
        ("refuse", {"code": ""}, "'' is not an error code - write e.g. VcpuLimitExceeded"),
        (
            "mirror-error",
            {},
            "only virtual machines read a package mirror - stop the box, and start it with --machines vm",
        ),
    ],
)
def test_invalid_parameters_are_named(
    box: BoxStatus, kind: str, fault_parameters: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BoxError) as raised:
        control.inject_fault(box.dir, kind, **fault_parameters)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("trains", "'trains' is neither a queue nor a node - did you mean 'train'?"),
        ("tarin-3", "'tarin-3' is neither a queue nor a node - did you mean 'train'?"),
        ("gpu", "'gpu' is neither a queue nor a node - expected train or a node"),
    ],
)
def test_an_unknown_queue_is_named(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, which: str, sentence: str
) -> None:
    aws("ec2").create_launch_template(LaunchTemplateName="a", LaunchTemplateData=node_template(launch_network))
    with pytest.raises(BoxError) as raised:
        control.inject_fault(box.dir, "no-capacity", target=which)
    assert str(raised.value) == sentence


def test_a_fault_may_be_for_a_node_that_is_not_launched_yet(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    aws("ec2").create_launch_template(LaunchTemplateName="a", LaunchTemplateData=node_template(launch_network))
    assert control.inject_fault(box.dir, "no-capacity", target="train-7")["target"] == "train-7"


def test_a_misspelled_node_is_named_with_the_known_one(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    run(box, launch_network, TagSpecifications=NODES)
    with pytest.raises(BoxError) as raised:
        control.inject_fault(box.dir, "kill", target="trian-1")
    assert str(raised.value) == "no running instance is 'trian-1' - did you mean 'train-1'?"


@pytest.mark.parametrize("call", ["*", "s3:*", "*:Describe*", "RunInstances", "ec2:Describe*", "route53:GetChange"])
def test_a_call_may_be_a_pattern_with_a_match(box: BoxStatus, call: str) -> None:
    assert control.inject_fault(box.dir, "throttle", call=call)["kind"] == "throttle"


def test_a_listed_fault_shows_what_remains_of_it(box: BoxStatus) -> None:
    control.inject_fault(box.dir, "no-capacity", type="p5.48xlarge", hits_left="3", remaining="2")
    assert [one["line"] for one in control.faults(box.dir)] == ["no-capacity p5.48xlarge, remaining 2, 3 more times"]


def test_a_used_up_fault_is_not_listed(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    control.inject_fault(box.dir, "throttle", hits_left="1")
    refused(run, box, launch_network)
    assert control.faults(box.dir) == []


def test_a_fault_of_a_machine_ends_with_it(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    instance_id = run(box, launch_network)[0]
    control.inject_fault(box.dir, "network-cut", target=instance_id)
    aws("ec2").terminate_instances(InstanceIds=[instance_id])
    assert until(lambda: control.faults(box.dir) == [])


def test_active_faults_survive_a_restart(state_directory: Path) -> None:
    boxes.start(state_directory)
    control.inject_fault(state_directory, "throttle", hits_left="2")
    client.stop(state_directory)
    assert boxes.start(state_directory).faults == ("throttle, call ec2:RunInstances, 2 more times",)


def test_a_reset_ends_all_faults(box: BoxStatus) -> None:
    control.inject_fault(box.dir, "no-capacity")
    client.reset(box.dir)
    assert control.faults(box.dir) == []


def test_a_spot_instance_with_a_notice_terminates_in_time(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    instance_id = run(box, launch_network, InstanceMarketOptions={"MarketType": "spot"})[0]
    control.inject_fault(box.dir, "spot-notice", target=instance_id, after="1s")
    assert (state(aws, instance_id), ended(aws, instance_id)[0]) == ("running", "Server.SpotInstanceTermination")


def test_an_instance_on_demand_gets_no_spot_notice(box: BoxStatus, launch_network: LaunchNetwork) -> None:
    with pytest.raises(BoxError, match="no running spot instance is"):
        control.inject_fault(box.dir, "spot-notice", target=run(box, launch_network)[0], after="1s")


def test_clearing_a_spot_notice_withdraws_it(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    run(box, launch_network, InstanceMarketOptions={"MarketType": "spot"}, TagSpecifications=NODES)
    control.inject_fault(box.dir, "spot-notice", target="train-1", after="2m")
    assert (control.clear_faults(box.dir), control.faults(box.dir)) == (1, [])
