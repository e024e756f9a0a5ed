"""What a user declares for what machines boot, and what is known of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from corral.catalog.images import ImageProfile, image_profiles
from corral.catalog.slurm_releases import NEWEST, OLDEST, RELEASES, parse_release, release_text
from corral.spec.record import SpecRecord

DEFAULT_IMAGE_PROFILE = "ubuntu-24.04-dlami"


def _as_text(value: Any) -> Any:
    """A release as people write it, 24.11, which YAML reads as a number; no release ends in a 0 that it would lose."""
    return str(value) if isinstance(value, float) else value


ReleaseText = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number"]})]


class ImageSpec(SpecRecord):
    """What the machines boot: the newest image of a profile of the catalogue, or an image of your own."""

    profile: str = Field(
        default=DEFAULT_IMAGE_PROFILE,
        description="Name of an image profile; its newest image is taken once and then kept. Beside an id: the profile"
        f" whose system, drivers and users the image has. Default: {DEFAULT_IMAGE_PROFILE}.",
    )
    id: str | None = Field(
        default=None,
        description="Id of an image of your own, built on one of the profile. Default: none.",
    )
    slurm: ReleaseText | None = Field(
        default=None,
        description="The Slurm in an image of your own, such as 24.11, with its daemons where the profile has them,"
        " /usr/sbin. Default: that of the profile.",
    )


def known_image(image: ImageSpec) -> ImageProfile | None:
    """What this image holds: what its profile says, and its own Slurm. None for a profile that nobody knows.

    An image with a Slurm of its own goes by its id.
    """
    profile = image_profiles().get(image.profile)
    if profile is None or image.id is None or image.slurm is None or release_problem(image.slurm):
        return profile
    return replace(profile, name=image.id, slurm_version=image.slurm)


def release_problem(version: str) -> str | None:
    """Why no files can be written for this version of Slurm; None where they can. Newer ones than known may exist."""
    try:
        release = parse_release(version)
    except ValueError as error:
        return str(error)
    if release < OLDEST:
        return f"{version!r} is too old: corral writes for Slurm {release_text(OLDEST)} and later - use a newer one"
    if release not in RELEASES and release < NEWEST:
        known = ", ".join(map(release_text, RELEASES))
        return f"{version!r} is no release of Slurm - corral knows {known}"
    return None
