"""The image that machines boot, as declared, and the profile that describes its content."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from corral.catalog.accelerators.kernel_modules import KernelModules
from corral.catalog.aws.images import ImageProfile, image_profiles
from corral.catalog.aws.instance_types import Vendor
from corral.catalog.slurm.releases import NEWEST, OLDEST, RELEASES, InvalidVersion, parse_release, release_text
from corral.spec.models.base_model import SpecRecord
from corral.spec.spec_errors import SpecProblem

DEFAULT_IMAGE_PROFILE = "ubuntu-24.04-dlami"


def _as_text(value: Any) -> Any:
    """Accept 24.11, which YAML reads as a number. No digit gets lost: no release ends in 0."""
    return str(value) if isinstance(value, float) else value


ReleaseText = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number"]})]


class ImageSpec(SpecRecord):
    """The image that machines boot: the newest one of a catalog profile, or an image of your own."""

    profile: str = Field(
        default=DEFAULT_IMAGE_PROFILE,
        description="Name of an image profile; the first deployment pins its newest image. With an id: the profile that"
        f" matches the image's system, drivers and users. Default: {DEFAULT_IMAGE_PROFILE}.",
    )
    id: str | None = Field(
        default=None,
        description="Id of an image of your own, built on an image of the profile. Default: none.",
    )
    slurm: ReleaseText | None = Field(
        default=None,
        description="Slurm release in an image of your own, such as 24.11; its daemons must be in /usr/sbin, as in the"
        " profile. Default: the profile's.",
    )
    kernel_modules: Literal["open", "proprietary"] | None = Field(
        default=None,
        description="Flavour of NVIDIA's kernel modules in an image of your own: V100 requires proprietary ones, of"
        " driver 580 or older, and B200 open ones. Required where the profile has no NVIDIA driver. Default: the"
        " profile's.",
    )


def resolve_image(image: ImageSpec) -> ImageProfile | None:
    """Return the profile of this image, with the Slurm release and drivers as declared; None for an unknown one.

    The profile of an image with its own Slurm release has the image's id as its name.
    """
    profile = image_profiles().get(image.profile)
    if profile and image.id and image.kernel_modules:
        drivers = (*(vendor for vendor in profile.drivers if vendor is not Vendor.NVIDIA), Vendor.NVIDIA)
        profile = replace(profile, drivers=drivers, kernel_modules=KernelModules(image.kernel_modules))
    if profile is None or image.id is None or image.slurm is None or release_problem(image.slurm):
        return profile
    return replace(profile, name=image.id, slurm_version=image.slurm)


def release_problem(version: str) -> SpecProblem | None:
    """Return why corral does not support this Slurm version; None if it does. Accepts releases newer than all known."""
    try:
        release = parse_release(version)
    except InvalidVersion as error:
        return SpecProblem(error.message, error.hint)
    if release < OLDEST:
        return SpecProblem(
            f"{version!r} is too old: corral supports Slurm {release_text(OLDEST)} and later", "use a newer release"
        )
    if release not in RELEASES and release < NEWEST:
        known = ", ".join(map(release_text, RELEASES))
        return SpecProblem(f"{version!r} is not a Slurm release", f"expected one of {known}")
    return None
