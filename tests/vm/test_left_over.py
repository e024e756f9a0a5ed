"""What counts as left over after the life of a cluster on virtual machines."""

from __future__ import annotations

from tools.vm_life.__main__ import left_over

BEFORE = {"s3/bucket": ["corral-example-corpus"]}


def test_what_was_there_before_is_not_left_over() -> None:
    assert left_over(BEFORE, BEFORE) == {}


def test_a_new_volume_is_left_over() -> None:
    assert left_over(BEFORE, {**BEFORE, "ec2/volume": ["vol-1"]}) == {"ec2/volume": ["vol-1"]}


def test_keys_that_wait_for_their_end_and_the_boundary_stay_by_intention() -> None:
    boundary = "arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"
    after = {**BEFORE, "kms/key": ["key-1 (scheduled for deletion)"], "iam/policy": [boundary]}
    assert left_over(BEFORE, after) == {}


def test_a_key_that_stays_is_left_over() -> None:
    assert left_over(BEFORE, {**BEFORE, "kms/key": ["key-1"]}) == {"kms/key": ["key-1"]}
