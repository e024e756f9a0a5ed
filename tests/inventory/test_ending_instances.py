"""Instances that shut down are found by their ids, and waited for."""

from __future__ import annotations

from typing import Any

import pytest

from corral.inventory import ending_instances
from corral.inventory.ending_instances import await_termination, list_ending_instances


class Session:
    """An account whose instances shut down for some more calls."""

    def __init__(self, ending: dict[str, int]) -> None:
        self.ending = ending
        self.filters: list[Any] = []

    def client(self, service: str) -> Any:
        assert service == "ec2"
        return self

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_instances"
        return self

    def paginate(self, *, Filters: list[Any]) -> Any:
        self.filters = Filters
        (ids,) = (one["Values"] for one in Filters if one["Name"] == "instance-id")
        found = [{"InstanceId": id} for id in self.ending if id in ids and self.ending[id] > 0]
        self.ending = {id: calls - 1 for id, calls in self.ending.items()}
        return [{"Reservations": [{"Instances": [one]} for one in found]}]


def test_only_those_that_shut_down_are_listed_and_ec2_chooses_them() -> None:
    session = Session({"i-b": 1, "i-a": 1, "i-c": 1})
    assert list_ending_instances(session, ["i-b", "i-a", "i-d"]) == ("i-a", "i-b")
    assert session.filters == [
        {"Name": "instance-id", "Values": ["i-a", "i-b", "i-d"]},
        {"Name": "instance-state-name", "Values": ["shutting-down"]},
    ]


def test_without_instances_ec2_is_not_queried() -> None:
    assert list_ending_instances(None, []) == ()


def test_it_returns_once_the_last_one_is_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    session = Session({"i-a": 2, "i-b": 7})
    await_termination(lambda: list_ending_instances(session, ["i-a", "i-b"]))
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_after_its_patience_it_names_those_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(ending_instances, "_PATIENCE_S", 0)
    session = Session({"i-a": 0, "i-b": 100})
    with pytest.raises(TimeoutError, match=r"^instances did not terminate: i-b$"):
        await_termination(lambda: list_ending_instances(session, ["i-a", "i-b"]))
