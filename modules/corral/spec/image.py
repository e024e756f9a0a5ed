"""What a user declares for what machines boot."""

from __future__ import annotations

from pydantic import Field

from corral.spec.record import SpecRecord

DEFAULT_IMAGE_PROFILE = "ubuntu-24.04-dlami"


class ImageSpec(SpecRecord):
    """What the machines boot: a profile of the catalogue, or an image of your own."""

    profile: str = Field(
        default=DEFAULT_IMAGE_PROFILE,
        description=f"Name of an image profile; its newest image is taken once and then kept."
        f" Default: {DEFAULT_IMAGE_PROFILE}.",
    )
    id: str | None = Field(
        default=None,
        description=f"Id of an image of your own, built on the one of {DEFAULT_IMAGE_PROFILE}. Default: none.",
    )
