"""Buckets with data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from finding_lines import dev, finding_lines

from corral.model.cluster import BucketPlan, JobsPlan
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


def test_a_bucket_of_jobs_in_another_region_is_out_of_reach() -> None:
    jobs = JobsPlan(buckets=(BucketPlan(s3="s3://sets", write=False),))
    request = dev(replace(dev_cluster(), jobs=jobs))
    found = BucketFacts(found={"sets": BucketAccess(region="us-east-1"), "far": BucketAccess(region="eu-west-1")})
    here = finding_lines(evaluate(request, found))
    there = finding_lines(evaluate(request, BucketFacts(found={"sets": BucketAccess(region="eu-west-1")})))
    assert (here, there) == (
        [
            "ok s3://sets: is in us-east-1",
            "warn s3://far: is in eu-west-1; reads by Lustre cross regions, slowly and at a cost",
        ],
        ["fail s3://sets: is in eu-west-1; the boundary of roles keeps jobs in us-east-1"],
    )
