"""Which buckets of states corral accepts, against the box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

import boxes
from bucket_owners import UNOWNED
from corral.box import client
from corral.box.client import BoxStatus
from corral.engine.backend.bucket_backend import has_stack_in_bucket, require_bucket
from corral.engine.engine_errors import EngineError

TAKEN = "corral-state-123456789012-us-east-1"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """A box in which another account has taken a name, and opened its bucket."""
    with boxes.running_box(tmp_path_factory.mktemp("backend") / "box") as box:
        yield boxes.take_bucket(box.dir, TAKEN)


@pytest.fixture
def environ(box: BoxStatus) -> Mapping[str, str]:
    return client.environment(box.dir)


def test_a_bucket_of_the_account_is_accepted(box: BoxStatus, environ: Mapping[str, str]) -> None:
    boxes.client(box, "s3").create_bucket(Bucket="states")
    require_bucket("s3://states?region=us-east-1", environ)


def test_a_bucket_of_another_account_is_refused_with_the_way_out(environ: Mapping[str, str]) -> None:
    with pytest.raises(EngineError) as refused:
        require_bucket(f"s3://{TAKEN}?region=us-east-1", environ)
    assert (refused.value.sentence, refused.value.hints[1], refused.value.code) == (
        f"these credentials may not list the state bucket {TAKEN} (s3:ListBucket), or it does not belong to account"
        " 123456789012",
        "if another account has the bucket, do not use it: `corral bootstrap --name NAME` creates one of your own",
        3,
    )


def test_states_of_another_account_are_not_read(box: BoxStatus, environ: Mapping[str, str]) -> None:
    key = ".pulumi/stacks/corral-cluster/dev.json"
    boxes.client(box, "s3").put_object(Bucket=TAKEN, Key=key, Body=b"{}", ExpectedBucketOwner="999999999999")
    assert has_stack_in_bucket(f"s3://{TAKEN}?region=us-east-1", environ, "corral-cluster", "dev") is False


def test_a_bucket_outside_aws_has_no_account(box: BoxStatus, environ: Mapping[str, str]) -> None:
    require_bucket(f"s3://{TAKEN}?region=us-east-1&endpoint={box.url}", environ)
    found = list(UNOWNED)
    UNOWNED.clear()
    assert found == [f"corral.engine.backend.bucket_backend calls ListObjectsV2 of any account's bucket {TAKEN}"]
