"""Each fault through the real endpoint: what boto3 is told, and what DescribeInstances then shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from ground import Ground, described, launch, node_template

from corral.box import control
from corral.box.control import BoxError, BoxStatus

Clients = Callable[..., Any]
IN_S = 30  # many times what anything here takes
PLAIN = {"InstanceType": "m7i.large"}
NODES = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "train-[1-2]"}]}]
DAY = 24


def once(box: BoxStatus, service: str = "ec2") -> Any:
    """A client that asks once: a repeated call would hide a refusal, or use one up."""
    return boto3.client(
        service,
        endpoint_url=box.url,
        region_name="us-east-1",
        aws_access_key_id=control.ACCESS_KEY,
        aws_secret_access_key="corral-box",
        config=Config(retries={"total_max_attempts": 1}),
    )


def run(box: BoxStatus, ground: Ground, least: int = 1, most: int | None = None, **request: Any) -> list[str]:
    """The ids of new instances."""
    wanted = {"ImageId": ground.image, "SubnetId": ground.subnet, **PLAIN, **request}
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
    """The reason code of an instance that has ended, and what EC2 says of the transition."""
    shown = until(lambda: (one := described(aws, instance_id))["State"]["Name"] == "terminated" and one)
    return shown["StateReason"]["Code"], shown["StateTransitionReason"]


def test_without_capacity_a_launch_is_refused_as_ec2_does(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity")
    assert refused(run, box, ground) == ("InsufficientInstanceCapacity", 500)


@pytest.mark.parametrize(
    "elsewhere",
    [{"type": "p5.48xlarge"}, {"zone": "use1-az2"}, {"market": "spot"}, {"of": "train"}],
    ids=lambda words: next(iter(words)),
)
def test_capacity_is_short_only_where_the_fault_means(box: BoxStatus, ground: Ground, elsewhere: Any) -> None:
    control.make_fault(box.dir, "no-capacity", **elsewhere)
    assert len(run(box, ground)) == 1


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ({"type": "m7i.large"}, {}),
        ({"zone": "use1-az1"}, {}),
        ({"zone": "us-east-1b"}, {}),
        ({"market": "on-demand"}, {}),
        ({"market": "spot"}, {"InstanceMarketOptions": {"MarketType": "spot"}}),
        ({"of": "train-2"}, {"TagSpecifications": NODES}),
    ],
    ids=lambda words: ",".join(words.values()) if all(isinstance(one, str) for one in words.values()) else "",
)
def test_capacity_is_short_where_the_fault_means(
    box: BoxStatus, ground: Ground, words: dict[str, str], request_: dict[str, Any]
) -> None:
    control.make_fault(box.dir, "no-capacity", **words)
    assert refused(run, box, ground, **request_) == ("InsufficientInstanceCapacity", 500)


def test_a_launch_into_a_reservation_without_capacity_is_refused_as_one(box: BoxStatus, ground: Ground) -> None:
    ec2 = once(box)
    made = ec2.create_capacity_reservation(
        InstanceType="m7i.large", InstancePlatform="Linux/UNIX", AvailabilityZoneId="use1-az1", InstanceCount=1
    )
    target = {"CapacityReservationId": made["CapacityReservation"]["CapacityReservationId"]}
    control.make_fault(box.dir, "no-capacity", market="reservation")
    asked = {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}
    assert refused(run, box, ground, **asked) == ("ReservationCapacityExceeded", 400)


def test_a_launch_gets_what_there_is_room_for_if_that_is_enough(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity", room="3")
    assert len(run(box, ground, 1, 5)) == 3


def test_a_launch_that_needs_more_than_there_is_room_for_gets_nothing(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity", room="3")
    assert refused(run, box, ground, 4, 5) == ("InsufficientInstanceCapacity", 500)


def test_capacity_comes_back_after_so_many_refusals(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity", left="1")
    assert (refused(run, box, ground)[0], len(run(box, ground))) == ("InsufficientInstanceCapacity", 1)


def test_capacity_comes_back_when_the_time_is_over(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity", **{"for": "1s"})
    time.sleep(1)
    assert len(run(box, ground)) == 1


def test_capacity_comes_back_when_the_fault_is_cleared(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "no-capacity")
    control.clear_faults(box.dir, "no-capacity")
    assert len(run(box, ground)) == 1


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("capacity", "Server.InsufficientInstanceCapacity"),
        ("spot", "Server.SpotInstanceTermination"),
        ("volume", "Client.InternalError"),
    ],
)
def test_an_instance_that_dies_after_its_launch_says_why(
    box: BoxStatus, aws: Clients, ground: Ground, reason: str, code: str
) -> None:
    control.make_fault(box.dir, "dies-after-launch", reason=reason, after="0s")
    told, transition = ended(aws, run(box, ground)[0])
    assert (told, transition.partition(":")[0]) == (code, code)


def test_an_instance_that_will_die_is_pending_until_then(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    control.make_fault(box.dir, "dies-after-launch", after="1h")
    assert state(aws, run(box, ground)[0]) == "pending"


def test_as_many_instances_die_as_were_asked_for(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    control.make_fault(box.dir, "dies-after-launch", after="1h", left="2")
    assert [state(aws, one) for one in run(box, ground, 3)] == ["pending", "pending", "running"]


def test_only_the_named_node_of_a_launch_dies(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    control.make_fault(box.dir, "dies-after-launch", after="1h", of="train-2")
    assert [state(aws, one) for one in run(box, ground, 2, TagSpecifications=NODES)] == ["running", "pending"]


def test_an_instance_that_is_terminated_again_keeps_the_reason_of_its_end(
    box: BoxStatus, aws: Clients, ground: Ground
) -> None:
    control.make_fault(box.dir, "dies-after-launch", after="0s")
    instance_id = run(box, ground)[0]
    ended(aws, instance_id)
    aws("ec2").terminate_instances(InstanceIds=[instance_id])
    assert ended(aws, instance_id)[0] == "Server.InsufficientInstanceCapacity"


def test_a_throttled_call_has_the_status_503(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "throttle")
    assert refused(run, box, ground) == ("RequestLimitExceeded", 503)


def test_boto3_outlasts_two_throttled_calls(box: BoxStatus, aws: Clients) -> None:
    control.make_fault(box.dir, "throttle", call="DescribeVpcs", left="2")
    assert aws("ec2").describe_vpcs()["ResponseMetadata"]["RetryAttempts"] == 2


def test_a_pattern_throttles_all_calls_that_fit(box: BoxStatus) -> None:
    control.make_fault(box.dir, "throttle", call="Describe*")
    assert refused(once(box).describe_subnets) == ("RequestLimitExceeded", 503)


@pytest.mark.parametrize(
    ("code", "status"), [("VcpuLimitExceeded", 400), ("UnauthorizedOperation", 403), ("InternalError", 500)]
)
def test_a_refused_call_has_the_code_and_its_status(box: BoxStatus, ground: Ground, code: str, status: int) -> None:
    control.make_fault(box.dir, "refuse", code=code)
    assert refused(run, box, ground) == (code, status)


def test_the_sixth_launch_of_a_moment_is_one_too_many(box: BoxStatus, ground: Ground) -> None:
    ec2 = once(box)
    asked = {"ImageId": ground.image, "SubnetId": ground.subnet, "MinCount": 1, "MaxCount": 1, "DryRun": True, **PLAIN}
    told = [refused(ec2.run_instances, **asked)[0] for _ in range(8)]
    assert (told[:5], "RequestLimitExceeded" in told[5:]) == (["DryRunOperation"] * 5, True)


def test_a_refused_call_has_the_message_that_was_given(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "refuse", code="InvalidParameterValue", message="Invalid value 'x' for Y.")
    with pytest.raises(ClientError, match=r"Invalid value 'x' for Y\.$"):
        run(box, ground)


def test_a_launch_can_be_refused_for_one_market_alone(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "refuse", code="MaxSpotInstanceCountExceeded", market="spot")
    asked = {"InstanceMarketOptions": {"MarketType": "spot"}}
    told = refused(run, box, ground, **asked)
    assert (told[0], len(run(box, ground))) == ("MaxSpotInstanceCountExceeded", 1)


def test_calls_of_other_services_can_be_refused(box: BoxStatus) -> None:
    control.make_fault(box.dir, "refuse", call="s3:ListBuckets", code="AccessDenied")
    assert refused(once(box, "s3").list_buckets) == ("AccessDenied", 403)


def test_a_late_instance_is_not_listed(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "late", after="1h")
    run(box, ground)
    assert once(box).describe_instances()["Reservations"] == []


@pytest.mark.parametrize("call", ["describe_instances", "terminate_instances", "describe_instance_status"])
def test_a_late_instance_is_not_found_by_who_names_it(box: BoxStatus, ground: Ground, call: str) -> None:
    control.make_fault(box.dir, "late", after="1h")
    named = run(box, ground)
    assert refused(getattr(once(box), call), InstanceIds=named) == ("InvalidInstanceID.NotFound", 400)


def test_the_tags_of_a_late_instance_are_late(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "late", after="1h")
    run(box, ground, TagSpecifications=NODES)
    assert once(box).describe_tags(Filters=[{"Name": "key", "Values": ["corral:nodes"]}])["Tags"] == []


def test_a_late_instance_is_shown_when_its_time_has_come(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    control.make_fault(box.dir, "late", after="1s")
    instance_id = run(box, ground)[0]
    time.sleep(1)
    assert state(aws, instance_id) == "running"


def test_a_repeated_launch_gives_instances_that_are_not_shown_yet(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "late", after="1h")
    assert run(box, ground, ClientToken="same") == run(box, ground, ClientToken="same")


def test_a_killed_instance_ends_with_an_internal_error(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    instance_id = run(box, ground)[0]
    control.make_fault(box.dir, "kill", of=instance_id)
    assert (state(aws, instance_id), ended(aws, instance_id)[0]) == ("shutting-down", "Server.InternalError")


def test_a_head_is_killed_and_no_node(box: BoxStatus, ground: Ground) -> None:
    cluster, queue = ({"Key": f"corral:{key}", "Value": "x"} for key in ("cluster", "queue"))
    head, _node = (
        run(box, ground, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])[0]
        for tags in ([cluster], [cluster, queue])
    )
    assert control.make_fault(box.dir, "kill-head")["instances"] == [head]


def test_a_node_is_named_by_its_place_in_the_launch(box: BoxStatus, ground: Ground) -> None:
    instances = run(box, ground, 2, TagSpecifications=NODES)
    assert control.make_fault(box.dir, "hang", of="train-2")["instances"] == [instances[1]]


def block(aws: Clients, ground: Ground) -> tuple[str, str]:
    """A capacity block of one p4d in the ground's zone, and what runs in it."""
    ec2 = aws("ec2")
    offers = ec2.describe_capacity_block_offerings(
        InstanceType="p4d.24xlarge", InstanceCount=1, CapacityDurationHours=DAY
    )
    offer = next(one for one in offers["CapacityBlockOfferings"] if one["AvailabilityZone"] == "us-east-1b")
    bought = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )
    reservation = bought["CapacityReservation"]["CapacityReservationId"]
    data = {**node_template(ground), "InstanceMarketOptions": {"MarketType": "capacity-block"}}
    data |= {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation}}}
    del data["Placement"]
    return reservation, launch(aws, data)[0]["InstanceId"]


