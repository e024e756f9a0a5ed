"""What EC2 bounds: root volumes by the snapshot of their image, capacity blocks by their number of instances."""

from __future__ import annotations

from pathlib import Path

import pytest
from specs import CLUSTER, Edit, edited, project

from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import read_environment

HEAD_20 = ("root_gib: 150", "root_gib: 20")
QUEUE_74 = ("        efa: on\n", "        efa: on\n        root_gib: 74\n")
OWN_IMAGE = ("      profile: ubuntu-24.04-dlami\n", "      id: ami-0123456789abcdef0\n")
POOLS = """\
          - market: spot
            zones: [use1-az1]
            max_price: 8.5
          - market: on-demand
"""
IDS = [f"cr-0123456789abcde{number:02}" for number in range(6)]


def errors_of(directory: Path, *edits: Edit) -> list[str]:
    """The errors of the cluster, without the file name."""
    try:
        read_environment(project(directory, cluster=edited(CLUSTER, edits)), "dev")
    except SpecErrors as errors:
        return [line.removeprefix("stacks/cluster/Pulumi.dev.yaml: ") for line in str(errors).split("\n")]
    return []


def blocks(*pools: tuple[int, int | None]) -> Edit:
    """The queue `train` with capacity blocks instead, each pool of so many ids with this count."""
    ids = iter(IDS)
    rows = [
        f"          - {{market: capacity-block, zones: [use1-az1], ids: [{', '.join(next(ids) for _ in range(many))}]"
        + (f", count: {count}}}" if count else "}")
        for many, count in pools
    ]
    return (POOLS, "\n".join(rows) + "\n")


def test_a_head_whose_root_is_smaller_than_its_image_is_refused(tmp_path: Path) -> None:
    assert errors_of(tmp_path, HEAD_20) == [
        "head.root_gib: 20 is smaller than image 'ubuntu-24.04-dlami', which takes 75 GiB - use 75 or more"
    ]


def test_a_queue_whose_root_is_smaller_than_its_image_is_refused(tmp_path: Path) -> None:
    assert errors_of(tmp_path, QUEUE_74) == [
        "queues[0].root_gib: 74 is smaller than image 'ubuntu-24.04-dlami', which takes 75 GiB - use 75 or more"
    ]


def test_a_root_as_large_as_its_image_is_taken(tmp_path: Path) -> None:
    assert errors_of(tmp_path, ("root_gib: 150", "root_gib: 75")) == []


def test_of_an_image_of_ones_own_no_size_is_known(tmp_path: Path) -> None:
    assert errors_of(tmp_path, HEAD_20, QUEUE_74, OWN_IMAGE) == []


@pytest.mark.parametrize(
    ("ids", "count", "bound"),
    [
        (1, 500, "500 is more than a capacity block holds - use 64 or less, or add blocks"),
        (2, 300, "300 is more than 2 capacity blocks hold - use 128 or less, or add blocks"),
    ],
)
def test_a_block_of_more_than_64_instances_is_refused(tmp_path: Path, ids: int, count: int, bound: str) -> None:
    assert errors_of(tmp_path, blocks((ids, count))) == [f"queues[0].capacity[0].count: {bound}"]


def test_blocks_of_more_than_256_instances_together_are_refused(tmp_path: Path) -> None:
    assert errors_of(tmp_path, blocks((3, 192), (2, 65))) == [
        "queues: count 257 instances in capacity blocks in total - EC2 allows at most 256 in all blocks of an account"
    ]


def test_blocks_of_256_instances_together_are_taken(tmp_path: Path) -> None:
    assert errors_of(tmp_path, blocks((3, 192), (1, 64))) == []


def test_blocks_that_are_not_counted_are_taken(tmp_path: Path) -> None:
    assert errors_of(tmp_path, blocks((6, None))) == []


def test_a_reservation_may_hold_more_than_a_block(tmp_path: Path) -> None:
    old, new = blocks((1, 500))
    assert errors_of(tmp_path, (old, new.replace("capacity-block", "reservation"))) == []
