"""Checkpoint sizes compared with published ones, and how long a checkpoint stops the job."""

from __future__ import annotations

import pytest
from training_shapes import LLAMA3_405B

from corral.catalog.aws.storage import find_checkpoint_state, find_host_copy
from corral.forecast.run.checkpointing import CheckpointSize, asynchronous, host_copy_s, synchronous
from corral.forecast.storage_speed import GIB, Bottleneck, Rate

MB, GB, TIB = 10**6, 10**9, 2**40


def size_of(parameters: float, state: str) -> float:
    return CheckpointSize(parameters=parameters, state=find_checkpoint_state(state)).size_bytes


def test_a_checkpoint_of_bloom_has_the_published_2_3_tib() -> None:
    assert size_of(176.25e9, "mixed-adam") / TIB == pytest.approx(2.3, rel=0.03)


def test_the_weights_of_bloom_have_the_published_329_gib() -> None:
    assert size_of(176.25e9, "weights") / GIB == pytest.approx(329, rel=0.003)


def test_checkpoint_of_mt_nlg_takes_the_published_42_minutes_at_20_gbps() -> None:
    rate = Rate(bytes_per_s=20e9 / 8, limit=Bottleneck.NODES)
    assert rate.seconds(size_of(530e9, "optimizer-only")) / 60 == pytest.approx(42, rel=0.01)


def test_each_gpu_of_llama_3_has_347_mb_of_a_checkpoint() -> None:
    size = CheckpointSize(parameters=LLAMA3_405B.parameters, state=find_checkpoint_state("mixed-adam"))
    assert round(size.bytes_per_writer(16_384) / MB) == 347


def test_unsharded_checkpoint_has_one_writer() -> None:
    size = CheckpointSize(parameters=8e9, state=find_checkpoint_state("mixed-adam"))
    assert size.bytes_per_writer(1) == 112 * GB


def test_an_asynchronous_checkpoint_stalls_for_the_copy_to_the_host_alone() -> None:
    copy = find_host_copy("p5")
    assert copy is not None
    saved = asynchronous(host_copy_s(14 * GB, copy), 100)
    assert (saved.stall_s, saved.durable_s, saved.behind_s) == (
        pytest.approx(0.28),
        pytest.approx(100.28),
        pytest.approx(100),
    )


def test_a_synchronous_checkpoint_stalls_until_it_is_written() -> None:
    assert (synchronous(100).stall_s, synchronous(100).behind_s) == (100, 0)
