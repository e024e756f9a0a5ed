"""The version of a manifest that is signed next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.model.manifest import Manifest
from corral.stacks.manifest_signing import successor

FORMER = Manifest(version=1000, files={"a": "0"}, bundle="b", bundle_sha256="1", library="l", library_sha256="2")
SAME, OTHER = replace(FORMER, version=0), replace(FORMER, version=0, files={"a": "1"})


@pytest.mark.parametrize(
    ("manifest", "former", "now", "version"),
    [
        (SAME, None, 1500, 1500),
        (SAME, FORMER, 1500, 1000),
        (OTHER, FORMER, 1500, 1500),
        (OTHER, FORMER, 1000, 1001),
        (OTHER, FORMER, 900, 1001),
    ],
    ids=["the first", "without a change", "a change", "within a second", "by a clock that is behind"],
)
def test_a_version_only_rises_and_stays_while_the_files_do(
    manifest: Manifest, former: Manifest | None, now: int, version: int
) -> None:
    assert successor(manifest, former, now) == replace(manifest, version=version)
