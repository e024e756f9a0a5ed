"""What is told of declared images that the box does not boot."""

from __future__ import annotations

from pathlib import Path

from corral.report.box_image import replaced_images
from corral.spec.cluster import ClusterWishes
from corral.spec.files import read_environment
from corral.spec.image import ImageSpec

PROJECT = Path(__file__).parents[2]


def mixed(**changes: object) -> ClusterWishes:
    """The cluster of `mixed`, whose third queue has a profile of its own, so changed."""
    return read_environment(PROJECT, "mixed").cluster.model_copy(update=changes)


def test_profiles_that_the_box_replaces_are_not_told() -> None:
    assert replaced_images(mixed()) is None


def test_own_images_that_the_box_replaces_are_told() -> None:
    own = ImageSpec(id="ami-0123456789abcdef0")
    train, *others = mixed().queues
    queue = train.model_copy(update={"image": ImageSpec(id="ami-0fedcba9876543210")})
    assert replaced_images(mixed(image=own, queues=(queue, *others))) == (
        "the box boots its own image, box-debian-12, in place of ami-0123456789abcdef0 of the cluster,"
        " ami-0fedcba9876543210 of queue train"
    )
