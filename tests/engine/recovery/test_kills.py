"""Ctrl-C during an up, and kill -9 of its box: the error names the cause, and the next command continues."""

from __future__ import annotations

import signal

import pytest

import boxes
from boxes import client, inventory
from cli_session import CliSession, kill, redeploy_counts, start_until
from corral.box import client as box_client

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]


def test_ctrl_c_ends_cleanly_and_names_the_command_to_continue(cli: CliSession) -> None:
    process = start_until(cli, "up", "created", 1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 130
    assert "run the same command again to continue" in out
    assert cli.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert cli.left() == {}


def test_killed_box_is_reported_and_resources_with_lost_answers_are_adopted(cli: CliSession) -> None:
    process = start_until(cli, "up", "created", 1)
    pid = box_client.status(cli.box).pid
    assert pid is not None
    kill([pid])
    out, _ = process.communicate()
    assert "the box does not answer: its daemon has stopped or was killed" in out
    assert "run `corral box start`" in out
    boxes.start(cli.box)
    make_gateway(cli)
    continued = cli.run("up", "dev", "--yes")
    assert continued.returncode == 0, continued.stderr
    assert "resources that they may have created" in continued.stdout
    assert redeploy_counts(cli) == {"base": (0, 0, 18), "cluster": (0, 0, 8)}
    assert len(inventory(cli.box)["ec2/internet-gateway"]) == 1
    assert cli.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert cli.left() == {}


def make_gateway(cli: CliSession) -> None:
    """Create the pending internet gateway, as if only the answer to its creation was lost."""
    tags = [{"Key": "Name", "Value": "gateway"}, {"Key": "corral:base", "Value": "dev"}]
    wanted = [{"ResourceType": "internet-gateway", "Tags": tags}]
    client(box_client.status(cli.box), "ec2").create_internet_gateway(TagSpecifications=wanted)