def test_a_block_that_ends_ends_what_runs_in_it(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    _, instance_id = block(aws, ground)
    control.make_fault(box.dir, "block-end", of="train", after="0s")
    assert state(aws, instance_id) == "terminated"


def test_a_block_that_will_end_shows_it_half_an_hour_later(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    reservation, _ = block(aws, ground)
    control.make_fault(box.dir, "block-end", of="train", after="10m")
    shown = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"][0]
    assert 39 * 60 < (shown["EndDate"].timestamp() - time.time()) < 41 * 60


@pytest.mark.parametrize(
    ("kind", "words", "sentence"),
    [
        ("hang", {"of": "train-9"}, "no machine that runs is 'train-9' - `corral status` lists nodes and instances"),
        ("kill-head", {"of": "dev"}, "no head runs for 'dev' - `corral status` lists nodes and instances"),
        (
            "no-capacity",
            {"market": "sport"},
            "there is no market 'sport' - there are spot, on-demand, reservation, capacity-block",
        ),
        ("no-capacity", {"type": "p9"}, "'p9' is no instance type of EC2"),
        ("no-capacity", {"zone": "moon-1a"}, "'moon-1a' is no zone of EC2 - write us-east-1a or use1-az1"),
        ("no-capacity", {"for": "soon"}, "'soon' is not a time - write 30s, 2m or 1h"),
        ("throttle", {"left": "-1"}, "'-1' is not a number of times"),
        ("earthquake", {}, "there is no fault 'earthquake'"),
        (
            "no-capacity",
            {"type": "p4d.24xlarges"},
            "'p4d.24xlarges' is no instance type of EC2 - did you mean 'p4d.24xlarge'?",
        ),
        ("no-capacity", {"for": "99999999999999h"}, "'99999999999999h' is too long - a year, 8760h, is the most"),
        ("spot-notice", {"of": "x", "after": "9000h"}, "'9000h' is too long - a year, 8760h, is the most"),
        ("throttle", {"for": "0s"}, "a fault for '0s' would be over at once - write 30s, 2m or 1h"),
        ("throttle", {"left": "0"}, "a fault that strikes 0 times is none - write 1 or more"),
        ("throttle", {"left": "1" * 5000}, f"'{'1' * 5000}' is not a number of times"),
        ("no-capacity", {"room": "all"}, "'all' is not a number of instances"),
        ("throttle", {"call": "NotACall"}, "ec2 has no call 'NotACall'"),
        ("throttle", {"call": "RunInstance"}, "ec2 has no call 'RunInstance' - did you mean 'RunInstances'?"),
        ("throttle", {"call": "s3:Describe*"}, "s3 has no call 'Describe*'"),
        ("throttle", {"call": "root53:ListTagsForResource"}, "there is no service 'root53' - did you mean 'route53'?"),
        ("no-capacity", {"of": ""}, "no queue has an empty name - leave --of out, or name one"),
        ("refuse", {"code": ""}, "'' is no error code - write one as VcpuLimitExceeded"),
    ],
)
def test_words_that_mean_nothing_are_told(box: BoxStatus, kind: str, words: dict[str, str], sentence: str) -> None:
    with pytest.raises(BoxError) as raised:
        control.make_fault(box.dir, kind, **words)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("trains", "no queue, and no node of one, is 'trains' - did you mean 'train'?"),
        ("tarin-3", "no queue, and no node of one, is 'tarin-3' - did you mean 'train'?"),
        ("gpu", "no queue, and no node of one, is 'gpu' - there is train"),
    ],
)
def test_a_fault_for_no_queue_that_there_is_is_told(
    box: BoxStatus, aws: Clients, ground: Ground, which: str, sentence: str
) -> None:
    aws("ec2").create_launch_template(LaunchTemplateName="a", LaunchTemplateData=node_template(ground))
    with pytest.raises(BoxError) as raised:
        control.make_fault(box.dir, "no-capacity", of=which)
    assert str(raised.value) == sentence


