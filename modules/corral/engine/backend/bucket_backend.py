"""Checks a state backend in S3 before the engine starts: is it usable and the account's, who holds a stack's lock?

The engine would find the same later, but reports it in the words of its libraries. It cannot tell whose the bucket is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from corral.engine.backend.stack_locks import LockHolder
from corral.engine.engine_errors import CANNOT_START, WRONG_INPUT, EngineError
from corral.model.bucket_owner import expect_owner
from corral.model.partitions import PARTITIONS

TIMEOUT_S = 10  # S3 answers in 0.1 s
SIGN_IN = "sign in again"
BOOTSTRAP = "`corral bootstrap` creates one and prints what to set"
POLICY = "`corral bootstrap --print-policy` prints the permissions"
SEE_URL = "check PULUMI_BACKEND_URL"
OTHER_OWNER = "if another account has the bucket, do not use it: `corral bootstrap --name NAME` creates one of your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendBucket:
    """The parts of a URL such as s3://NAME/PREFIX?region=REGION."""

    name: str
    prefix: str
    region: str | None
    endpoint: str | None
    profile: str | None


def parse_bucket_url(url: str) -> BackendBucket | None:
    """The bucket of a backend URL; None for other kinds of backends."""
    parts = urlsplit(url)
    if parts.scheme != "s3":
        return None
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return BackendBucket(
        name=parts.netloc,
        prefix=parts.path.strip("/"),
        region=query.get("region"),
        endpoint=query.get("endpoint"),
        profile=query.get("profile"),
    )


def require_bucket(url: str, environ: Mapping[str, str]) -> None:
    """Raises EngineError if the backend is a bucket that does not exist, cannot be listed or is another account's."""
    bucket = parse_bucket_url(url)
    if bucket is None:
        return
    if not bucket.name:
        raise EngineError(f"PULUMI_BACKEND_URL is '{url}', without a bucket's name", (BOOTSTRAP,), WRONG_INPUT)
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        _s3(bucket, environ).list_objects_v2(Bucket=bucket.name, Prefix=_below(bucket, ".pulumi/"), MaxKeys=1)
    except ClientError as error:
        raise _refused(bucket, error, environ) from None
    except BotoCoreError as error:
        where = f" at {environ['AWS_ENDPOINT_URL']}" if environ.get("AWS_ENDPOINT_URL") else ""
        sentence = f"the state bucket {bucket.name}{where} cannot be reached: {' '.join(str(error).split())}"
        box = ("if this is the box, run `corral box start`",) if where else (SEE_URL,)
        raise EngineError(sentence, box, CANNOT_START) from None


def bucket_lock_holders(url: str, environ: Mapping[str, str], project: str, stack: str) -> tuple[LockHolder, ...]:
    """The holders of Pulumi's lock of the stack in a bucket; empty for other kinds of backends."""
    bucket = parse_bucket_url(url)
    if bucket is None:
        return ()
    s3 = _s3(bucket, environ)
    prefix = _below(bucket, f".pulumi/locks/organization/{project}/{stack}/")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=prefix)
    keys = [item["Key"] for page in pages for item in page.get("Contents", ()) if item["Key"].endswith(".json")]
    found = (_holder(s3, bucket.name, key) for key in sorted(keys))
    return tuple(holder for holder in found if holder is not None)


def has_stack_in_bucket(url: str, environ: Mapping[str, str], project: str, stack: str) -> bool:
    """Whether a backend in a bucket holds a state of this stack; False if it cannot be reached."""
    bucket = parse_bucket_url(url)
    if bucket is None or not bucket.name:
        return False
    from botocore.exceptions import BotoCoreError, ClientError

    prefix = _below(bucket, f".pulumi/stacks/{project}/{stack}.json")
    try:
        found = _s3(bucket, environ).list_objects_v2(Bucket=bucket.name, Prefix=prefix).get("Contents", ())
    except (BotoCoreError, ClientError):
        return False
    return any(item["Key"] in (prefix, f"{prefix}.gz") for item in found)


