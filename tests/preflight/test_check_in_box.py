"""`corral check` against the box: its words, options and codes. What it finds is in test_defects_in_box.py."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from defects import BoxSession
from finding_lines import dev, finding_lines

import boxes
from corral.box import control
from corral.box.client import BoxStatus
from corral.plan.cluster import plan_image
from corral.preflight import image_check
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.spec.models.image import ImageSpec
from environments import PROJECT, dev_cluster
from forked_corral import run_corral

pytestmark = pytest.mark.box
ABSENT = ["skipped state -"]  # a check that does not apply to the box
RESERVED = "cr-0fedcba9876543210"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """An account that was prepared, and what `train` refers to in it."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        corral(status, "bootstrap", "--box", "--yes")
        corral(status, "check", "train", "--box")
        yield status


def corral(box: BoxStatus, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, in the project's directory."""
    environment = {**boxes.process_environment(box), "CORRAL_BOX_DIR": str(box.dir), "COLUMNS": "160"}
    return run_corral(*words, cwd=PROJECT, env=environment)


def checked(box: BoxStatus, environment: str, *words: str) -> tuple[int, list[str]]:
    """The exit code, and `verdict check about` of what is not ok."""
    done = corral(box, "check", environment, "--box", "--json", *words)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return done.returncode, [f"{f['verdict']} {f['check']} {f['about']}" for f in findings if f["verdict"] != "ok"]


@pytest.mark.parametrize("environment", ["dev", "train", "mixed"])
def test_a_prepared_account_passes_every_check(box: BoxStatus, environment: str) -> None:
    assert checked(box, environment) == (0, ABSENT)


def test_debians_image_is_found_by_its_parameter_and_fits(box: BoxStatus) -> None:
    cluster = replace(dev_cluster(), image=plan_image(ImageSpec(profile="debian-13"), None), lustre=())
    facts = image_check.fetch(AwsQueryCache(BoxSession(box=box)), dev(cluster))
    assert finding_lines(image_check.evaluate(dev(cluster), facts)) == [
        "ok head and nodes: ami-40893feee75fe2dc4, debian-13-amd64-20260901-2587, of 2026-09-01"
    ]


def test_findings_are_grouped_by_check_with_a_summary(box: BoxStatus) -> None:
    lines = corral(box, "check", "dev", "--box", "--only", "types").stdout.splitlines()
    assert (lines[1], lines[3], lines[4], lines[-1]) == (
        "Can dev start now?  us-east-1",
        "  types",
        "    ok  head: m7i.2xlarge is offered in use1-az1",
        "2 ok, 14 skipped",
    )


def test_checks_that_do_not_apply_to_the_box_are_listed_as_skipped(box: BoxStatus) -> None:
    lines = corral(box, "check", "dev", "--box").stdout.splitlines()
    assert [line for line in lines if line.startswith("  skipped")] == ["  skipped  state"]


def test_no_check_left_is_wrong_input(box: BoxStatus) -> None:
    done = corral(box, "check", "dev", "--box", "--only", "quotas", "--skip", "quotas")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: no check remains: --skip excludes all of them\n",
    )


def test_a_cost_above_the_hourly_limit_is_refused_as_by_up(box: BoxStatus, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "stacks", tmp_path / "stacks")
    file = tmp_path / "stacks/cluster/Pulumi.dev.yaml"
    limit = "corral-cluster:spec:\n    usd_per_hour_max: 1\n"
    file.write_text(file.read_text().replace("corral-cluster:spec:\n", limit))
    done = corral(box, "check", "dev", "--box", "--project", str(tmp_path))
    named = corral(box, "check", "dev", "--box", "--project", str(tmp_path), "--only", "types")
    assert (done.returncode, "usd_per_hour_max: an hour with" in done.stderr, named.returncode) == (4, True, 0)


