"""`corral box quota`: its lines and its exit codes. What quotas do is in tests/box."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import corral

from boxes import running_box
from corral.box import control

pytestmark = pytest.mark.box


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("box")
    with running_box(directory):
        yield directory


@pytest.fixture
def box(started: Path) -> Path:
    """The state directory of a running box with the quotas of a new account."""
    control.reset(started)
    return started


def quota(box: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return corral("box", "quota", *words, "--dir", str(box))


def test_quota_that_was_set_is_shown_with_awss_default(box: Path) -> None:
    line = "L-417A185B  ec2                    192  Running On-Demand P instances (AWS's default is 0)\n"
    assert quota(box, "L-417A185B", "192").stdout == line


def test_quota_is_set_in_one_region_alone(box: Path) -> None:
    quota(box, "L-F678F1CE", "9", "--region", "us-west-2")
    line = "L-F678F1CE  vpc                      5  VPCs per Region\n"
    assert quota(box, "L-F678F1CE").stdout == line


def test_all_quotas_are_listed(box: Path) -> None:
    lines = quota(box).stdout.splitlines()
    assert (len(lines), lines[0]) == (52, "L-309BACF6  ebs                 100000  Snapshots per Region")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("L-417A185C", "1"),
            "there is no such quota: 'L-417A185C' is not in the catalogue - did you mean 'L-417A185B'?",
        ),
        (("L-417A185C",), "there is no such quota: 'L-417A185C' is not in the catalogue - did you mean 'L-417A185B'?"),
        (("L-417A185B", "many"), "'many' is no value of a quota - 0 is, or any number above"),
        (("L-417A185B", "inf"), "'inf' is no value of a quota - 0 is, or any number above"),
        (
            ("L-417A185B", "1", "--region", "us-est-1"),
            "there is no such region: 'us-est-1' is not in the catalogue - did you mean 'us-east-1'",
        ),
    ],
)
def test_what_is_no_quota_region_or_value_is_a_wrong_input(box: Path, words: tuple[str, ...], sentence: str) -> None:
    done = quota(box, *words)
    assert (done.returncode, done.stderr.count("\n"), sentence in done.stderr) == (2, 1, True)
