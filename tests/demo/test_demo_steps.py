"""Each step of the demo ends it where what it shows is not so: the same step is told the truth, then not."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

DEMO = Path(__file__).parents[2] / "tools/demo"
PLAN = """Queue train  p4d.24xlarge, train-[1-4]
  idle cluster  0.66 an hour, on top of the base
  all nodes     10.57 - 88.54 an hour, including base and cluster
"""
BUCKET = ("s3/bucket", "corral-example-corpus")
KEYS = [("kms/key", f"{number} (scheduled for deletion)") for number in (1234, 5678)]
NICS = [{"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface"}]
ROWS = [
    {"name": "train-3", "marks": [{"kind": "notice", "at": "2026-01-01T10:00:00Z"}]},
    {"name": "head", "marks": [{"kind": "launched", "at": "2026-01-01T09:00:00Z"}]},
]


class Told:
    """A session in which commands answer what they are told to."""

    def __init__(self, **told: Any) -> None:
        self.told, self.lines = told, list[str]()
        self.initial_inventory = {BUCKET[0]: [BUCKET[1]]}
        self.interrupted_node, self.events = "train-3", frozenset[tuple[str, str, str]]()

    def corral(self, *words: str, **_: bool) -> str:
        return str(self.told.get(words[0], ""))

    def query_json(self, *words: str) -> Any:
        return self.told[words[0]]

    def explain(self, line: str) -> None:
        self.lines.append(line)

    def inventory(self) -> Mapping[str, Sequence[str]]:
        held: dict[str, list[str]] = {}
        for kind, name in self.told["held"]:
            held.setdefault(kind, []).append(name)
        return held

    def client(self, _: str) -> Any:
        launched = [
            {
                "InstanceId": f"i-{index}",
                "AmiLaunchIndex": index,
                "InstanceLifecycle": "spot",
                "InstanceType": "p4d.24xlarge",
                "Placement": {"AvailabilityZone": "us-east-1a", "GroupName": "train"},
                "NetworkInterfaces": NICS,
            }
            for index in self.told["indexes"]
        ]
        return SimpleNamespace(
            describe_launch_templates=lambda **_: {"LaunchTemplates": [{"LaunchTemplateId": "lt-1"}]},
            describe_launch_template_versions=lambda **_: {
                "LaunchTemplateVersions": [{"LaunchTemplateData": {"NetworkInterfaces": NICS}}]
            },
            run_instances=lambda **_: {"Instances": launched},
            terminate_instances=lambda **_: None,
        )


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("stack_steps")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("job_steps")


def ends(step: Callable[[Any], None], demo: Told, claim: str) -> None:
    """The step ends the demo, and names this claim."""
    with pytest.raises(importlib.import_module("session").Unexpected, match=claim):
        step(demo)


def test_a_plan_without_the_price_of_all_nodes_ends_the_demo(stacks: ModuleType) -> None:
    stacks.plan(Told(plan=PLAN))
    ends(stacks.plan, Told(plan=PLAN.replace("10.57 - 88.54", "unknown")), "false: the plan prices it: .*all nodes")


def test_one_machine_where_two_were_asked_for_ends_the_demo(stacks: ModuleType) -> None:
    stacks.launch_from_template(Told(indexes=(0, 1)))
    ends(stacks.launch_from_template, Told(indexes=(0,)), "false: two machines came from one request")


def test_a_resource_that_is_left_ends_the_demo(stacks: ModuleType) -> None:
    stacks.delete_data(Told(held=[BUCKET, *KEYS]))
    left = "only two keys that are scheduled for deletion should be left"
    ends(stacks.delete_data, Told(held=[BUCKET, *KEYS, ("ec2/volume", "vol-1")]), left)


def test_a_key_that_is_not_deleted_ends_the_demo(stacks: ModuleType) -> None:
    left = "only two keys that are scheduled for deletion should be left"
    ends(stacks.delete_data, Told(held=[BUCKET, KEYS[0], ("kms/key", "5678")]), left)


def test_data_of_the_user_that_is_gone_ends_the_demo(stacks: ModuleType) -> None:
    ends(stacks.delete_data, Told(held=KEYS), "everything that was there before is still there; missing: .*corpus")


def test_a_history_without_an_event_that_the_head_told_ends_the_demo(jobs: ModuleType) -> None:
    demo = Told(timeline={"rows": ROWS})
    demo.events = jobs._events(demo)
    jobs.recorded_timeline(demo)
    demo.told["timeline"] = {"rows": ROWS[:1]}
    ends(jobs.recorded_timeline, demo, "the history has every event that the head told; missing: .*launched")


def test_a_head_that_comes_back_with_other_machines_ends_the_demo(
    jobs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def machines_after(after: Sequence[str]) -> Told:
        heads = iter([("i-old", "10.0.0.4", "vol-1"), ("i-new", "10.0.0.4", "vol-1")])
        instances = iter([["i-1", "i-2"], list(after)])
        monkeypatch.setattr(jobs, "head", lambda _: next(heads))
        monkeypatch.setattr(jobs, "compute_ids", lambda _: next(instances))
        monkeypatch.setattr(jobs, "nodes_and_jobs", lambda _: "train-1 idle\ntrain-2 idle\n")
        monkeypatch.setattr(jobs.time, "sleep", lambda _: None)
        demo = Told(indexes=())
        demo.wait_for = lambda *_, **__: None  # type: ignore[attr-defined]
        return demo

    jobs.lose_head(machines_after(["i-1", "i-2"]))
    ends(jobs.lose_head, machines_after(["i-1", "i-3"]), "false: the nodes keep their instances")
