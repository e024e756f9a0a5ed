"""A sweep of several regions tells of each thing once."""

from __future__ import annotations

from corral.inventory.findings import Findings, each_once
from corral.inventory.leftovers import Leftover
from corral.inventory.things import Kind, Thing

ROLE = Thing(kind=Kind.ROLE, id="identity-head", tags={"corral:base": "dev"})
HERE, THERE = (Thing(kind=Kind.VOLUME, id=id, tags={"corral:base": "dev"}) for id in ("vol-1", "vol-2"))
BUCKET = Thing(kind=Kind.BUCKET, id="corral-dev", tags={"corral:base": "dev", "corral:keep": "artefacts"})


def findings(region: str, *things: Thing) -> Findings:
    left = tuple(Leftover(thing=thing, reason="base dev is not up") for thing in things)
    return Findings(region=region, backend="file:///s", leftovers=left, foreign=(), kept=(BUCKET,))


def test_a_global_thing_is_told_in_the_first_region_alone() -> None:
    found = each_once([findings("us-east-1", ROLE, HERE), findings("us-west-2", ROLE, THERE)])
    assert [[left.thing.id for left in one.leftovers] for one in found] == [["identity-head", "vol-1"], ["vol-2"]]


def test_a_kept_bucket_is_told_once() -> None:
    found = each_once([findings("us-east-1"), findings("us-west-2")])
    assert [len(one.kept) for one in found] == [1, 0]
