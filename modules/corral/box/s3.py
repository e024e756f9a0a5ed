"""S3 as the box has it: moto's, which takes a bucket policy's conditions for true whatever they say."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import moto.s3.urls
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, S3Backend

WITHOUT_TLS: Mapping[str, Mapping[str, str]] = {"Bool": {"aws:SecureTransport": "false"}}


class BoxBucket(FakeBucket):
    """A bucket whose policy may speak of encrypted transport: in the box, loopback stands for it."""

    def get_permission(self, action: str, resource: str) -> Any:
        """What the bucket's policy says to this action."""
        policy = json.loads(self.policy) if self.policy else {"Statement": []}
        statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        heard = [statement for statement in statements if statement.get("Condition") != WITHOUT_TLS]
        if not heard:
            return PermissionResult.NEUTRAL
        return IAMPolicy(json.dumps({**policy, "Statement": heard})).is_action_permitted(action, resource)


class BoxS3(S3Backend):
    """The S3 of one account."""

    _url_module = moto.s3.urls

    def create_bucket(self, *args: Any, **kwargs: Any) -> Any:
        """A new bucket, of the box's kind."""
        bucket = super().create_bucket(*args, **kwargs)
        bucket.__class__ = BoxBucket  # moto names its class inside create_bucket; the fields are the same
        return bucket


def install() -> None:
    """Puts the box's S3 in moto's place."""
    from moto.s3.models import s3_backends

    s3_backends.backend = BoxS3
