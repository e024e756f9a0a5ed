"""The cluster's files as objects in the base's bucket: what a preview shows as text, and what machines fetch."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.cluster import ClusterPlan
from corral.model.jsons import to_json
from corral.model.manifest import MANIFEST, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesArgs:
    """`texts`: by path below the cluster's prefix. `bundle`: the agent's bytes, at `bundle_path` below the prefix."""

    plan: ClusterPlan
    bucket: pulumi.Input[str]
    texts: Mapping[str, pulumi.Input[str]]
    bundle_path: str
    bundle: bytes


class Files(Component):
    """One object a file, by path."""

    def __init__(self, name: str, args: FilesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Files", name, f"corral-{args.plan.name}", opts)
        self._args = args
        objects = [self._object(path, path, content=text) for path, text in args.texts.items()]
        # The path holds the hash: user data never fetches a bundle of another version than the one it was made with.
        bundle = base64.b64encode(args.bundle).decode()
        objects.append(self._object("agent", args.bundle_path, content_base64=bundle))
        # Last of all, so that a running head never takes a configuration that is there in part.
        self._object(MANIFEST, MANIFEST, after=objects, content=self._manifest())
        self.register_outputs({"count": len(args.texts) + 2})

    def _manifest(self) -> pulumi.Output[str]:
        bundle = hashlib.sha256(self._args.bundle).hexdigest()

        def text(texts: Mapping[str, str]) -> str:
            hashes = {path: hashlib.sha256(held.encode()).hexdigest() for path, held in texts.items()}
            return to_json(Manifest(files=hashes, bundle=self._args.bundle_path, bundle_sha256=bundle))

        return pulumi.Output.all(**self._args.texts).apply(text)

    def _object(
        self, key: str, path: str, after: Sequence[pulumi.Resource] = (), **content: pulumi.Input[str]
    ) -> aws.s3.BucketObjectv2:
        return aws.s3.BucketObjectv2(
            self.child(key),
            bucket=self._args.bucket,
            key=f"{self._args.plan.prefix}/{path}",
            # S3 takes ten tags an object; the stack's default tags may be more.
            override_provider=aws.s3.BucketObjectv2OverrideProviderArgs(
                default_tags=aws.s3.BucketObjectv2OverrideProviderDefaultTagsArgs(tags={})
            ),
            opts=pulumi.ResourceOptions.merge(self.own(), pulumi.ResourceOptions(depends_on=after)),
            **content,
        )
