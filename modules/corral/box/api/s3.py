"""S3: conditions in bucket policies, which moto treats as true, tags at the creation of a bucket, its owner."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import fromstring

import moto.s3.urls
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, S3Backend
from moto.s3.responses import S3Response

from corral.box.api_errors import ApiError


class BoxBucket(FakeBucket):
    """A bucket whose policy may have conditions: they are judged by `access`, which knows the caller."""

    def get_permission(self, action: str, resource: str) -> Any:
        """The bucket policy's decision about this action."""
        policy = json.loads(self.policy) if self.policy else {"Statement": []}
        statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        applicable = [statement for statement in statements if "Condition" not in statement]
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


_put_bucket = S3Response._bucket_response_put


def _put_bucket_with_tags(self: Any, request: Any, bucket_name: str, querystring: dict[str, Any]) -> Any:
    """Create a bucket with its tags; moto ignores CreateBucketConfiguration.Tags. Passes other calls on."""
    answer = _put_bucket(self, request, bucket_name, querystring)
    if not querystring and (tags := bucket_tags(self.body)):
        self.backend.put_bucket_tagging(bucket_name, tags)
    return answer


def bucket_tags(body: bytes | str) -> Mapping[str, str]:
    """The tags in the body of a CreateBucket request. Source: S3 API reference, CreateBucketConfiguration."""
    tags = fromstring(body).iterfind("{*}Tags/{*}Tag") if body else ()
    return {tag.findtext("{*}Key", ""): tag.findtext("{*}Value", "") for tag in tags}


def require_owner(environ: Mapping[str, Any]) -> None:
    """Raises ApiError if a request expects another owner of its bucket, or of the one that it copies from.

    Source: S3 User Guide, "Verifying bucket ownership with bucket owner condition"; awsdocs/amazon-s3-userguide#5 (the
    text), grafana/loki#15382 (not an account).
    """
    _require_owner(environ.get("HTTP_X_AMZ_EXPECTED_BUCKET_OWNER"), environ.get("PATH_INFO", ""))
    source = environ.get("HTTP_X_AMZ_COPY_SOURCE", "")
    _require_owner(environ.get("HTTP_X_AMZ_SOURCE_EXPECTED_BUCKET_OWNER"), source)


def _require_owner(expected: str | None, path: str) -> None:
    from moto.s3.models import s3_backends

    if expected is None:
        return
    if not re.fullmatch(r"\d{12}", expected):
        text = "The value of the expected bucket owner parameter must be an AWS Account ID."
        raise ApiError("InvalidBucketOwnerAWSAccountID", text, 400)
    bucket = unquote(path).lstrip("/").partition("/")[0]
    _, owner = s3_backends.bucket_accounts.get(bucket, (None, expected))
    if owner != expected:
        raise ApiError("AccessDenied", "Access Denied", 403)


def install() -> None:
    """Replace moto's S3 with the box's."""
    from moto.s3.models import s3_backends

    s3_backends.backend = BoxS3
    S3Response._bucket_response_put = _put_bucket_with_tags
