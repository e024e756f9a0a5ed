"""Whether what machines boot is there, fits them, and is not stale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from corral.catalog.lustre_clients import lustre_clients
from corral.inventory.ec2 import tags_of
from corral.model.cluster import ClusterPlan, ImagePlan
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="images")
# AWS publishes a new Deep Learning AMI each two to four weeks and supports each for a year and less; an image of half
# a year has drivers that newer frameworks refuse. Source: DLAMI Developer Guide, "Support policy".
OLD = timedelta(days=180)
KERNEL_TAG = "corral:kernel"  # EC2 does not say what kernel an image boots, but who builds one may
_SYSTEM = re.compile(r"(ubuntu|debian)\D{0,9}?(\d\d(?:\.\d\d)?)")  # in names such as "AMI (Ubuntu 24.04) 20260901"
_NEWER = "`corral upgrade image ENV` takes the newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image as EC2 describes it. `kernel`: what its tag says; "" without one."""

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
class Facts:
    """`ids`: by the plan's key of an image, the id that it has or would get; None for a parameter that is not there."""

    ids: Mapping[str, str | None] = field(default_factory=dict)
    images: Mapping[str, Image] = field(default_factory=dict)


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """The ids by their parameters, then all images at once."""
    ids = {key: image.image_id or _newest(answers, image) for key, image in wanted.cluster.images.items()}
    known = sorted({id for id in ids.values() if id})
    found = [one for id in known for one in answers.named("ec2", "describe_images", "Images", ImageIds=[id])]
    return Facts(ids=ids, images={str(one["ImageId"]): _image(one) for one in found})


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Each image that some machine boots."""
    for key, image in wanted.cluster.images.items():
        id, about = facts.ids[key], _about(wanted.cluster, key)
        if id is None:
            text = f"the parameter {image.parameter} is not in {wanted.cluster.region}"
            yield _TELL.fail(about, text, "name an image by its id (`image: {id: ...}`), or another profile")
        elif id not in facts.images:
            text = f"{id} is not in this account and region, or not shared with it"
            yield _TELL.fail(about, text, "name one that is, or let its owner share it")
        else:
            yield from _judged(about, image, facts.images[id], wanted)


def _judged(about: str, wished: ImagePlan, found: Image, wanted: Wanted) -> Iterator[Finding]:
    wrong = len(problems := list(_problems(about, wished, found, wanted)))
    yield from problems
    if not wrong:
        yield _TELL.ok(about, f"{found.id}, {found.name}, of {found.created:%Y-%m-%d}")
    if wanted.cluster.lustre and not wished.box:
        yield _lustre(about, wished, found)


def _lustre(about: str, wished: ImagePlan, found: Image) -> Finding:
    """A boot installs the client of its own kernel where the profile names an archive; there must be one."""
    clients = lustre_clients(wished.system)
    kernels = ", ".join(one.kernels for one in clients)
    if not clients:
        return _TELL.warn(about, f"AWS has no Lustre client for {wished.system}", "build one, or another profile")
    if found.kernel and not any(one.is_for(found.kernel) for one in clients):
        text = f"{found.id} boots kernel {found.kernel}, for which AWS has no Lustre client"
        return _TELL.fail(about, text, f"an image with one of these: {kernels}")
    if found.kernel:
        return _TELL.ok(about, f"there is a Lustre client for {found.kernel}")
    if wished.lustre is None:
        text = f"{found.id} is of your own, and whether it has Lustre's client is not known"
        return _TELL.warn(about, text, f"see that `modprobe lustre` works in it, and tag it {KERNEL_TAG}=$(uname -r)")
    return _TELL.ok(about, f"a boot takes the Lustre client of its kernel: there are some for {kernels}")


def _problems(about: str, wished: ImagePlan, found: Image, wanted: Wanted) -> Iterator[Finding]:
    another = "name another image"
    if found.state != "available":
        yield _TELL.fail(about, f"{found.id} is {found.state}", another)
    if found.architecture != "x86_64":
        yield _TELL.fail(about, f"{found.id} is for {found.architecture}, the machines are x86_64", another)
    if found.root_device != wished.root_device:
        text = f"the root device of {found.id} is {found.root_device}, and the templates say {wished.root_device}"
        yield _TELL.fail(about, text, "say so: `image: {root_device: ...}`, or name another image")
    smallest = min(_roots(wanted.cluster, wished))
    if found.root_gib > smallest:
        text = f"the root of {found.id} needs {found.root_gib} GiB, and a machine with it has {smallest}"
        yield _TELL.fail(about, text, f"root_gib: {found.root_gib} or more")
    named = _SYSTEM.search(found.name.lower())
    if named and not wished.box and " ".join(named.groups()) != wished.system:
        text = f"{found.id} is called {found.name!r}, and its profile is of {wished.system}"
        yield _TELL.warn(about, text, "the profile of the system that it has (`image: {profile: ...}`)")
    if found.deprecated and found.deprecated <= wanted.now:
        yield _TELL.warn(about, f"{found.id} is deprecated since {found.deprecated:%Y-%m-%d}", _NEWER)
    elif wanted.now - found.created > OLD:
        days = (wanted.now - found.created).days
        yield _TELL.warn(about, f"{found.id} is {days} days old: drivers and EFA age", _NEWER)


def _roots(cluster: ClusterPlan, image: ImagePlan) -> list[int]:
    """The root volumes of the machines that boot it, in GiB."""
    nodes = [queue.root_gib for queue in cluster.queues if cluster.image_of(queue) == image]
    return [*nodes, cluster.head.root_gib] if image == cluster.image else nodes


def _about(cluster: ClusterPlan, key: str) -> str:
    if key == "image":
        return "head and nodes"
    image = cluster.images[key]
    return ", ".join(f"queue {queue.name}" for queue in cluster.queues if cluster.image_of(queue) == image)


def _newest(answers: Answers, image: ImagePlan) -> str | None:
    try:
        return str(answers.ask("ssm", "get_parameter", Name=image.parameter)["Parameter"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return None
        raise


def _image(one: Mapping[str, Any]) -> Image:
    disks, root = one.get("BlockDeviceMappings", ()), str(one.get("RootDeviceName", ""))
    sizes = [
        int(disk["Ebs"].get("VolumeSize", 0)) for disk in disks if disk.get("DeviceName") == root and "Ebs" in disk
    ]
    deprecated = one.get("DeprecationTime")
    return Image(
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
