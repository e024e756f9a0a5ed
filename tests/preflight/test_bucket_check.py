"""Buckets with data."""

from __future__ import annotations

import pytest
from finding_lines import dev, finding_lines

from corral.preflight.bucket_check import BucketAccess, BucketFacts, evaluate, linked
from environments import dev_cluster

NAME = "corral-example-corpus"


def test_the_buckets_of_an_environment_are_those_of_its_links_and_jobs() -> None:
    assert linked(dev_cluster()) == (NAME,)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (BucketAccess(region="us-east-1"), "ok s3://corral-example-corpus: is in us-east-1"),
        (BucketAccess(region=None, refusal="404"), "fail s3://corral-example-corpus: does not exist"),
        (
            BucketAccess(region=None, refusal="403"),
            "warn s3://corral-example-corpus: cannot be read with these credentials, or belongs to another account",
        ),
        (
            BucketAccess(region="eu-west-1"),
            "fail s3://corral-example-corpus: is in eu-west-1; FSx imports only from its own region, us-east-1",
        ),
        (BucketAccess(region=None, refusal="503"), "fail s3://corral-example-corpus: cannot be checked: 503"),
    ],
)
def test_findings_of_a_bucket(found: BucketAccess, expected: str) -> None:
    assert finding_lines(evaluate(dev(), BucketFacts(found={NAME: found}))) == [expected]
