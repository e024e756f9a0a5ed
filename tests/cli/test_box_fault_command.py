"""`corral box fault`: its sentences and its exit codes. What the faults do is in tests/box."""

from __future__ import annotations

import json
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
    """The state directory of a running box in which nothing goes wrong."""
    control.clear_faults(started)
    return started


def fault(box: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return corral("box", "fault", *words, "--dir", str(box))


def test_fault_says_what_is_in_force_from_now_on(box: Path) -> None:
    done = fault(box, "no-capacity", "--type", "p5.48xlarge", "--zone", "use1-az1", "--count", "3")
    assert done.stdout == "in force: no-capacity p5.48xlarge us-east-1b, room 0, 3 times yet\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("dies-after-launch", "--after", "5s"), "dies-after-launch, reason capacity, after 5 s"),
        (("throttle", "--market", "spot"), "throttle spot, call ec2:RunInstances"),
        (("refuse", "--code", "X", "--count", "1"), "refuse, call ec2:RunInstances, code X, 1 times yet"),
        (("slow-boot", "--after", "2m"), "slow-boot, after 120 s"),
        (("hang-boot", "--of", "train"), "hang-boot train"),
        (("late",), "late, after 10 s"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_each_fault_that_stays_is_listed_in_a_line(box: Path, words: tuple[str, ...], line: str) -> None:
    fault(box, *words)
    assert fault(box, "list").stdout == f"{line}\n"


@pytest.mark.parametrize("kind", ["spot-notice", "rebalance", "kill", "hang", "partition", "block-end"])
def test_machine_that_does_not_run_is_a_wrong_input(box: Path, kind: str) -> None:
    done = fault(box, kind, "train-9")
    assert (done.returncode, done.stderr.endswith("is 'train-9' - `corral status` lists nodes and instances\n")) == (
        2,
        True,
    )


def test_head_that_does_not_run_is_a_wrong_input(box: Path) -> None:
    done = fault(box, "kill-head")
    assert (done.returncode, done.stderr) == (2, "corral: no head runs - `corral status` lists nodes and instances\n")


def test_market_that_does_not_exist_is_a_wrong_input(box: Path) -> None:
    done = fault(box, "no-capacity", "--market", "sport")
    told = "corral: there is no market 'sport' - there are spot, on-demand, reservation, capacity-block\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_clearing_what_is_not_in_force_is_a_wrong_input(box: Path) -> None:
    done = fault(box, "clear", "throttle")
    told = "corral: no throttle is in force - `corral box fault list` shows what is\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_clearing_what_cannot_be_cleared_is_a_wrong_input(box: Path) -> None:
    done = fault(box, "clear", "kill")
    assert (done.returncode, done.stderr.startswith("corral: 'kill' cannot be cleared - all can, or dies-")) == (
        2,
        True,
    )


def test_clear_says_how_many_faults_are_gone(box: Path) -> None:
    fault(box, "throttle")
    assert [fault(box, "clear").stdout for _ in range(2)] == ["1 fault cleared\n", "no fault was in force\n"]


def test_list_is_a_document_too(box: Path) -> None:
    fault(box, "refuse", "--code", "VcpuLimitExceeded", "--for", "1h")
    document = json.loads(fault(box, "list", "--json").stdout)
    assert (document["schema"], document["faults"][0]["settings"]["code"]) == ("corral.faults/1", "VcpuLimitExceeded")


def test_status_tells_of_faults_in_force(box: Path) -> None:
    fault(box, "late")
    assert "\nfaults are in force: late, after 10 s\n" in corral("box", "status", "--dir", str(box)).stdout
