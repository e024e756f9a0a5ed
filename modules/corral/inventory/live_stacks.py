"""The live stacks, read from the state files of a self-managed backend: a directory or a bucket. Pulumi does not run.

The layout is Pulumi's for self-managed backends: .pulumi/stacks/<project>/<stack>.json, or .json.gz.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.exceptions import ClientError

from corral.inventory.orphans import LiveStacks

_STACKS = ".pulumi/stacks"
_STACK = "pulumi:pulumi:Stack"


class UnreadableBackend(Exception):
    """A backend whose stacks cannot be listed; the text is a message for the user."""


def read_live_stacks(url: str, session: Any) -> LiveStacks:
    """The bases and clusters whose states in this backend hold more than retained data.

    Raises UnreadableBackend, because an unreadable backend must never count as an empty one.
    """
    read = {"file": _files, "s3": _objects}.get(urlsplit(url).scheme)
    if read is None:
        raise UnreadableBackend(f"cannot list live stacks in {url} - use a file:// or s3:// backend")
    found = {(project, name): _document(text, project, name) for project, name, text in read(url, session)}
    alive = {stack: document for stack, document in found.items() if _is_live(document)}
    clusters = {name: document for (project, name), document in alive.items() if project == "corral-cluster"}
    queues = {name: _queues(document) for name, document in clusters.items()}
    return LiveStacks(
        bases=frozenset(name for project, name in alive if project == "corral-base"),
        clusters=frozenset(clusters),
        queues={name: known for name, known in queues.items() if known is not None},
    )


def _is_live(document: Mapping[str, Any]) -> bool:
    latest = document.get("checkpoint", {}).get("latest") or {}
    return bool(latest.get("pending_operations")) or any(map(_counts, latest.get("resources") or ()))


def _queues(document: Mapping[str, Any]) -> frozenset[str] | None:
    """The queues in a cluster's outputs; None if the deployment has not reached them."""
    resources = (document.get("checkpoint", {}).get("latest") or {}).get("resources") or ()
    outputs = next((one.get("outputs") or {} for one in resources if one["type"] == _STACK), {})
    return frozenset(outputs["queues"]) if "queues" in outputs else None


def _counts(resource: Mapping[str, Any]) -> bool:
    """True for a resource that makes its stack live: no entry of Pulumi's own, no component, no retained data."""
    is_real = bool(resource.get("custom")) and not str(resource["type"]).startswith("pulumi:")
    return is_real and not resource.get("protect")


def _document(text: bytes, project: str, name: str) -> Mapping[str, Any]:
    """The state. Raises UnreadableBackend if it is invalid: its resources would look orphaned."""
    try:
        found = json.loads(gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text)
    except (OSError, ValueError) as error:
        raise UnreadableBackend(f"the state of {project}/{name} cannot be read: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("checkpoint"), dict):
        raise UnreadableBackend(f"the state of {project}/{name} is damaged: it holds no checkpoint")
    return found


def _files(url: str, session: Any) -> Iterator[tuple[str, str, bytes]]:
    parts = urlsplit(url)
    root = Path(unquote(parts.netloc + parts.path)).expanduser()
    if not root.is_dir():
        raise UnreadableBackend(f"the state backend {url} does not exist - check PULUMI_BACKEND_URL")
    for file in sorted((root / _STACKS).glob("*/*.json*")):
        if name := _stack(file.name):
            yield file.parent.name, name, file.read_bytes()


def _objects(url: str, session: Any) -> Iterator[tuple[str, str, bytes]]:
    parts = urlsplit(url)
    region = parse_qs(parts.query).get("region", [None])[0]
    s3, prefix = session.client("s3", region_name=region), f"{parts.path.strip('/')}/{_STACKS}/".lstrip("/")
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=parts.netloc, Prefix=prefix):
            for item in page.get("Contents", ()):
                project, _, file = item["Key"].removeprefix(prefix).partition("/")
                if name := _stack(file):
                    yield project, name, s3.get_object(Bucket=parts.netloc, Key=item["Key"])["Body"].read()
    except ClientError as error:
        reason = f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')}"
        raise UnreadableBackend(
            f"the state backend {url} cannot be read: {reason} - check PULUMI_BACKEND_URL"
        ) from None


def _stack(file: str) -> str | None:
    """The stack of this state file; None for backups and attribute files."""
    for ending in (".json", ".json.gz"):
        if file.endswith(ending):
            return file.removesuffix(ending)
    return None
