"""Machines that a head launched are found by their tags and ended; the head and others' machines are not."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from corral.inventory.compute_instances import list_compute_instances, terminate_compute_instances


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


def launch(session: Any, count: int, **tags: str) -> list[str]:
    """The ids of new instances with these tags."""
    listed = [{"Key": key.replace("_", ":"), "Value": value} for key, value in tags.items()]
    ec2 = session.client("ec2")
    made = ec2.run_instances(
        ImageId=ec2.register_image(Name="any")["ImageId"],  # moto takes seconds to list its own
        InstanceType="t3.medium",
        MinCount=count,
        MaxCount=count,
        TagSpecifications=[{"ResourceType": "instance", "Tags": listed}],
    )
    return sorted(instance["InstanceId"] for instance in made["Instances"])


def test_machines_of_the_clusters_queues_are_found(session: Any) -> None:
    mine = launch(session, 2, corral_cluster="dev", corral_queue="train")
    launch(session, 1, corral_cluster="prod", corral_queue="train")
    launch(session, 1, corral_cluster="dev")
    assert [machine.id for machine in list_compute_instances(session, "dev")] == mine


def test_ended_machines_are_gone_when_it_returns(session: Any) -> None:
    mine = launch(session, 3, corral_cluster="dev", corral_queue="train")
    ended = terminate_compute_instances(session, "dev")
    assert ([machine.id for machine in ended], list_compute_instances(session, "dev")) == (mine, ())


def test_only_the_given_machines_are_ended(session: Any) -> None:
    one, other = launch(session, 2, corral_cluster="dev", corral_queue="train")
    terminate_compute_instances(
        session, "dev", [machine for machine in list_compute_instances(session, "dev") if machine.id == one]
    )
    assert [machine.id for machine in list_compute_instances(session, "dev")] == [other]


def test_the_head_is_not_ended(session: Any) -> None:
    (head,) = launch(session, 1, corral_cluster="dev")
    terminate_compute_instances(session, "dev")
    state = session.client("ec2").describe_instances(InstanceIds=[head])["Reservations"][0]["Instances"][0]["State"]
    assert state["Name"] == "running"
