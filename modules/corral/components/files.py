"""The cluster's files as objects in the base's bucket: text that a preview shows, and archives that machines fetch."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.cache import cache_directory
from corral.model.cluster import ClusterPlan
from corral.model.manifest import MANIFEST, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A tar.gz that machines fetch. The hash in its path ties user data to exactly this archive."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash of the content, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def path(self) -> str:
        """The path below the cluster's prefix, with the hash of the content."""
        return f"{self.name}/{self.sha256[:16]}.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesArgs:
    """`texts`, `archives`: by path below the cluster's prefix. `agent`, `library`: what machines run.

    `sign`: manifest.json for the bucket of this name and a manifest whose version does not count yet.
    """

    plan: ClusterPlan
    bucket: pulumi.Input[str]
    texts: Mapping[str, pulumi.Input[str]]
    agent: Archive
    library: Archive
    sign: Callable[[str, Manifest], str]
    archives: Mapping[str, bytes] = field(default_factory=dict)


class Files(Component):
    """One object per file, by path."""

    def __init__(self, name: str, args: FilesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Files", name, f"corral-{args.plan.name}", opts)
        self._args = args
        objects = [self._object(path, path, content=text) for path, text in args.texts.items()]
        agent = base64.b64encode(args.agent.content).decode()
        objects.append(self._object("agent", args.agent.path, content_base64=agent))
        objects.append(self._object("library", args.library.path, source=_asset(args.library.content)))
        objects += [self._object(path, path, source=_asset(content)) for path, content in args.archives.items()]
        # Last, so that a running head never applies a partial configuration.
        self._object(MANIFEST, MANIFEST, after=objects, content=self._manifest())
        self.register_outputs({"count": len(args.texts) + len(args.archives) + 3})

    def _manifest(self) -> pulumi.Output[str]:
        agent, library, sign = self._args.agent, self._args.library, self._args.sign

        def text(found: Sequence[Any]) -> str:
            bucket, texts = found
            manifest = Manifest(
                version=0,
                files=_hashes({**{path: held.encode() for path, held in texts.items()}, **self._args.archives}),
                bundle=agent.path,
                bundle_sha256=agent.sha256,
                library=library.path,
                library_sha256=library.sha256,
            )
            return sign(bucket, manifest)

        return pulumi.Output.all(self._args.bucket, pulumi.Output.all(**self._args.texts)).apply(text)

    def _object(
        self, key: str, path: str, after: Sequence[pulumi.Resource] = (), **content: Any
    ) -> aws.s3.BucketObjectv2:
        return aws.s3.BucketObjectv2(
            self.child(key),
            bucket=self._args.bucket,
            key=f"{self._args.plan.prefix}/{path}",
            # S3 allows ten tags an object; the stack's default tags may be more.
            override_provider=aws.s3.BucketObjectv2OverrideProviderArgs(
                default_tags=aws.s3.BucketObjectv2OverrideProviderDefaultTagsArgs(tags={})
            ),
            opts=pulumi.ResourceOptions.merge(self.child_options(), pulumi.ResourceOptions(depends_on=after)),
            **content,
        )


def _hashes(files: Mapping[str, bytes]) -> Mapping[str, str]:
    return {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}


def _asset(content: bytes) -> pulumi.FileAsset:
    """The content as a file in the user's cache: a state stores an asset's hash, but a text in full."""
    cache = cache_directory(os.environ)
    file = cache / f"{hashlib.sha256(content).hexdigest()}.tar.gz"
    if not (file.exists() and file.read_bytes() == content):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as draft:
            draft.write(content)
        Path(draft.name).replace(file)
    return pulumi.FileAsset(str(file))
