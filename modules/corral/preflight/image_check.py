"""Whether the machine images exist, fit the instances, and are not stale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from corral.catalog.aws.images import find_image_profile
from corral.catalog.aws.lustre_clients import lustre_clients
from corral.inventory.ec2_resources import tags_of
from corral.model.cluster import ClusterPlan, ImagePlan
from corral.model.tags import KERNEL_TAG
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="images")
# AWS publishes a Deep Learning AMI every two to four weeks and supports each for at most a year; newer frameworks
# reject the drivers of an image that is half a year old. Debian publishes one with each point release, about every two
# months. Sources: DLAMI Developer Guide, "Support policy"; Debian's wiki, PointReleases.
OLD = timedelta(days=180)
_SYSTEM = re.compile(r"(ubuntu|debian)\D{0,9}?(\d\d(?:\.\d\d)?)")  # in names such as "AMI (Ubuntu 24.04) 20260901"
_NEWER = "`corral upgrade image ENV` installs the newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Image:
    """An image as EC2 describes it. `kernel`: the value of its kernel tag, or ""."""

    id: str
    name: str
    state: str
    architecture: str
    created: datetime
    deprecated: datetime | None
    root_device: str
    root_gib: int
    kernel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """`ids`: image ids by the plan's key; None if the parameter does not exist."""

    ids: Mapping[str, str | None] = field(default_factory=dict)
    images: Mapping[str, Ec2Image] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> ImageFacts:
    """The ids from their parameters, then the images."""
    ids = {key: image.image_id or _newest(aws, image) for key, image in request.cluster.images.items()}
    known = sorted({id for id in ids.values() if id})
    found = [one for id in known for one in aws.list_existing("ec2", "describe_images", "Images", ImageIds=[id])]
    return ImageFacts(ids=ids, images={str(one["ImageId"]): _image(one) for one in found})


def evaluate(request: PreflightRequest, facts: ImageFacts) -> Iterator[PreflightFinding]:
    """The findings for each image that a machine boots."""
    for key, image in request.cluster.images.items():
        id, about = facts.ids[key], _about(request.cluster, key)
        if id is None:
            text = f"the parameter {image.parameter} is not in {request.cluster.region}"
            yield _FINDINGS.fail(about, text, "set an image id (`image: {id: ...}`), or another profile")
        elif id not in facts.images:
            text = f"{id} not found in this account and region, or not shared with it"
            yield _FINDINGS.fail(about, text, "use another image, or ask its owner to share it")
        else:
            yield from _findings(about, image, facts.images[id], request)


def _findings(about: str, plan: ImagePlan, found: Ec2Image, request: PreflightRequest) -> Iterator[PreflightFinding]:
    wrong = len(problems := list(_problems(about, plan, found, request)))
    yield from problems
    if not wrong:
        yield _FINDINGS.ok(about, f"{found.id}, {found.name}, of {found.created:%Y-%m-%d}")
    if request.cluster.lustre and not plan.box:
        yield _lustre(about, plan, found)


def _lustre(about: str, plan: ImagePlan, found: Ec2Image) -> PreflightFinding:
    """A boot installs Lustre's client for its kernel if the profile names an archive; AWS must have one."""
    clients = lustre_clients(plan.system)
    kernels = ", ".join(one.kernels for one in clients)
    if not clients:
        return _FINDINGS.warn(about, f"AWS has no Lustre client for {plan.system}", "build one, or use another profile")
    if found.kernel and not any(one.is_for(found.kernel) for one in clients):
        text = f"{found.id} boots kernel {found.kernel}, for which AWS has no Lustre client"
        return _FINDINGS.fail(about, text, f"use an image with one of these kernels: {kernels}")
    if found.kernel:
        return _FINDINGS.ok(about, f"AWS has a Lustre client for {found.kernel}")
    if plan.lustre is None:
        text = f"{found.id} is your own; whether it has Lustre's client is unknown"
        return _FINDINGS.warn(
            about, text, f"check that `modprobe lustre` works in it, and tag it {KERNEL_TAG}=$(uname -r)"
        )
    return _FINDINGS.ok(about, f"a boot installs the Lustre client of its kernel; available for {kernels}")


def _problems(about: str, plan: ImagePlan, found: Ec2Image, request: PreflightRequest) -> Iterator[PreflightFinding]:
    another = "use another image"
    if found.state != "available":
        yield _FINDINGS.fail(about, f"{found.id} is {found.state}", another)
    if found.architecture != "x86_64":
        yield _FINDINGS.fail(about, f"{found.id} is for {found.architecture}; the instances are x86_64", another)
    if found.root_device != plan.root_device:
        text = f"the root device of {found.id} is {found.root_device}; the templates use {plan.root_device}"
        yield _FINDINGS.fail(about, text, "set `image: {root_device: ...}`, or use another image")
    smallest = min(_roots(request.cluster, plan))
    if found.root_gib > smallest:
        text = f"the root of {found.id} needs {found.root_gib} GiB; an instance that boots it has {smallest}"
        yield _FINDINGS.fail(about, text, f"set root_gib: {found.root_gib} or more")
    named = _SYSTEM.search(found.name.lower())
    if named and not plan.box and " ".join(named.groups()) != plan.system:
        text = f"{found.id} is called {found.name!r}; its profile is for {plan.system}"
        yield _FINDINGS.warn(about, text, "set the profile of its system (`image: {profile: ...}`)")
    if found.deprecated and found.deprecated <= request.now:
        yield _FINDINGS.warn(about, f"{found.id} has been deprecated since {found.deprecated:%Y-%m-%d}", _NEWER)
    elif request.now - found.created > OLD:
        days = (request.now - found.created).days
        aged = "drivers and EFA" if find_image_profile(plan.profile).drivers else "packages"
        yield _FINDINGS.warn(about, f"{found.id} is {days} days old; its {aged} are outdated", _NEWER)


def _roots(cluster: ClusterPlan, image: ImagePlan) -> list[int]:
    """The sizes of the root volumes of the machines that boot it, in GiB."""
    nodes = [queue.root_gib for queue in cluster.queues if cluster.image_of(queue) == image]
    return [*nodes, cluster.head.root_gib] if image == cluster.image else nodes


def _about(cluster: ClusterPlan, key: str) -> str:
    if key == "image":
        return "head and nodes"
    image = cluster.images[key]
    return ", ".join(f"queue {queue.name}" for queue in cluster.queues if cluster.image_of(queue) == image)


def _newest(aws: AwsQueryCache, image: ImagePlan) -> str | None:
    try:
        return str(aws.call("ssm", "get_parameter", Name=image.parameter)["Parameter"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return None
        raise


def _image(one: Mapping[str, Any]) -> Ec2Image:
    disks, root = one.get("BlockDeviceMappings", ()), str(one.get("RootDeviceName", ""))
    sizes = [
        int(disk["Ebs"].get("VolumeSize", 0)) for disk in disks if disk.get("DeviceName") == root and "Ebs" in disk
    ]
    deprecated = one.get("DeprecationTime")
    return Ec2Image(
        id=str(one["ImageId"]),
        name=str(one.get("Name", "")),
        state=str(one.get("State", "available")),
        architecture=str(one.get("Architecture", "")),
        created=datetime.fromisoformat(str(one["CreationDate"])),
        deprecated=datetime.fromisoformat(str(deprecated)) if deprecated else None,
        root_device=root,
        root_gib=sizes[0] if sizes else 0,
        kernel=tags_of(one.get("Tags", ())).get(KERNEL_TAG, ""),
    )
