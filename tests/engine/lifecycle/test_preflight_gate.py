"""The preflight of an up: findings that stop it, and findings that are only shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import boxes
from corral.box import client, control
from corral.box.client import BoxStatus
from corral.engine.engine_errors import EngineError
from corral.engine.lifecycle import preflight_gate
from corral.engine.lifecycle.external_resources import create_buckets, create_role_boundary, create_spot_role
from corral.engine.lifecycle.preflight_gate import require_startable
from corral.engine.pulumi.engine_account import Account
from environments import dev_base, dev_cluster

pytestmark = pytest.mark.box
P, P4_SPOT = "L-417A185B", "L-7212CCBC"


class RecordedLines:
    """A display that records its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        yield status


@pytest.fixture
def box(started: BoxStatus) -> BoxStatus:
    """A box with the quotas of a new account, and the data that `dev` refers to."""
    client.reset(Path(started.dir))
    account = Account(boxes.process_environment(started), "us-east-1")
    list(create_buckets(account, ["corral-example-corpus"]))
    list(create_spot_role(account))
    list(create_role_boundary(account))
    return started


@pytest.fixture
def stack(box: BoxStatus, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The parts of the base's stack that the gate uses, in the box's account."""
    monkeypatch.setattr(preflight_gate, "stack_account", lambda _: Account(boxes.process_environment(box), "us-east-1"))
    return SimpleNamespace(title="base dev", display=RecordedLines(), account_option=" --box")


def quota(box: BoxStatus, code: str, value: int) -> None:
    control.set_quota(Path(box.dir), code, value, "us-east-1")


def require(stack: Any, *, is_up: bool = False, network_only: bool = False) -> list[str]:
    cluster = dev_cluster(image_profile="box-debian-12")
    require_startable(stack, dev_base(), cluster, is_up=is_up, network_only=network_only)
    lines: list[str] = stack.display.lines
    return lines


def test_passed_preflight_prints_nothing(stack: Any) -> None:
    assert require(stack) == []


def test_a_missing_spot_role_stops_the_first_up(box: BoxStatus, stack: Any) -> None:
    boxes.client(box, "iam").delete_service_linked_role(RoleName="AWSServiceRoleForEC2Spot")
    with pytest.raises(EngineError) as refused:
        require(stack)
    assert refused.value.hints[0] == (
        "service-roles: spot.amazonaws.com: has no role in this account, and the head may not create it: spot launches"
        " fail - `corral bootstrap`, run by an administrator, creates it"
    )


def test_preflight_warnings_are_shown(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    (line,) = require(stack)
    assert line.startswith("check quotas: All P4, P3 and P2 Spot Instance Requests: 0 vCPUs")


def test_preflight_failures_stop_the_first_up(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    with pytest.raises(EngineError) as refused:
        require(stack)
    assert (refused.value.code, refused.value.sentence, len(refused.value.hints)) == (
        3,
        "the account cannot start dev (`corral check dev --box`)",
        3,
    )


def test_preflight_failures_of_a_running_cluster_are_only_shown(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    assert len(require(stack, is_up=True)) == 2


def test_network_only_skips_quota_checks(box: BoxStatus, stack: Any) -> None:
    quota(box, P4_SPOT, 0)
    quota(box, P, 0)
    assert require(stack, network_only=True) == []
