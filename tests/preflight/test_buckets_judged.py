"""Buckets with data."""

from __future__ import annotations

import pytest
from judging import dev, said

from corral.preflight.buckets import Bucket, Facts, judge, linked
from environments import dev_cluster

NAME = "corral-example-corpus"


def test_the_buckets_of_an_environment_are_those_of_its_links_and_jobs() -> None:
    assert linked(dev_cluster()) == (NAME,)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Bucket(region="us-east-1"), "ok s3://corral-example-corpus: is in us-east-1"),
        (Bucket(region=None, refusal="404"), "fail s3://corral-example-corpus: does not exist"),
        (
            Bucket(region=None, refusal="403"),
            "warn s3://corral-example-corpus: may not be read by these credentials, or belongs to another account",
        ),
        (
            Bucket(region="eu-west-1"),
            "fail s3://corral-example-corpus: is in eu-west-1, and FSx imports by itself from its own region,"
            " us-east-1, alone",
        ),
        (Bucket(region=None, refusal="503"), "fail s3://corral-example-corpus: cannot be asked: 503"),
    ],
)
def test_what_is_said_of_a_bucket(found: Bucket, told: str) -> None:
    assert said(judge(dev(), Facts(found={NAME: found}))) == [told]