def _holder(s3: Any, bucket: str, key: str) -> LockHolder | None:
    """The holder of a lock; None if the lock was just released or is not a lock."""
    try:
        record = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        return LockHolder(
            pid=int(record["pid"]),
            since=datetime.fromisoformat(record["timestamp"]),
            host=str(record["hostname"]),
            user=str(record["username"]),
        )
    except (s3.exceptions.NoSuchKey, ValueError, KeyError):
        return None


def _refused(bucket: BackendBucket, error: Any, environ: Mapping[str, str]) -> EngineError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    who = f"the state bucket {bucket.name}"
    match code:
        case "NoSuchBucket":
            return EngineError(f"{who} does not exist", (BOOTSTRAP, SEE_URL), CANNOT_START)
        case "AccessDenied" | "AllAccessDisabled" | "403":
            return _not_listed(bucket, environ)
        case "ExpiredToken" | "TokenRefreshRequired" | "ExpiredTokenException":
            return EngineError("the AWS credentials have expired", (SIGN_IN,), CANNOT_START)
        case "RequestTimeTooSkewed":
            return EngineError(f"this machine's clock is wrong: {message}", ("set it, e.g. with NTP",), CANNOT_START)
        case "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" | "InvalidClientTokenId":
            return EngineError(f"AWS does not accept these credentials ({code})", (SIGN_IN,), CANNOT_START)
        case (
            "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" | "301" | "400"
        ):
            return EngineError(f"{who} is in another region: {message}", (_region_hint(bucket, error),), WRONG_INPUT)
    return EngineError(f"{who} cannot be listed: {code}: {message}", (SEE_URL,), CANNOT_START)


def _not_listed(bucket: BackendBucket, environ: Mapping[str, str]) -> EngineError:
    """S3 answers the same for a missing permission and for a bucket of another account."""
    sentence = f"these credentials may not list the state bucket {bucket.name} (s3:ListBucket)"
    if not _is_aws(bucket):
        return EngineError(sentence, (SEE_URL,), CANNOT_START)
    hints = (POLICY, OTHER_OWNER, SEE_URL)
    return EngineError(f"{sentence}, or it does not belong to account {_owner(bucket, environ)}", hints, CANNOT_START)


def _region_hint(bucket: BackendBucket, error: Any) -> str:
    """The URL to set, with the region that AWS reports."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or error.response.get("Error", {}).get("Region") or "REGION"
    return f"PULUMI_BACKEND_URL='s3://{bucket.name}?region={region}'"


def _below(bucket: BackendBucket, path: str) -> str:
    return f"{bucket.prefix}/{path}" if bucket.prefix else path


def _s3(bucket: BackendBucket, environ: Mapping[str, str]) -> Any:
    """An S3 client for buckets of the account of these credentials alone; for any bucket of an S3 that is not AWS's."""
    s3 = _client("s3", bucket, environ)
    return expect_owner(s3, lambda: _owner(bucket, environ)) if _is_aws(bucket) else s3


def _owner(bucket: BackendBucket, environ: Mapping[str, str]) -> str:
    return str(_client("sts", bucket, environ).get_caller_identity()["Account"])


def _is_aws(bucket: BackendBucket) -> bool:
    """Whether the bucket is in AWS's S3: another one, which the URL names, has no accounts of AWS."""
    host = urlsplit(bucket.endpoint or "").hostname or ""
    return not bucket.endpoint or host.endswith(tuple(f".{one.dns_suffix}" for one in PARTITIONS))


def _client(service: str, bucket: BackendBucket, environ: Mapping[str, str]) -> Any:
    import boto3
    from botocore.config import Config

    from corral.inventory.endpoint_check import watched

    session = boto3.Session(
        aws_access_key_id=environ.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=environ.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=environ.get("AWS_SESSION_TOKEN"),
        profile_name=bucket.profile or environ.get("AWS_PROFILE"),
    )
    region = bucket.region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    quick = Config(connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S, retries={"total_max_attempts": 2})
    named = bucket.endpoint if service == "s3" else None
    endpoint = named or environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environ.get("AWS_ENDPOINT_URL")
    make: Any = session.client
    return watched(make(service, region_name=region, endpoint_url=endpoint, config=quick), quick=False)
