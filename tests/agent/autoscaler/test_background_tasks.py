"""The autoscaler's background tasks: they run only after a change, and none blocks another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from corral.agent.autoscaler.machine_tasks import NodeSwitches, ZoneCleanup
from corral.agent.autoscaler.reconciler import ClusterSnapshot
from corral.agent.autoscaler_daemon import Services, tasks_of
from corral.agent.background_tasks import BackgroundTask, run_task, start_tasks
from corral.agent.cluster.models import BlockPeriod
from corral.agent.errors import AgentError
from corral.model.enums import Market
from render.plans import dev, train


@dataclass(kw_only=True)
class Recorder:
    """A callable that records its arguments, and fails on request."""

    calls: list[Mapping[str, str]] = field(default_factory=list)
    fails: bool = False

    def __call__(self, given: Mapping[str, str] | Callable[[], Mapping[str, str]]) -> None:
        self.calls.append(dict(given() if callable(given) else given))
        if self.fails:
            raise AgentError("no way")


ONE = ClusterSnapshot(addresses={"train-1": "10.0.0.1"}, running={"train-1": "i-1"})
BOTH = ClusterSnapshot(addresses={"train-1": "10.0.0.1", "train-2": "10.0.0.3"}, running={"train-1": "i-1"})
OTHER = ClusterSnapshot(addresses={"train-1": "10.0.0.2"}, running={"train-1": "i-2"})


@pytest.mark.parametrize("kind", ["names", "switches"])
def test_nothing_is_called_before_the_first_snapshot(kind: str) -> None:
    recorder = Recorder()
    task = (
        ZoneCleanup(snapshot=lambda: None, prune=recorder)
        if kind == "names"
        else NodeSwitches(snapshot=lambda: None, write=recorder)
    )
    task()
    assert recorder.calls == []


def test_names_are_pruned_when_an_address_has_changed() -> None:
    recorder, look = Recorder(), [ONE]
    names = ZoneCleanup(snapshot=lambda: look[-1], prune=recorder)
    names(), names(), look.append(OTHER), names()
    assert recorder.calls == [{"train-1": "10.0.0.1"}, {"train-1": "10.0.0.2"}]


def test_a_node_that_is_launched_while_the_zone_is_read_keeps_its_name() -> None:
    recorder, looks = Recorder(), iter([ONE, BOTH])
    ZoneCleanup(snapshot=lambda: next(looks), prune=recorder)()
    assert recorder.calls == [{"train-1": "10.0.0.1", "train-2": "10.0.0.3"}]


def test_names_that_could_not_be_pruned_are_tried_again() -> None:
    recorder = Recorder(fails=True)
    names = ZoneCleanup(snapshot=lambda: ONE, prune=recorder)
    for _ in range(2):
        run_task(BackgroundTask(name="node names", every_s=1, act=names))
    assert len(recorder.calls) == 2


def test_the_switches_of_a_machine_are_queried_once_it_is_up() -> None:
    recorder, looks = Recorder(), iter([ONE, ONE, OTHER])
    switches = NodeSwitches(snapshot=lambda: next(looks), write=recorder)
    switches(), switches(), switches()
    assert recorder.calls == [{"train-1": "i-1"}, {"train-1": "i-2"}]


def test_an_unexpected_error_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def act() -> None:
        raise ZeroDivisionError

    run_task(BackgroundTask(name="sums", every_s=1, act=act))
    assert caplog.messages == ["sums failed"]


def test_a_task_that_hangs_does_not_block_another() -> None:
    never, done = threading.Event(), threading.Event()
    start_tasks(
        [
            BackgroundTask(name="hangs", every_s=60, act=never.wait),
            BackgroundTask(name="works", every_s=60, act=done.set),
        ]
    )
    assert done.wait(60)


def tasks_for(**outside: Any) -> tuple[BackgroundTask, ...]:
    """What an autoscaler does that has this outside."""
    autoscaler: Any = SimpleNamespace(plan=dev())
    zone: Any = SimpleNamespace(prune=print)
    topology: Any = SimpleNamespace(switches=print)
    return tasks_of(autoscaler, autoscaler, Services(zone=zone, topology=topology, **outside), 30.0)


def test_the_background_tasks_and_their_intervals() -> None:
    looking = SimpleNamespace(poll=print, check=print)
    people = {"removed_jobs": looking, "logins": looking}
    tasks = tasks_for(configuration=looking, shutdown=looking, tree=looking, shipping=looking, **people)
    assert [(task.name, task.first_s, task.every_s) for task in tasks] == [
        ("configuration poll", 30.0, 60.0),
        ("cluster shutdown", 30.0, 30.0),
        ("node names", 0.0, 30.0),
        ("node switches", 0.0, 30.0),
        ("topology.conf", 600.0, 30.0),
        ("jobs of removed people", 0.0, 30.0),
        ("logins", 0.0, 60.0),
        ("event shipping", 0.0, 30.0),
        ("capacity block times", 0.0, 120.0),
        ("accounting backup", 600.0, 600.0),
    ]


def test_the_times_of_a_block_that_a_later_configuration_adds_are_read() -> None:
    period = BlockPeriod(begins=1.0, ends=2.0)
    requested: list[Sequence[str]] = []

    def blocks(ids: Sequence[str]) -> Mapping[str, BlockPeriod]:
        requested.append(ids)
        return dict.fromkeys(ids, period)

    autoscaler: Any = SimpleNamespace(plan=dev(), blocks=blocks)
    outside: Any = SimpleNamespace(prune=print, switches=print)
    tasks = tasks_of(autoscaler, autoscaler, Services(zone=outside, topology=outside), 30.0)
    read = next(task.act for task in tasks if task.name == "capacity block times")
    read()
    reserved = replace(train().offers[0], key="train-block", market=Market.CAPACITY_BLOCK, reservation="cr-1")
    autoscaler.plan = dev(replace(train(), offers=(reserved,)))
    read()
    assert (requested, autoscaler.block_ends) == ([["cr-1"]], {"train-block": 2.0})


def test_events_are_shipped_by_the_task_of_this_name() -> None:
    shipping = SimpleNamespace()
    assert [task.act for task in tasks_for(shipping=shipping) if task.name == "event shipping"] == [shipping]
