"""An environment's life with the real engine in a box: up, the same again, a change, a neighbour, down.

The tests continue from each other's stacks, in the order in which they stand here.
"""

from __future__ import annotations

import json

import pytest
from desks import Desk

pytestmark = [pytest.mark.pulumi, pytest.mark.box]


def test_up_says_each_thing_that_it_made_and_changes_no_file_of_the_project(desk: Desk) -> None:
    before = desk.hashes()
    done = desk.run("up", "dev", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("  created")]
    assert ["created", "aws:ec2:Vpc", "vpc"] in lines
    assert len(lines) == 41
    assert desk.hashes() == before


def test_plain_pulumi_finds_nothing_to_do_after_corral(desk: Desk) -> None:
    for stack in ("base", "cluster"):
        assert desk.pulumi(stack, "up", "--yes", "--skip-preview", "--expect-no-changes").returncode == 0


def test_corral_finds_nothing_to_do_after_plain_pulumi(desk: Desk) -> None:
    done = json.loads(desk.run("up", "dev", "--yes", "--json").stdout)
    outputs = done["cluster"].pop("outputs")
    assert done["cluster"] == {"created": 0, "updated": 0, "replaced": 0, "deleted": 0, "same": 3}
    assert outputs == {"base": "dev", "profile": "box-debian-12"}


def test_a_preview_shows_the_changed_line_of_a_text_and_changes_nothing(desk: Desk) -> None:
    desk.replace("stacks/cluster/Pulumi.dev.yaml", "max: 4", "max: 6")
    shown = desk.run("up", "dev", "--preview").stdout.splitlines()
    desk.replace("stacks/cluster/Pulumi.dev.yaml", "max: 6", "max: 4")
    assert [line.strip() for line in shown if "NodeName" in line] == [
        "-NodeName=train-[1-4] State=CLOUD",
        "+NodeName=train-[1-6] State=CLOUD",
    ]


def test_a_second_up_at_once_is_refused_and_says_who_is_at_work(desk: Desk) -> None:
    first = desk.start("up", "dev", "--yes")
    assert first.stdout is not None
    first.stdout.readline()
    second = desk.run("up", "dev", "--yes")
    first.communicate()
    assert f"another corral (process {first.pid}" in second.stderr
    assert (first.returncode, second.returncode) == (0, 1)


def test_a_base_stays_while_another_cluster_stands_on_it(desk: Desk) -> None:
    file = desk.project / "stacks/cluster/Pulumi.dev.yaml"
    file.with_name("Pulumi.other.yaml").write_text(file.read_text())
    assert desk.run("up", "other", "--yes").returncode == 0
    refused = desk.run("down", "dev", "--with-base", "--yes")
    assert refused.stderr == "corral: base dev stays: other clusters stand on it: other\n  first: corral down other\n"
    assert refused.returncode == 4


def test_data_is_not_deleted_by_another_name(desk: Desk) -> None:
    refused = desk.run("down", "dev", "--delete-data", "prod", "--yes")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        4,
        "corral: --delete-data prod: the base of dev is 'dev'",
    )


def test_down_leaves_nothing_and_says_so_when_there_is_nothing(desk: Desk) -> None:
    assert desk.run("down", "other", "--yes").returncode == 0
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    again = desk.run("down", "dev", "--yes")
    assert (again.returncode, again.stdout) == (0, "cluster dev: is not up, nothing to take down\n")
    assert desk.left() == {}
