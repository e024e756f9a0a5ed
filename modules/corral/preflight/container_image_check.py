"""Whether the container images of jobs are in ECR, and whether one of each is for the queues' machines.

Sources: ECR API reference, BatchGetImage, GetDownloadUrlForLayer; OCI image specification, "Image Index" and "Image
Configuration": a manifest of one image names no architecture, its configuration does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.request import urlopen

from botocore.exceptions import ClientError

from corral.catalog.aws.images import find_image_profile
from corral.model.cluster import ClusterPlan, ContainerImagePlan
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="containers")
_MEDIA_TYPES = (
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
)
_NAMES = {"x86_64": "amd64", "arm64": "arm64"}  # of architectures: the catalog's, and those of images
_TIMEOUT_S = 10
_LARGEST = 1 << 20  # bytes of a configuration; it has a few thousand
NO_REPOSITORY, NO_IMAGE = "RepositoryNotFoundException", "ImageNotFound"  # ECR's codes
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """`architectures`: of the image, or of each of a list, as amd64; none if unknown. `refusal`: ECR's code, or ""."""

    architectures: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerImageFacts:
    """The images, in the order of the plan's."""

    found: Mapping[ContainerImagePlan, FoundImage] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> ContainerImageFacts:
    """One request for each image, and two for the configuration of one that is no list."""
    return ContainerImageFacts(found={image: _image(aws, image) for image in request.cluster.jobs.images})


def evaluate(request: PreflightRequest, facts: ContainerImageFacts) -> Iterator[PreflightFinding]:
    """One finding for each image."""
    for image, found in facts.found.items():
        yield _finding(request.cluster, image, found)


def architectures_in(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The architectures that a list of manifests names, sorted; none for a manifest of one image.

    Entries of an unknown architecture are no images but what a build attests.
    """
    named = {str((one.get("platform") or {}).get("architecture", "")) for one in document.get("manifests", ())}
    return tuple(sorted(named - {"", "unknown"}))


def _finding(cluster: ClusterPlan, image: ContainerImagePlan, found: FoundImage) -> PreflightFinding:
    about, region = str(image), cluster.region
    # The machines of a queue have the architecture of their image's profile: spec/rules/cluster_rules.
    profiles = {cluster.image_of(queue).profile for queue in cluster.queues}
    wanted = {_NAMES[find_image_profile(profile).architecture] for profile in profiles}
    if found.refusal == NO_REPOSITORY:
        text = f"there is no repository {image.repository} in {image.account or 'this account'}, {region}"
        return _FINDINGS.fail(about, text, "create it and push the image, or change jobs.images")
    if found.refusal == NO_IMAGE:
        text = f"{image.repository} has no image {image.version}"
        return _FINDINGS.fail(about, text, "push it, or change jobs.images")
    if found.refusal in _DENIED:
        text = "cannot be checked: these credentials may not call BatchGetImage on its repository"
        return _FINDINGS.warn(about, text, "allow ecr:BatchGetImage there, or add --skip containers")
    if found.refusal:
        return _FINDINGS.fail(about, f"cannot be checked: {found.refusal}", "look at the image in ECR")
    if not found.architectures:
        return _FINDINGS.ok(about, "is there; its architecture is unknown")
    has = ", ".join(found.architectures)
    if wanted.isdisjoint(found.architectures):
        needed = ", ".join(sorted(wanted))
        text = f"is for {has}; the machines of the queues need {needed}"
        return _FINDINGS.fail(about, text, f"build it for them, such as with --platform linux/{sorted(wanted)[0]}")
    return _FINDINGS.ok(about, f"is for {has}")


def _image(aws: AwsQueryCache, image: ContainerImagePlan) -> FoundImage:
    named: dict[str, Any] = {"repositoryName": image.repository}
    if image.account:
        named["registryId"] = image.account
    key = "imageDigest" if image.is_digest else "imageTag"
    try:
        answer = aws.call(
            "ecr", "batch_get_image", **named, imageIds=[{key: image.version}], acceptedMediaTypes=list(_MEDIA_TYPES)
        )
    except ClientError as error:
        return FoundImage(refusal=str(error.response["Error"].get("Code", "")))
    if not answer["images"]:
        return FoundImage(refusal=str(answer["failures"][0].get("failureCode", NO_IMAGE)))
    manifest = json.loads(answer["images"][0]["imageManifest"])
    return FoundImage(architectures=architectures_in(manifest) or _configured(aws, named, manifest))


def _configured(aws: AwsQueryCache, named: Mapping[str, Any], manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The architecture in an image's configuration, which ECR has in S3; none if it cannot be read."""
    digest = (manifest.get("config") or {}).get("digest")
    if not digest:
        return ()
    try:
        answer = aws.call("ecr", "get_download_url_for_layer", **named, layerDigest=digest)
        with urlopen(answer["downloadUrl"], timeout=_TIMEOUT_S) as response:  # noqa: S310
            found = json.loads(response.read(_LARGEST)).get("architecture")
    except (ClientError, OSError, HTTPException, ValueError):
        return ()
    return (str(found),) if found else ()
