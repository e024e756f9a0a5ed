"""The tags that corral puts on AWS resources and recognizes them by, and the functions that build tag mappings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from corral.model.enums import Market

TAG_PREFIX = "corral:"
BASE_TAG = "corral:base"  # on everything of a base and of its clusters: the base's name
CLUSTER_TAG = "corral:cluster"  # on everything of a cluster: its name
KEEP_TAG = "corral:keep"  # on what outlives its stack: one of the values below
QUEUE_TAG = "corral:queue"  # on what a launch template launches: the queue's name; a head has none
LOGIN_TAG = "corral:login"  # on a login node: its name
ADMINS_TAG = "corral:admins"  # on the head of a cluster with login nodes: people do not connect to it, admins do
OFFER_TAG = "corral:offer"  # the key of the offer whose template launched it
NODES_TAG = "corral:nodes"  # the node names of one launch, folded; the launch index picks one
MANIFEST_TAG = "corral:manifest"  # on nodes: the version of the manifest that their head has; no older one is believed
STATE_TAG = "corral:state"  # on the state's key and the deployer's policies: the name of the bootstrap
KERNEL_TAG = "corral:kernel"  # on a user's image: the kernel that it boots, which EC2 does not report
FIXED_ID_TAG = "corral-box:id"  # in the box, the resource that a call creates gets this id

# Values of KEEP_TAG.
KEEP_ARTEFACTS, KEEP_HOME, KEEP_KEY, KEEP_LUSTRE_GROUP = "artefacts", "home", "key", "lustre-group"
KEEP_LUSTRE_PREFIX = "lustre-fs-"  # then the file system's name
_LOGIN_NAME = re.compile("login-[1-9][0-9]{0,3}")


def base_tags(own: Mapping[str, str], base: str) -> Mapping[str, str]:
    """The tags of every resource of a base: the user's own, sorted, then corral's."""
    return {**dict(sorted(own.items())), BASE_TAG: base}


def cluster_tags(own: Mapping[str, str], base: str, cluster: str) -> Mapping[str, str]:
    """The tags of every resource of a cluster: the user's own, sorted, then corral's."""
    return {**base_tags(own, base), CLUSTER_TAG: cluster}


def is_head(tags: Mapping[str, str]) -> bool:
    """Whether an instance of a cluster with these tags is its head: it belongs to no queue and is no login node."""
    return QUEUE_TAG not in tags and LOGIN_TAG not in tags


def login_name(tags: Mapping[str, str]) -> str | None:
    """The name of the login node with these tags; None for another machine, and for a value that is no such name.

    Whoever may set tags chooses the value, and it becomes a name in people's `~/.ssh/config`. A node is no login node.
    """
    name = tags.get(LOGIN_TAG, "")
    return name if _LOGIN_NAME.fullmatch(name) and QUEUE_TAG not in tags else None


def launched_tags(tags: Mapping[str, str], cluster: str, queue: str, offer: str) -> Mapping[str, str]:
    """The tags of what a launch creates. Template and request both have them: default tags of the provider do not reach
    it, and AWS does not document whether the tags of a request join those of its template."""
    return {**tags, "Name": f"corral-{cluster}-{queue}", QUEUE_TAG: queue, OFFER_TAG: offer}


def launched_kinds(market: Market) -> tuple[str, ...]:
    """The kinds of resources that a launch creates; EC2 refuses tags of any other."""
    spot = ("spot-instances-request",) if market is Market.SPOT else ()
    return ("instance", "volume", "network-interface", *spot)


def tag_filter(tag: str, value: str) -> Mapping[str, object]:
    """EC2's filter for resources with this value of a tag."""
    return {"Name": f"tag:{tag}", "Values": [value]}


def has_tag_filter(tag: str) -> Mapping[str, object]:
    """EC2's filter for resources with this tag, whatever its value."""
    return {"Name": "tag-key", "Values": [tag]}


def request_tag(tag: str) -> str:
    """IAM's condition key for a tag that a request sets."""
    return f"aws:RequestTag/{tag}"


def resource_tag(tag: str, service: str = "aws") -> str:
    """IAM's condition key for a tag of the resource; some services have a key of their own."""
    return f"{service}:resourceTag/{tag}" if service == "ssm" else f"{service}:ResourceTag/{tag}"
