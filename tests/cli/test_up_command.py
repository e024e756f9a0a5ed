"""`corral up --box`: the notice about declared images that the box does not boot."""

from __future__ import annotations

from pathlib import Path

from corral.catalog.aws.images import BOX_PROFILE
from corral.cli.commands.up import replaced_images
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.models.image import ImageSpec
from corral.spec.yaml.stack_files import read_environment

PROJECT = Path(__file__).parents[2]


def mixed(**changes: object) -> ClusterSpecInput:
    """The cluster of `mixed`, whose third queue has its own profile, with these changes."""
    return read_environment(PROJECT, "mixed").cluster.model_copy(update=changes)


def test_replaced_profiles_are_not_in_the_notice() -> None:
    assert replaced_images(mixed(), BOX_PROFILE) is None


def test_replaced_image_ids_are_in_the_notice() -> None:
    own = ImageSpec(id="ami-0123456789abcdef0")
    train, *others = mixed().queues
    queue = train.model_copy(update={"image": ImageSpec(id="ami-0fedcba9876543210")})
    assert replaced_images(mixed(image=own, queues=(queue, *others)), BOX_PROFILE) == (
        "the box boots its own image, box-debian-12, in place of ami-0123456789abcdef0 of the cluster,"
        " ami-0fedcba9876543210 of queue train"
    )
