"""A cleanup of several regions lists each resource once."""

from __future__ import annotations

from corral.inventory.cleanup_report import CleanupFindings, deduplicated
from corral.inventory.orphans import Orphan
from corral.inventory.resources import AwsResource, ResourceKind

ROLE = AwsResource(kind=ResourceKind.ROLE, id="identity-head", tags={"corral:base": "dev"})
HERE, THERE = (AwsResource(kind=ResourceKind.VOLUME, id=id, tags={"corral:base": "dev"}) for id in ("vol-1", "vol-2"))
BUCKET = AwsResource(kind=ResourceKind.BUCKET, id="corral-dev", tags={"corral:base": "dev", "corral:keep": "artefacts"})


def findings(region: str, *resources: AwsResource) -> CleanupFindings:
    left = tuple(Orphan(resource=resource, reason="base dev is not up") for resource in resources)
    return CleanupFindings(region=region, backend="file:///s", orphans=left, foreign=(), retained=(BUCKET,))


def test_a_global_resource_is_listed_in_the_first_region_only() -> None:
    found = deduplicated([findings("us-east-1", ROLE, HERE), findings("us-west-2", ROLE, THERE)])
    assert [[left.resource.id for left in one.orphans] for one in found] == [["identity-head", "vol-1"], ["vol-2"]]


def test_a_retained_bucket_is_listed_once() -> None:
    found = deduplicated([findings("us-east-1"), findings("us-west-2")])
    assert [len(one.retained) for one in found] == [1, 0]
