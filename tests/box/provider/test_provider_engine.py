"""The real engine and the unmodified SDK against the stand-in: one program, its changes, and its destruction."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import Project, project

import boxes
from boxes import inventory
from corral.box.client import BoxStatus
from corral.engine.backend import file_backend

pytestmark = [pytest.mark.pulumi, pytest.mark.long]


CHANGES = {
    "env": "prod",  # a default tag, so nearly everything
    "name": "other",
    "ssh": "from elsewhere",
    "max": 8,
    "user_data": "IyEvYmluL3NoCmVjaG8K",
    "state": 30,
    "lustre": 2400,
    "retention": 60,
}
NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there
KEPT_BY_HEAD = ("interface", "state", "head_address")


@pytest.fixture(scope="module")
def wide_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("wide-box")) as status:
        yield status


@pytest.fixture(scope="module")
def wide(wide_box: BoxStatus, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The wide program, up."""
    made = project("wide", tmp_path_factory.mktemp("wide"), wide_box)
    assert "warning" not in made.up()
    return made


@pytest.fixture
def ec2(wide_box: BoxStatus) -> Any:
    """EC2 in the box, for changes outside of Pulumi."""
    return boxes.client(wide_box, "ec2")


def test_after_up_a_preview_shows_no_changes(wide: Project) -> None:
    assert wide.planned() == {}


def test_updates_keep_every_id(wide: Project) -> None:
    before = {name: one.get("id") for name, one in wide.states().items()}
    wide.up(**CHANGES)
    assert (wide.planned(**CHANGES), {name: one.get("id") for name, one in wide.states().items()}) == ({}, before)


def test_the_new_version_of_a_template_is_its_default(ec2: Any, wide: Project) -> None:
    template = ec2.describe_launch_templates()["LaunchTemplates"][0]
    versions = {template["DefaultVersionNumber"], template["LatestVersionNumber"], wide.outputs()["template_version"]}
    assert versions == {2}


def test_default_tags_apply_to_untagged_resources(ec2: Any, wide: Project) -> None:
    tables = ec2.describe_route_tables(Filters=[{"Name": "tag:corral:env", "Values": ["prod"]}])["RouteTables"]
    assert len(tables) == 1


def test_a_replaced_head_takes_its_address_and_volume_over(ec2: Any, wide: Project) -> None:
    before = wide.outputs()
    wide.up(**CHANGES, user_data_of_head="#!/bin/sh\necho new\n")
    after = wide.outputs()
    volume = ec2.describe_volumes(VolumeIds=[after["state"]])["Volumes"][0]
    assert before["head"] != after["head"]
    assert [one["InstanceId"] for one in volume["Attachments"]] == [after["head"]]
    assert {name: before[name] for name in KEPT_BY_HEAD} == {name: after[name] for name in KEPT_BY_HEAD}


def test_drift_is_shown_and_corrected(ec2: Any, wide: Project) -> None:
    vpc, lost = wide.outputs()["vpc"], wide.outputs()["head"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "mine"}])
    ec2.terminate_instances(InstanceIds=[lost])
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[lost], WaiterConfig={"Delay": 1})
    message = wide.preview(**CHANGES)
    wide.up(**CHANGES)
    tags = {tag["Key"]: tag["Value"] for tag in ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"]}
    assert ('~ Name: "mine" => "other"' in message, "+ aws:ec2/instance:Instance: (create)" in message) == (True, True)
    assert (tags["Name"], wide.outputs()["head"] != lost) == ("other", True)


def test_a_secret_value_is_not_in_the_state(wide: Project) -> None:
    assert "s3cret" not in wide.succeed("stack", "export")


def test_existing_objects_are_imported_without_a_change(wide_box: BoxStatus, tmp_path: Path, ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "old"}])
    boxes.client(wide_box, "s3").create_bucket(Bucket="kept-data")
    boxes.client(wide_box, "ssm").put_parameter(Name="/kept", Type="String", Value="x")
    found = project("imported", tmp_path, wide_box).with_settings(VPC=vpc, BUCKET="kept-data", PARAMETER="/kept")
    found.up()
    assert {name: one.get("id") for name, one in found.states().items() if one.get("custom")}.items() >= {
        ("Vpc v", vpc),
        ("Bucket b", "kept-data"),
        ("Parameter p", "/kept"),
    }
    assert found.planned() == {}
    found.succeed("destroy", "--yes", "--skip-preview")


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("type", "the box's stand-in for the aws provider does not support the resource type aws:sqs/queue:Queue"),
        ("argument", "the box's stand-in for the aws provider does not support the argument ipv6NetmaskLength"),
    ],
)
def test_unsupported_types_and_arguments_are_refused_by_name(
    wide_box: BoxStatus, tmp_path: Path, what: str, expected: str
) -> None:
    message = project("refused", tmp_path, wide_box).with_settings(WHAT=what).run("preview")
    shown = message.stdout + message.stderr
    assert (message.returncode != 0, expected in shown, "Traceback" in shown) == (True, True, False), shown


def test_a_failing_program_shows_its_own_lines_only(wide_box: BoxStatus, tmp_path: Path) -> None:
    message = project("refused", tmp_path, wide_box).with_settings(WHAT="program").run("preview")
    shown = message.stdout + message.stderr
    assert ("ValueError: wrong on purpose" in shown, "language_host" in shown, "runpy" in shown) == (True, False, False)


def test_without_a_box_a_command_fails_and_keeps_the_state(wide: Project) -> None:
    before = wide.states().keys()
    message = wide.with_settings(AWS_ENDPOINT_URL=NOBODY).run("refresh", "--yes", "--skip-preview")
    shown = message.stdout + message.stderr
    assert (
        message.returncode != 0,
        f"the box at {NOBODY} does not answer - start it with `corral box start`" in shown,
    ) == (True, True)
    assert wide.states().keys() == before


def test_without_an_endpoint_no_call_is_made(wide: Project) -> None:
    message = wide.with_settings(AWS_ENDPOINT_URL="").run("preview")
    assert "AWS_ENDPOINT_URL is not set; this provider calls only a box" in message.stdout + message.stderr


def test_after_a_killed_engine_no_process_writes_and_the_next_up_is_clean(wide: Project) -> None:
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--color=never"]
    environment = {**wide.environment, "WIDE": json.dumps({**CHANGES, "env": "killed"})}
    with subprocess.Popen(command, cwd=wide.folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        next(line for line in process.stdout if "updating (" in line)
        process.kill()
        process.stdout.read()  # returns when the last process that could still write has ended
    file_backend.remove_torn_files(
        wide.environment["PULUMI_BACKEND_URL"]
    )  # a kill may tear the small file beside a state
    wide.succeed("cancel", "--yes")
    wide.up(**CHANGES)
    assert wide.planned(**CHANGES) == {}


def test_after_destroy_the_inventory_is_empty(wide: Project, wide_box: BoxStatus) -> None:
    wide.succeed("destroy", "--yes", "--skip-preview")
    left = [id for ids in inventory(wide_box.dir).values() for id in ids]
    assert [id for id in left if "scheduled for deletion" not in id] == []


def test_the_provider_is_not_taken_from_the_path(wide: Project) -> None:
    paths = wide.environment["PATH"].split(os.pathsep)
    assert [path for path in paths if (Path(path) / "pulumi-resource-aws").exists()] == []
