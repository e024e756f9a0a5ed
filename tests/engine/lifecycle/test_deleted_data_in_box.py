"""A base whose retained data was deleted comes up again, while AWS's tagging API still lists that data."""

from __future__ import annotations

from pathlib import Path

import pytest

import boxes
from boxes import running_box
from cli_session import CliSession, copy_project
from corral.box import control
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]


def test_what_somebody_tagged_as_data_of_the_base_is_named_and_stays(tmp_path: Path) -> None:
    with running_box(tmp_path / "box") as box:
        cli = CliSession(project=copy_project(tmp_path / "project", small=False), box=tmp_path / "box")
        assert cli.run("up", "dev", "--yes").returncode == 0
        s3, tags = boxes.client(box, "s3"), {"corral:base": "dev", "corral:keep": "artefacts"}
        s3.create_bucket(Bucket="payroll")
        set_of_tags = [{"Key": key, "Value": value} for key, value in tags.items()]
        s3.put_bucket_tagging(Bucket="payroll", Tagging={"TagSet": set_of_tags})
        boxes.settle_tags(box)
        done = cli.run("down", "dev", "--delete-data", "dev", "--yes")
        left = [one["Name"] for one in s3.list_buckets()["Buckets"]]
    named = [
        line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("not deleted")
    ]
    assert (done.returncode, named, [name for name in left if name.startswith(("corral-dev-", "payroll"))]) == (
        0,
        ["not deleted  bucket  payroll: the base's bucket is corral-dev-123456789012-us-east-1"],
        ["payroll"],
    )


def test_an_up_does_not_import_deleted_data_that_the_tagging_api_lists(tmp_path: Path) -> None:
    with running_box(tmp_path / "box"):
        cli = CliSession(project=copy_project(tmp_path / "project", small=False), box=tmp_path / "box")
        control.inject_fault(cli.box, "stale-tags")
        with step("an environment is up, and down with its data"):
            assert cli.run("up", "dev", "--yes").returncode == 0
            assert cli.run("down", "dev", "--delete-data", "dev", "--yes").returncode == 0
        with step("it comes up again"):
            again = cli.run("up", "dev", "--yes")
            assert (again.returncode, again.stderr) == (0, "")
