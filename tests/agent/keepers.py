"""A keeper in the test's own process: a real EC2 of the box or none, a scheduler that writes down what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.events import Journal
from corral.agent.memory import Memory
from corral.agent.turn import Cloud, Keeper
from corral.agent.world import Note, SlurmNode, WaitingJob
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.node_names import expand, fold


@dataclass(kw_only=True)
class Told:
    """What a scheduler was told, as words."""

    known: tuple[SlurmNode, ...] = ()
    said: list[str] = field(default_factory=list)

    def nodes(self) -> tuple[SlurmNode, ...]:
        return self.known

    def place(self, addresses: Mapping[str, str]) -> None:
        self.said.append("place " + " ".join(f"{node}={address}" for node, address in sorted(addresses.items())))

    def power_down(self, nodes: Sequence[str], reason: str) -> None:
        self.said.append(f"power down {fold(nodes)}: {reason}")

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        self.said.append(f"drain {fold(nodes)}: {reason}")

    def ask_for_checkpoints(self, nodes: Sequence[str]) -> None:
        self.said.append(f"ask {fold(nodes)}")

    def requeue_jobs(self, nodes: Sequence[str]) -> None:
        self.said.append(f"requeue jobs on {fold(nodes)}")

    def replace(self, nodes: Sequence[str], reason: str) -> None:
        self.said.append(f"replace {fold(nodes)}: {reason}")

    def power_up(self, nodes: Sequence[str]) -> None:
        self.said.append(f"power up {fold(nodes)}")

    def undrain(self, nodes: Sequence[str]) -> None:
        self.said.append(f"undrain {fold(nodes)}")

    def stop_queue(self, queue: str) -> None:
        self.said.append(f"stop {queue}")

    def tell_waiting(self, jobs: Sequence[int], text: str) -> None:
        self.said.append(f"tell {','.join(str(job) for job in jobs)}: {text}")


@dataclass(kw_only=True)
class Clock:
    """Time that passes when a test says so. Seconds since 1970."""

    now: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class Desk:
    """A keeper and what is around it. `saved`: what it wrote down, in order."""

    keeper: Keeper
    told: Told
    clock: Clock
    saved: list[Memory]
    left: list[Note] = field(default_factory=list)

    def ask(self, verb: str, nodes: str, *jobs: str, key: str = "1-1") -> list[str]:
        """What the scheduler is told when these nodes are asked for, by jobs that each wait for some of them."""
        wanted = set(expand(nodes))
        waiting = tuple(
            WaitingJob(
                job_id=number,
                nodes=tuple(node for node in expand(job) if node in wanted),
                beside=tuple(node for node in expand(job) if node not in wanted),
            )
            for number, job in enumerate(jobs, start=1)
        )
        note = Note(key=key, verb=verb, nodes=expand(nodes), asked_at=self.clock.now, jobs=waiting)
        done: list[Note] = []
        before = len(self.told.said)
        self.keeper.answer([note], done.append)
        self.left = [note] if not done else []
        return self.told.said[before:]


def desk(plan: ClusterPlan, deployed: Deployed, cloud: Cloud, known: Memory | None = None) -> Desk:
    told, clock, saved = Told(), Clock(), list[Memory]()
    keeper = Keeper(plan, deployed, cloud, told, saved.append, clock, Journal(None), known or Memory())
    return Desk(keeper=keeper, told=told, clock=clock, saved=saved)