def test_a_fault_may_be_for_a_node_that_is_not_launched_yet(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    aws("ec2").create_launch_template(LaunchTemplateName="a", LaunchTemplateData=node_template(ground))
    assert control.make_fault(box.dir, "no-capacity", of="train-7")["of"] == "train-7"


def test_a_name_that_is_like_that_of_a_machine_is_told_with_it(box: BoxStatus, ground: Ground) -> None:
    run(box, ground, TagSpecifications=NODES)
    with pytest.raises(BoxError) as raised:
        control.make_fault(box.dir, "kill", of="trian-1")
    assert str(raised.value) == "no machine that runs is 'trian-1' - did you mean 'train-1'?"


@pytest.mark.parametrize("call", ["*", "s3:*", "*:Describe*", "RunInstances", "ec2:Describe*", "route53:GetChange"])
def test_a_call_may_be_a_pattern_that_some_call_fits(box: BoxStatus, call: str) -> None:
    assert control.make_fault(box.dir, "throttle", call=call)["kind"] == "throttle"


def test_a_listed_fault_says_what_is_left_of_it(box: BoxStatus) -> None:
    control.make_fault(box.dir, "no-capacity", type="p5.48xlarge", left="3", room="2")
    assert [one["line"] for one in control.faults(box.dir)] == ["no-capacity p5.48xlarge, room 2, 3 times yet"]


def test_a_fault_that_has_struck_for_the_last_time_is_listed_no_more(box: BoxStatus, ground: Ground) -> None:
    control.make_fault(box.dir, "throttle", left="1")
    refused(run, box, ground)
    assert control.faults(box.dir) == []


def test_a_fault_of_a_machine_ends_with_it(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    instance_id = run(box, ground)[0]
    control.make_fault(box.dir, "partition", of=instance_id)
    aws("ec2").terminate_instances(InstanceIds=[instance_id])
    assert until(lambda: control.faults(box.dir) == [])


def test_faults_in_force_outlive_a_restart(state_directory: Path) -> None:
    control.start(state_directory)
    control.make_fault(state_directory, "throttle", left="2")
    control.stop(state_directory)
    assert control.start(state_directory).faults == ("throttle, call ec2:RunInstances, 2 times yet",)


def test_a_reset_ends_all_faults(box: BoxStatus) -> None:
    control.make_fault(box.dir, "no-capacity")
    control.reset(box.dir)
    assert control.faults(box.dir) == []


def test_a_noticed_spot_instance_ends_when_its_time_is_over(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    instance_id = run(box, ground, InstanceMarketOptions={"MarketType": "spot"})[0]
    control.give_spot_notice(box.dir, instance_id, "1s")
    assert (state(aws, instance_id), ended(aws, instance_id)[0]) == ("running", "Server.SpotInstanceTermination")


def test_an_instance_on_demand_gets_no_spot_notice(box: BoxStatus, ground: Ground) -> None:
    with pytest.raises(BoxError, match="no spot machine that runs is"):
        control.give_spot_notice(box.dir, run(box, ground)[0], "1s")


def test_a_spot_notice_is_taken_back_with_its_fault(box: BoxStatus, aws: Clients, ground: Ground) -> None:
    run(box, ground, InstanceMarketOptions={"MarketType": "spot"}, TagSpecifications=NODES)
    control.give_spot_notice(box.dir, "train-1", "2m")
    assert (control.clear_faults(box.dir), control.faults(box.dir)) == (1, [])
