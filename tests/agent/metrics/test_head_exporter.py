"""What the exporter reads for a scrape: the autoscaler's records, one call of squeue, and files of the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.autoscalers import SchedulerLog
from agent.metrics.readings import NOON, SPOT, instance, job, node
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.cluster.state import AutoscalerState
from corral.agent.events import EventLog
from corral.agent.metrics.event_counts import EventFollower
from corral.agent.metrics.exporter import HeadExporter
from corral.agent.metrics.file_systems import FileSystemWatch
from corral.agent.metrics.slurm_jobs import JobRow
from corral.agent.metrics.spending import SpendingMeter
from corral.agent.slurm import SlurmError
from corral.model.monitoring import ClusterPrices, PriceRange
from corral.model.serialization import to_json
from render.plans import deployed, dev


class NoCloud:
    """An EC2 that a scrape must not call."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a scrape calls EC2: {name}")


class Scrapes:
    """An exporter in a directory, its clock, and the calls of squeue."""

    def __init__(self, directory: Path) -> None:
        self.now, self.calls, self.silent = NOON, list[Sequence[str]](), False
        scheduler = SchedulerLog()
        self.autoscaler = Autoscaler(
            dev(), deployed(), NoCloud(), scheduler, lambda _: None, lambda: self.now, EventLog(None), AutoscalerState()
        )
        self.autoscaler.nodes = (node("train-1", "ALLOCATED", gpus=8),)
        self.autoscaler.instances = (instance("train-1"),)
        self.prices = directory / "prices.json"
        self.exporter = HeadExporter(
            autoscaler=self.autoscaler,
            jobs=self.jobs,
            events=EventFollower(file=directory / "events.jsonl"),
            file_systems=FileSystemWatch(mounts=tuple, clock=lambda: self.now, size_of=lambda _: (1, 1)),
            meter=SpendingMeter(file=directory / "spending.json", clock=lambda: self.now),
            heartbeat=directory / "heartbeat",
            is_applied_or_drained=lambda: False,
            prices=self.prices,
            clock=lambda: self.now,
        )

    def jobs(self, queues: Sequence[str]) -> tuple[JobRow, ...]:
        self.calls.append(queues)
        if self.silent:
            raise SlurmError("Unable to contact slurm controller")
        return (job(1),)


@pytest.fixture
def scrapes(tmp_path: Path) -> Scrapes:
    return Scrapes(tmp_path)


def test_a_scrape_calls_squeue_once_and_neither_scontrol_nor_ec2(scrapes: Scrapes) -> None:
    scrapes.exporter.text()
    assert scrapes.calls == [["train"]]


def test_a_scrape_shows_what_the_autoscaler_knows(scrapes: Scrapes) -> None:
    assert 'corral_gpus{queue="train",state="allocated"} 8\n' in scrapes.exporter.text()


def test_a_silent_slurmctld_fails_no_scrape(scrapes: Scrapes) -> None:
    scrapes.silent = True
    assert "corral_slurmctld_up 0\n" in scrapes.exporter.text()


def test_a_head_without_prices_has_no_costs(scrapes: Scrapes) -> None:
    assert scrapes.exporter.read().spending is None


def test_a_head_with_prices_adds_its_machines_up(scrapes: Scrapes) -> None:
    ten, one = PriceRange(low=10, high=10), PriceRange(low=1, high=1)
    scrapes.prices.write_text(to_json(ClusterPrices(offers={SPOT: ten}, fixed=one, source="a list")))
    scrapes.exporter.read()
    scrapes.now += 3600
    spending = scrapes.exporter.read().spending
    assert spending
    assert (spending.rate.low, spending.sum.low) == (11, 11)


def test_a_head_counts_as_changing_for_ten_minutes_after_its_start(scrapes: Scrapes) -> None:
    found = [scrapes.exporter.read().is_changing]
    scrapes.now += 601
    assert [*found, scrapes.exporter.read().is_changing] == [True, False]


def test_a_cluster_that_is_closing_or_applying_counts_as_changing(scrapes: Scrapes) -> None:
    scrapes.now += 601
    scrapes.autoscaler.is_closing = True
    closing = scrapes.exporter.read().is_changing
    scrapes.autoscaler.is_closing = False
    scrapes.exporter.is_applied_or_drained = lambda: True
    assert (closing, scrapes.exporter.read().is_changing) == (True, True)


def test_requeues_are_counted_between_scrapes(scrapes: Scrapes) -> None:
    restarts = iter([0, 2])
    scrapes.exporter.jobs = lambda _: (replace(job(1), restarts=next(restarts)),)
    scrapes.exporter.read()
    assert scrapes.exporter.read().requeues == {"train": 2}


def test_an_autoscaler_that_has_completed_no_cycle_has_no_age(scrapes: Scrapes) -> None:
    assert scrapes.exporter.read().last_cycle is None
