"""What of a preflight stops an up, and what is only told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import boxes
from corral.box import control
from corral.box.control import BoxStatus
from corral.engine import starting
from corral.engine.account import Account
from corral.engine.belongings import make_buckets
from corral.engine.errors import EngineError
from corral.engine.starting import require_start
from environments import dev_base, dev_cluster

pytestmark = pytest.mark.box
P, P4_SPOT = "L-417A185B", "L-7212CCBC"


class Told:
    """A printer that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        list(make_buckets(Account(boxes.process_environment(status), "us-east-1"), ["corral-example-corpus"]))
        yield status


@pytest.fixture
def stack(box: BoxStatus, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The base's stack, as far as it is asked, in the box's account."""
    monkeypatch.setattr(starting, "account_of", lambda _: Account(boxes.process_environment(box), "us-east-1"))
    return SimpleNamespace(title="base dev", printer=Told(), account_option=" --box")


def quota(box: BoxStatus, code: str, value: int) -> None:
    control.set_quota(Path(box.dir), code, value, "us-east-1")


def require(stack: Any, *, is_up: bool = False, ground_alone: bool = False) -> list[str]:
    cluster = dev_cluster(image_profile="box-debian-12")
    require_start(stack, dev_base(), cluster, in_box=True, is_up=is_up, ground_alone=ground_alone)
    lines: list[str] = stack.printer.lines
    return lines


def test_an_account_in_which_nothing_is_in_the_way_is_not_spoken_of(stack: Any) -> None:
    assert require(stack) == []


def test_what_may_be_in_the_way_is_told(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    (line,) = require(stack)
    assert line.startswith("check quotas: All P4, P3 and P2 Spot Instance Requests: 0 vCPUs")


def test_what_is_in_the_way_stops_the_first_up_with_all_of_it(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    with pytest.raises(EngineError) as refused:
        require(stack)
    assert (refused.value.code, refused.value.sentence, len(refused.value.hints)) == (
        3,
        "the account cannot start dev as it is (`corral check dev --box`)",
        3,
    )


def test_of_a_cluster_that_is_up_it_is_only_told(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    assert len(require(stack, is_up=True)) == 2


def test_who_does_not_want_it_is_asked_of_nothing(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    assert require(stack, ground_alone=True) == []
