"""S3 without the TLS conditions of bucket policies: moto treats every condition as true."""

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
    """A bucket whose policy may require TLS: in the box, loopback counts as TLS."""

    def get_permission(self, action: str, resource: str) -> Any:
        """The bucket policy's decision about this action."""
        policy = json.loads(self.policy) if self.policy else {"Statement": []}
        statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        applicable = [statement for statement in statements if statement.get("Condition") != WITHOUT_TLS]
        if not applicable:
            return PermissionResult.NEUTRAL
        return IAMPolicy(json.dumps({**policy, "Statement": applicable})).is_action_permitted(action, resource)


class BoxS3(S3Backend):
    """The S3 of one account."""

    _url_module = moto.s3.urls

    def create_bucket(self, *args: Any, **kwargs: Any) -> Any:
        """Create a bucket of the box's class."""
        bucket = super().create_bucket(*args, **kwargs)
        bucket.__class__ = BoxBucket  # moto names its class inside create_bucket; the fields are the same
        return bucket


def install() -> None:
    """Replace moto's S3 with the box's."""
    from moto.s3.models import s3_backends

    s3_backends.backend = BoxS3
