"""What the keeper does beside answering Slurm: only where something has changed, and never at another's cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from corral.agent.chores import Chore, Names, Switches, do, start
from corral.agent.errors import AgentError
from corral.agent.keep import Outside, chores_of
from corral.agent.turn import Seen
from render.plans import dev


@dataclass(kw_only=True)
class Asked:
    """Somebody who writes down what he is asked, and fails as long as he is told to."""

    calls: list[Mapping[str, str]] = field(default_factory=list)
    fails: bool = False

    def __call__(self, given: Mapping[str, str] | Callable[[], Mapping[str, str]]) -> None:
        self.calls.append(dict(given() if callable(given) else given))
        if self.fails:
            raise AgentError("no way")


ONE = Seen(addresses={"train-1": "10.0.0.1"}, running={"train-1": "i-1"})
BOTH = Seen(addresses={"train-1": "10.0.0.1", "train-2": "10.0.0.3"}, running={"train-1": "i-1"})
OTHER = Seen(addresses={"train-1": "10.0.0.2"}, running={"train-1": "i-2"})


@pytest.mark.parametrize("kind", ["names", "switches"])
def test_nobody_is_asked_where_nothing_was_seen_yet(kind: str) -> None:
    asked = Asked()
    chore = Names(seen=lambda: None, prune=asked) if kind == "names" else Switches(seen=lambda: None, place=asked)
    chore()
    assert asked.calls == []


def test_names_are_brought_up_to_date_when_an_address_has_changed() -> None:
    asked, look = Asked(), [ONE]
    names = Names(seen=lambda: look[-1], prune=asked)
    names(), names(), look.append(OTHER), names()
    assert asked.calls == [{"train-1": "10.0.0.1"}, {"train-1": "10.0.0.2"}]


def test_a_node_that_is_launched_while_the_zone_is_read_keeps_its_name() -> None:
    asked, looks = Asked(), iter([ONE, BOTH])
    Names(seen=lambda: next(looks), prune=asked)()
    assert asked.calls == [{"train-1": "10.0.0.1", "train-2": "10.0.0.3"}]


def test_names_that_could_not_be_brought_up_to_date_are_tried_again() -> None:
    asked = Asked(fails=True)
    names = Names(seen=lambda: ONE, prune=asked)
    for _ in range(2):
        do(Chore(name="names of nodes", each_s=1, act=names))
    assert len(asked.calls) == 2


def test_the_switches_of_a_machine_are_asked_for_once_it_is_up() -> None:
    asked, looks = Asked(), iter([ONE, ONE, OTHER])
    switches = Switches(seen=lambda: next(looks), place=asked)
    switches(), switches(), switches()
    assert asked.calls == [{"train-1": "i-1"}, {"train-1": "i-2"}]


def test_what_nobody_has_thought_of_is_told_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def act() -> None:
        raise ZeroDivisionError

    do(Chore(name="sums", each_s=1, act=act))
    assert caplog.messages == ["sums failed"]


def test_a_chore_that_hangs_keeps_no_other_from_its_work() -> None:
    never, done = threading.Event(), threading.Event()
    start([Chore(name="hangs", each_s=60, act=never.wait), Chore(name="works", each_s=60, act=done.set)])
    assert done.wait(60)


def of_keeper(**outside: Any) -> tuple[Chore, ...]:
    """What a keeper does that has this outside."""
    keeper: Any = SimpleNamespace(plan=dev())
    zone: Any = SimpleNamespace(prune=print)
    topology: Any = SimpleNamespace(switches=print)
    return chores_of(keeper, keeper, Outside(zone=zone, topology=topology, **outside), 30.0)


def test_what_a_keeper_does_beside_its_rounds() -> None:
    looking = SimpleNamespace(look=print)
    chores = of_keeper(configuration=looking, closing=looking, tree=looking, shipping=looking)
    assert [(chore.name, chore.first_s, chore.each_s) for chore in chores] == [
        ("look for a newer configuration", 30.0, 60.0),
        ("end of life", 30.0, 30.0),
        ("names of nodes", 0.0, 30.0),
        ("switches of nodes", 0.0, 30.0),
        ("topology.conf", 600.0, 30.0),
        ("events to the log group", 0.0, 30.0),
        ("dump of the accounting", 600.0, 600.0),
    ]


def test_events_are_shipped_by_the_chore_of_this_name() -> None:
    shipping = SimpleNamespace()
    assert [chore.act for chore in of_keeper(shipping=shipping) if chore.name == "events to the log group"] == [
        shipping
    ]