def test_findings_are_also_written_as_a_page(box: BoxStatus, tmp_path: Path) -> None:
    done = corral(box, "check", "dev", "--box", "--only", "types", "--html", str(tmp_path / "check.html"))
    assert (done.stdout.splitlines()[-1], (tmp_path / "check.html").read_text().count('<td class="ok">')) == (
        "2 ok, 14 skipped",
        2,
    )


def test_an_unwritable_page_is_an_error(box: BoxStatus, tmp_path: Path) -> None:
    done = corral(box, "check", "dev", "--box", "--only", "types", "--html", str(tmp_path / "none" / "check.html"))
    assert (done.returncode, "No such file or directory" in done.stderr) == (1, True)


def test_a_skipped_check_is_listed(box: BoxStatus) -> None:
    assert checked(box, "dev", "--skip", "images") == (0, ["skipped images -", *ABSENT])


def test_an_unknown_check_is_wrong_input(box: BoxStatus) -> None:
    done = corral(box, "check", "dev", "--box", "--skip", "image")
    assert (done.returncode, done.stderr.split(" - ")[0]) == (2, "corral: unknown check 'image'")


def test_a_bucket_that_is_gone_and_another_regions_fails(box: BoxStatus) -> None:
    s3 = boxes.client(box, "s3")
    s3.delete_bucket(Bucket="corral-example-results")
    west = boxes.client(box, "s3", "us-west-2")
    west.create_bucket(Bucket="corral-example-results", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    found = checked(box, "train", "--only", "buckets")[1]
    west.delete_bucket(Bucket="corral-example-results")
    s3.create_bucket(Bucket="corral-example-results")
    assert [one for one in found if "skipped" not in one] == ["fail buckets s3://corral-example-results"]


@pytest.mark.parametrize(
    ("code", "quota", "red"),
    [
        ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", "warn"),  # the on-demand quota suffices
        ("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "fail"),
    ],
)
def test_a_quota_that_is_too_small_is_a_finding(box: BoxStatus, code: str, quota: str, red: str) -> None:
    control.set_quota(Path(box.dir), code, 0, "us-east-1")
    exit_code, found = checked(box, "dev", "--only", "quotas")
    control.set_quota(Path(box.dir), code, 5000, "us-east-1")
    assert (exit_code, found[0]) == ({"warn": 0, "fail": 3}[red], f"{red} quotas {quota}")


def test_a_reservation_that_was_cancelled_is_red(box: BoxStatus) -> None:
    boxes.client(box, "ec2").cancel_capacity_reservation(CapacityReservationId=RESERVED)
    code, found = checked(box, "train", "--only", "reservations")
    assert (code, found[0]) == (3, f"fail reservations queue train, {RESERVED}")


def test_a_deleted_bucket_is_not_created_again(box: BoxStatus) -> None:
    boxes.client(box, "s3").delete_bucket(Bucket="corral-example-corpus")
    code, found = checked(box, "train", "--only", "buckets")
    boxes.client(box, "s3").create_bucket(Bucket="corral-example-corpus")
    assert (code, found[0]) == (3, "fail buckets s3://corral-example-corpus")


def test_what_a_fresh_box_cannot_create_is_reported_next_to_the_findings(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box") as fresh:
        control.set_quota(Path(fresh.dir), "L-417A185B", 0, "us-east-1")
        done = corral(fresh, "check", "train", "--box", "--only", "reservations", "--json")
    rows = {one["about"]: one["verdict"] for one in json.loads(done.stdout)["findings"]}
    assert (done.returncode, rows[f"queue train, {RESERVED}"]) == (3, "fail")
    assert "the box cannot create reserved capacity in place of yours: Create" in done.stderr


def test_a_stopped_box_is_an_error(tmp_path: Path) -> None:
    done = run_corral("check", "dev", "--box-dir", str(tmp_path / "box"), cwd=PROJECT)
    assert (done.returncode, "`corral box start`" in done.stderr) == (3, True)
