"""The agent's EC2 calls: against the box, and against responses that only AWS gives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from agent.offered import offering, tags
from box.vpc_fixtures import Clients, LaunchNetwork, node_template
from corral.agent.cluster.ec2_client import Ec2, Ec2Error
from corral.agent.cluster.launch_errors import LaunchErrorKind, launch_error_kind
from corral.agent.cluster.models import BlockPeriod, ReservedCapacity
from corral.agent.node_identity import identity_at
from corral.model.deployed import DeployedTemplate
from half_answers import half_answers

TEMPLATE = DeployedTemplate(id="lt-1", version="1")


@pytest.fixture
def template(aws: Clients, launch_network: LaunchNetwork) -> DeployedTemplate:
    """The template of an offer with unlimited capacity."""
    return offering(aws, launch_network, {"open": None}).templates["open"]


@pytest.fixture
def ec2(aws: Clients) -> Ec2:
    return Ec2(aws("ec2"), "dev")


def client(**settings: Any) -> Any:
    """A client that has no AWS to ask."""
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    return boto3.client("ec2", region_name="us-east-1", config=Config(retries={"max_attempts": 0}), **keys | settings)


def refusing(code: str, action: str = "run_instances") -> Ec2:
    """An EC2 that answers the next call with this error."""
    made = client()
    stub = Stubber(made)
    stub.add_client_error(action, code, "Sorry.")
    stub.activate()
    return Ec2(made, "dev")


def calls() -> list[Callable[[Ec2], object]]:
    return [
        lambda ec2: ec2.launch(TEMPLATE, ["train-1"], "token", at_least=1),
        lambda ec2: ec2.instances(),
        lambda ec2: ec2.terminate(["i-1"]),
        lambda ec2: ec2.reserved_capacity(["cr-1"]),
    ]


def test_a_launch_gives_every_node_an_instance_with_an_address(ec2: Ec2, template: DeployedTemplate) -> None:
    made = ec2.launch(template, ["train-2", "train-1", "train-7"], "token", at_least=3)
    assert [(one.node, one.address) for one in made] == [
        ("train-1", "10.64.1.4"),
        ("train-2", "10.64.1.5"),
        ("train-7", "10.64.1.6"),
    ]


def test_an_instance_knows_its_node(aws: Clients, ec2: Ec2, template: DeployedTemplate) -> None:
    made = {one.instance_id: one.node for one in ec2.launch(template, ["train-1", "train-7"], "token", at_least=2)}
    shown = aws("ec2").describe_instances(InstanceIds=list(made))["Reservations"][0]["Instances"]
    tagged = {one["InstanceId"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in shown}
    named = {
        one["InstanceId"]: identity_at(tagged[one["InstanceId"]]["corral:nodes"], one["AmiLaunchIndex"]).node
        for one in shown
    }
    assert named == made


def test_the_tags_of_the_template_stay(aws: Clients, ec2: Ec2, template: DeployedTemplate) -> None:
    ec2.launch(template, ["train-1"], "token", at_least=1)
    assert tags(aws) == [{"corral:cluster": "dev", "corral:offer": "open", "corral:nodes": "train-1"}]


def test_nodes_know_the_version_of_the_heads_manifest(aws: Clients, template: DeployedTemplate) -> None:
    Ec2(aws("ec2"), "dev", lambda: 1700000000).launch(template, ["train-1"], "token", at_least=1)
    assert tags(aws)[0]["corral:manifest"] == "1700000000"


def test_the_same_token_gives_the_same_instances(aws: Clients, ec2: Ec2, template: DeployedTemplate) -> None:
    first, second = (ec2.launch(template, ["train-1"], "token", at_least=1) for _ in range(2))
    assert (first[0].instance_id == second[0].instance_id, len(tags(aws))) == (True, 1)


def test_a_token_of_ended_instances_returns_their_reasons() -> None:
    ended = {
        "InstanceId": "i-1",
        "AmiLaunchIndex": 0,
        "State": {"Code": 48, "Name": "terminated"},
        "StateReason": {"Code": "Server.InsufficientInstanceCapacity", "Message": "Sorry."},
        "Tags": [{"Key": "corral:nodes", "Value": "train-1"}],
    }
    made = client()
    stub = Stubber(made)
    stub.add_response("run_instances", {"Instances": [ended]})
    stub.activate()
    (one,) = Ec2(made, "dev").launch(TEMPLATE, ["train-1"], "token", at_least=1)
    assert (one.ended, one.reason) == (True, "Server.InsufficientInstanceCapacity")


def test_a_launch_never_gets_less_than_its_minimum(aws: Clients, launch_network: LaunchNetwork, ec2: Ec2) -> None:
    small = offering(aws, launch_network, {"small": 1}).templates["small"]
    with pytest.raises(Ec2Error, match=r"^ReservationCapacityExceeded: "):
        ec2.launch(small, ["train-1", "train-2"], "token", at_least=2)


def test_a_partial_launch_serves_the_first_nodes(aws: Clients, launch_network: LaunchNetwork, ec2: Ec2) -> None:
    small = offering(aws, launch_network, {"small": 2}).templates["small"]
    made = ec2.launch(small, ["train-1", "train-2", "train-3"], "token", at_least=1)
    assert [one.node for one in made] == ["train-1", "train-2"]


def test_nodes_are_sorted_by_queue_and_number(ec2: Ec2, template: DeployedTemplate) -> None:
    for node in ("train-10", "train-9", "cpu-1"):
        ec2.launch(template, [node], node, at_least=1)
    assert [one.node for one in ec2.instances()] == ["cpu-1", "train-9", "train-10"]


def test_the_nodes_of_another_cluster_are_not_ours(aws: Clients, launch_network: LaunchNetwork, ec2: Ec2) -> None:
    others = offering(aws, launch_network, {"open": None}, cluster="prod").templates["open"]
    ec2.launch(others, ["train-1"], "token", at_least=1)
    assert ec2.instances() == ()


def test_an_ended_instance_is_listed_as_ended(ec2: Ec2, template: DeployedTemplate) -> None:
    one, two = ec2.launch(template, ["train-1", "train-2"], "token", at_least=2)
    ec2.terminate([one.instance_id])
    assert {left.instance_id: left.ended for left in ec2.instances()} == {
        one.instance_id: True,
        two.instance_id: False,
    }


def test_an_instance_has_its_offer_and_template_version(ec2: Ec2, template: DeployedTemplate) -> None:
    ec2.launch(template, ["train-1"], "token", at_least=1)
    assert [(one.offer, one.version) for one in ec2.instances()] == [("open", "1")]


def test_an_instance_with_a_tag_that_names_no_node_is_left_out(
    aws: Clients, ec2: Ec2, template: DeployedTemplate
) -> None:
    one, two = ec2.launch(template, ["train-1", "train-2"], "token", at_least=2)
    aws("ec2").create_tags(Resources=[one.instance_id], Tags=[{"Key": "corral:nodes", "Value": "my machine"}])
    assert [left.instance_id for left in ec2.instances()] == [two.instance_id]


def test_terminating_twice_is_no_error(ec2: Ec2, template: DeployedTemplate) -> None:
    (one,) = ec2.launch(template, ["train-1"], "token", at_least=1)
    ec2.terminate([one.instance_id])
    ec2.terminate([one.instance_id])
    assert [left.ended for left in ec2.instances()] == [True]


def test_an_instance_that_ec2_does_not_know_yet_does_not_block_the_termination_of_others(
    ec2: Ec2, template: DeployedTemplate
) -> None:
    (one,) = ec2.launch(template, ["train-1"], "token", at_least=1)
    with pytest.raises(Ec2Error, match=r"^EC2 does not know i-0123456789abcdef0 yet$"):
        ec2.terminate(["i-0123456789abcdef0", one.instance_id])
    assert [left.ended for left in ec2.instances()] == [True]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InsufficientInstanceCapacity", "no capacity"),
        ("SpotMaxPriceTooLow", "no capacity"),
        ("Unsupported", "no capacity"),  # the type is not in this zone
        ("UnauthorizedOperation", "permission"),
        ("VcpuLimitExceeded", "quota"),
        ("UnfulfillableCapacity", "no capacity"),
        ("InsufficientVolumeCapacity", "no capacity"),
        ("VolumeTypeNotAvailableInZone", "no capacity"),
        ("MaxIOPSLimitExceeded", "quota"),
        ("Blocked", "permission"),
        ("InvalidLaunchTemplateId.NotFound", "not found"),
        ("InvalidLaunchTemplateId.VersionNotFound", "not found"),
        ("InvalidSubnetID.NotFound", "not found"),
        ("InvalidGroup.NotFound", "not found"),
        ("InvalidKeyPair.NotFound", "not found"),
        ("InvalidPlacementGroup.Unknown", "not found"),
        ("InvalidAMIID.NotFound", "bad request"),  # no `corral up` makes an image
        ("InvalidParameterValue", "bad request"),
        ("ServerInternal", "EC2 unreachable"),
        ("SomethingNew", "bad request"),
        ("InvalidCapacityReservationState.PendingActivation", "its capacity block has not begun"),
        ("RequestLimitExceeded", "throttled"),
        ("ConcurrentTagAccess", "throttled"),
        ("Unavailable", "EC2 unreachable"),
        ("InternalServerError", "EC2 unreachable"),
        ("RequestExpired", "EC2 unreachable"),  # the head's clock is wrong
        ("503", "EC2 unreachable"),  # what stands before EC2 answers
    ],
)
def test_an_error_code_has_its_kind(code: str, kind: str) -> None:
    with pytest.raises(Ec2Error, match=rf"^{code}: Sorry\.$") as caught:
        refusing(code).launch(TEMPLATE, ["train-1"], "token", at_least=1)
    assert str(caught.value.kind) == kind


def test_an_instance_profile_that_ec2_does_not_know_is_not_found() -> None:
    message = "Value (dev-compute) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    assert launch_error_kind("InvalidParameterValue", message) is LaunchErrorKind.NOT_FOUND


def test_an_instance_profile_that_the_box_does_not_know_is_not_found(
    aws: Clients, ec2: Ec2, launch_network: LaunchNetwork
) -> None:
    data = {**node_template(launch_network), "IamInstanceProfile": {"Name": "new"}}
    made = aws("ec2").create_launch_template(LaunchTemplateName="new", LaunchTemplateData=data)["LaunchTemplate"]
    with pytest.raises(Ec2Error) as caught:
        ec2.launch(DeployedTemplate(id=made["LaunchTemplateId"], version="1"), ["train-1"], "token", at_least=1)
    assert caught.value.kind is LaunchErrorKind.NOT_FOUND


def test_a_block_has_its_period() -> None:
    made, begins = client(), datetime(2026, 9, 21, 11, 30, tzinfo=UTC)
    held = {"CapacityReservationId": "cr-1", "StartDate": begins, "EndDate": begins + timedelta(days=1)}
    stub = Stubber(made)
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": [held]})
    stub.activate()
    at = begins.timestamp()
    assert Ec2(made, "dev").blocks(["cr-1"]) == {"cr-1": BlockPeriod(begins=at, ends=at + 86_400)}


def test_a_reservation_has_the_capacity_that_ec2_shows(aws: Clients, ec2: Ec2, launch_network: LaunchNetwork) -> None:
    template = offering(aws, launch_network, {"two": 2}).templates["two"]
    ec2.launch(template, ["train-1"], "token", at_least=1)
    assert [*ec2.reserved_capacity(reservations(aws)).values()] == [ReservedCapacity(total=2, free=1)]


def test_a_reservation_that_is_not_active_has_no_capacity(
    aws: Clients, ec2: Ec2, launch_network: LaunchNetwork
) -> None:
    offering(aws, launch_network, {"cancelled": 0})
    assert [*ec2.reserved_capacity(reservations(aws)).values()] == [ReservedCapacity(total=0, free=0)]


def reservations(aws: Clients) -> list[str]:
    held = aws("ec2").describe_capacity_reservations()["CapacityReservations"]
    return [one["CapacityReservationId"] for one in held]


def test_more_instances_than_the_account_allows_are_not_requested() -> None:
    stubbed = client()
    stub = Stubber(stubbed)
    stub.add_response("run_instances", {"Instances": []})
    stub.activate()
    ec2 = Ec2(stubbed, "dev")
    ec2.launch(TEMPLATE, [f"cpu-{number}" for number in range(1, 1001)], "a", at_least=1)
    with pytest.raises(Ec2Error, match=r"^the account allows 100 more instances in \d\d s$"):
        ec2.launch(TEMPLATE, [f"cpu-{number}" for number in range(1, 101)], "b", at_least=1)


def test_nodes_that_may_not_be_listed_are_one_sentence() -> None:
    with pytest.raises(Ec2Error, match=r"^UnauthorizedOperation: Sorry\.$"):
        refusing("UnauthorizedOperation", "describe_instances").instances()


def test_instances_that_may_not_be_terminated_are_one_sentence() -> None:
    with pytest.raises(Ec2Error, match=r"^UnauthorizedOperation: Sorry\.$"):
        refusing("UnauthorizedOperation", "terminate_instances").terminate(["i-1"])


@pytest.mark.parametrize("call", calls())
def test_an_ec2_that_cannot_be_reached_is_one_sentence(call: Callable[[Ec2], object]) -> None:
    with pytest.raises(Ec2Error, match=r"^cannot reach EC2: Could not connect to the endpoint URL"):
        call(Ec2(client(endpoint_url="http://127.0.0.1:9"), "dev"))


@pytest.mark.parametrize("call", calls())
def test_half_an_answer_of_ec2_is_one_sentence(call: Callable[[Ec2], object]) -> None:
    with half_answers() as url, pytest.raises(Ec2Error, match=r"^cannot reach EC2: Unable to parse response"):
        call(Ec2(client(endpoint_url=url), "dev"))


@pytest.mark.parametrize("call", calls())
def test_a_machine_that_has_no_credentials_yet_is_one_sentence(
    call: Callable[[Ec2], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    session = boto3.session.Session()
    with pytest.raises(Ec2Error, match=r"^cannot reach EC2: Unable to locate credentials$"):
        call(Ec2(session.client("ec2", region_name="us-east-1", endpoint_url="http://127.0.0.1:9"), "dev"))


def test_a_launch_whose_tags_come_late_is_known_by_its_order() -> None:
    made = client()
    stub = Stubber(made)
    shown = [{"InstanceId": f"i-{index}", "AmiLaunchIndex": index, "State": {"Name": "pending"}} for index in (0, 1)]
    stub.add_response("run_instances", {"Instances": shown})
    stub.activate()
    held = Ec2(made, "dev").launch(TEMPLATE, ["train-7", "train-2"], "token", at_least=1)
    assert [(one.node, one.instance_id) for one in held] == [("train-2", "i-0"), ("train-7", "i-1")]


def test_a_machine_is_known_to_have_been_launched_by_its_address(ec2: Ec2, template: DeployedTemplate) -> None:
    one, _ = ec2.launch(template, ["train-1", "train-2"], "token", at_least=2)
    found = [ec2.launched_at(address) for address in (one.address, "10.64.9.9")]
    assert found == [int(one.launched_at), None]
