"""The bucket of a base: files that clusters read at boot, checkpoints, backups. It is retained."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BasePlan
from corral.model.tags import KEEP_ARTEFACTS
from corral.plan.iam.iam_policies import artefacts_policy

_OLD_VERSIONS_DAYS = 30  # how long an overwritten or deleted object can be brought back


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactsArgs:
    """`name`: globally unique. `account`: its owner. `retained_id`: the bucket of an earlier deployment of the base."""

    plan: BasePlan
    name: str
    account: str
    key_arn: pulumi.Input[str]
    retained_id: str | None


class Artefacts(Component):
    """A private, versioned, encrypted bucket that refuses plain HTTP."""

    def __init__(self, name: str, args: ArtefactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Artefacts", name, f"corral-{args.plan.name}", opts)
        self.bucket = aws.s3.Bucket(
            self.child("bucket"),
            bucket=args.name,
            tags=self.tags("artefacts", keep=KEEP_ARTEFACTS),
            opts=self.retained_options(args.retained_id),
        )
        self._private(args)
        self._encrypted(args.key_arn)
        self._versioned()
        self.register_outputs({"bucket": self.bucket.id})

    def _private(self, args: ArtefactsArgs) -> None:
        closed = aws.s3.BucketPublicAccessBlock(
            self.child("private"),
            bucket=self.bucket.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self.retained_options(),
        )
        aws.s3.BucketOwnershipControls(
            self.child("owner"),
            bucket=self.bucket.id,
            rule=aws.s3.BucketOwnershipControlsRuleArgs(object_ownership="BucketOwnerEnforced"),
            opts=self.retained_options(),
        )
        aws.s3.BucketPolicy(
            self.child("policy"),
            bucket=self.bucket.id,
            policy=self.bucket.arn.apply(lambda arn: json.dumps(artefacts_policy(arn, args.plan.region, args.account))),
            opts=self.retained_options(depends_on=[closed]),
        )

    def _encrypted(self, key_arn: pulumi.Input[str]) -> None:
        by_key = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="aws:kms", kms_master_key_id=key_arn
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            self.child("encryption"),
            bucket=self.bucket.id,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=by_key,
                    bucket_key_enabled=True,  # one KMS request a bucket and minute, not one an object
                )
            ],
            opts=self.retained_options(),
        )

    def _versioned(self) -> None:
        versioning = aws.s3.BucketVersioning(
            self.child("versions"),
            bucket=self.bucket.id,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=self.retained_options(),
        )
        aws.s3.BucketLifecycleConfiguration(
            self.child("old-versions"),
            bucket=self.bucket.id,
            rules=[
                aws.s3.BucketLifecycleConfigurationRuleArgs(
                    id="old-versions",
                    status="Enabled",
                    filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
                    noncurrent_version_expiration=aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                        noncurrent_days=_OLD_VERSIONS_DAYS
                    ),
                    abort_incomplete_multipart_upload=aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                        days_after_initiation=7
                    ),
                )
            ],
            opts=self.retained_options(depends_on=[versioning]),
        )
