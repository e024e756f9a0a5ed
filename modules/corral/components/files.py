"""The cluster's files as objects in the base's bucket: what a preview shows as text, and what machines fetch."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.cluster import ClusterPlan


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
        for path, text in args.texts.items():
            self._object(path, path, content=text)
        # The path holds the hash: user data never fetches a bundle of another version than the one it was made with.
        self._object("agent", args.bundle_path, content_base64=base64.b64encode(args.bundle).decode())
        self.register_outputs({"count": len(args.texts) + 1})

    def _object(self, key: str, path: str, **content: pulumi.Input[str]) -> None:
        aws.s3.BucketObjectv2(
            self.child(key),
            bucket=self._args.bucket,
            key=f"{self._args.plan.prefix}/{path}",
            # S3 takes ten tags an object; the stack's default tags may be more.
            override_provider=aws.s3.BucketObjectv2OverrideProviderArgs(
                default_tags=aws.s3.BucketObjectv2OverrideProviderDefaultTagsArgs(tags={})
            ),
            opts=self.own(),
            **content,
        )
