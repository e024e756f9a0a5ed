"""Two clusters side by side in one box, with the same addresses and names of nodes: neither knows of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from clusters import Cluster, hurt_cluster, settled

from corral.box import control

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Cluster]]:
    """Each has run a job on its wide-1."""
    with hurt_cluster(tmp_path_factory.mktemp("two"), ("left", "right")) as clusters:
        jobs = [cluster.submit("hostname --ip-address > /home/where", "--partition=wide") for cluster in clusters]
        for cluster, job in zip(clusters, jobs, strict=True):
            cluster.life.seen[cluster.name] = cluster.end(job), cluster.results(job)
        yield clusters


@pytest.fixture(scope="module")
def alone(two: Sequence[Cluster]) -> Cluster:
    """One of them is down, and the other still works."""
    left, right = two
    right.life.seen["machines"] = sorted(where for one in (left, right) for where in one.nodes())
    left.life.done("down", left.name)
    job = right.submit("true", "--partition=wide")
    right.life.seen["after"] = right.end(job), settled(right)
    right.life.seen["left"] = set(control.machines(right.life.box.dir)) - {str(right.head()), *right.nodes().values()}
    return right


@pytest.mark.parametrize("name", ["left", "right"])
def test_each_runs_its_own_job(two: Sequence[Cluster], name: str) -> None:
    assert two[0].life.seen[name] == (("COMPLETED", "0"), ["0"])


def test_their_machines_have_the_same_address(alone: Cluster) -> None:
    first, second = alone.life.seen["machines"]
    assert first == second


def test_one_that_goes_leaves_the_other_alone(alone: Cluster) -> None:
    assert (alone.life.seen["after"], alone.life.seen["left"]) == ((("COMPLETED", "0"), []), set())
