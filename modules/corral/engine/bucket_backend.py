"""A backend in an S3 bucket, asked before the engine is started: whether it can be used, and who works on a stack.

The engine finds the same out later and says it in the words of its libraries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from corral.engine.errors import CANNOT_START, WRONG_INPUT, EngineError
from corral.engine.locks import Holder

PATIENCE_S = 10  # for a bucket that does not answer; S3 answers in 0.1 s
SIGN_IN = "sign in again"
BOOTSTRAP = "`corral bootstrap` makes one and says what to set"
POLICY = "`corral bootstrap --print-policy` prints what is needed"
SEE_URL = "see PULUMI_BACKEND_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What a URL like s3://NAME/PREFIX?region=REGION says."""

    name: str
    prefix: str
    region: str | None
    endpoint: str | None
    profile: str | None


def bucket_of(url: str) -> Bucket | None:
    """The bucket that the backend's URL names; None for another kind of backend."""
    parts = urlsplit(url)
    if parts.scheme != "s3":
        return None
    said = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Bucket(
        name=parts.netloc,
        prefix=parts.path.strip("/"),
        region=said.get("region"),
        endpoint=said.get("endpoint"),
        profile=said.get("profile"),
    )


def require_bucket(url: str, environ: Mapping[str, str]) -> None:
    """Raises EngineError where the states are in a bucket that is not there, or that these credentials may not list."""
    bucket = bucket_of(url)
    if bucket is None:
        return
    if not bucket.name:
        raise EngineError(f"PULUMI_BACKEND_URL is '{url}', which names no bucket", (BOOTSTRAP,), WRONG_INPUT)
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        _client(bucket, environ).list_objects_v2(Bucket=bucket.name, Prefix=_below(bucket, ".pulumi/"), MaxKeys=1)
    except ClientError as error:
        raise _refused(bucket, error, environ) from None
    except BotoCoreError as error:
        where = f" at {environ['AWS_ENDPOINT_URL']}" if environ.get("AWS_ENDPOINT_URL") else ""
        sentence = f"the state bucket {bucket.name}{where} cannot be asked: {' '.join(str(error).split())}"
        box = ("`corral box start`, if it is the box's",) if where else (SEE_URL,)
        raise EngineError(sentence, box, CANNOT_START) from None


def bucket_holders(url: str, environ: Mapping[str, str], project: str, stack: str) -> tuple[Holder, ...]:
    """Who holds Pulumi's lock of the stack in a backend in a bucket; nobody in another kind of backend."""
    bucket = bucket_of(url)
    if bucket is None:
        return ()
    s3 = _client(bucket, environ)
    prefix = _below(bucket, f".pulumi/locks/organization/{project}/{stack}/")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=prefix)
    keys = [item["Key"] for page in pages for item in page.get("Contents", ()) if item["Key"].endswith(".json")]
    found = (_holder(s3, bucket.name, key) for key in sorted(keys))
    return tuple(holder for holder in found if holder is not None)


def has_stack_in_bucket(url: str, environ: Mapping[str, str], project: str, stack: str) -> bool:
    """Whether a backend in a bucket holds a state of this stack; False also where it cannot be asked."""
    bucket = bucket_of(url)
    if bucket is None or not bucket.name:
        return False
    from botocore.exceptions import BotoCoreError, ClientError

    prefix = _below(bucket, f".pulumi/stacks/{project}/{stack}.json")
    try:
        found = _client(bucket, environ).list_objects_v2(Bucket=bucket.name, Prefix=prefix).get("Contents", ())
    except (BotoCoreError, ClientError):
        return False
    return any(item["Key"] in (prefix, f"{prefix}.gz") for item in found)


def _holder(s3: Any, bucket: str, key: str) -> Holder | None:
    """The lock's holder; None where the lock has just gone, or is no lock."""
    try:
        record = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        return Holder(
            pid=int(record["pid"]),
            since=datetime.fromisoformat(record["timestamp"]),
            host=str(record["hostname"]),
            user=str(record["username"]),
        )
    except (s3.exceptions.NoSuchKey, ValueError, KeyError):
        return None


def _refused(bucket: Bucket, error: Any, environ: Mapping[str, str]) -> EngineError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    who = f"the state bucket {bucket.name}"
    match code:
        case "NoSuchBucket":
            return EngineError(f"{who} does not exist", (BOOTSTRAP, SEE_URL), CANNOT_START)
        case "AccessDenied" | "AllAccessDisabled" | "403":
            sentence = f"these credentials may not list {who} (s3:ListBucket), or it belongs to another account"
            return EngineError(sentence, (POLICY, SEE_URL), CANNOT_START)
        case "ExpiredToken" | "TokenRefreshRequired" | "ExpiredTokenException":
            return EngineError("the AWS credentials have expired", (SIGN_IN,), CANNOT_START)
        case "RequestTimeTooSkewed":
            return EngineError(
                f"this machine's clock is wrong: {message}", ("set it, by NTP for example",), CANNOT_START
            )
        case "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" | "InvalidClientTokenId":
            return EngineError(f"AWS does not accept these credentials ({code})", (SIGN_IN,), CANNOT_START)
        case (
            "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" | "301" | "400"
        ):
            return EngineError(f"{who} is in another region: {message}", (_region_hint(bucket, error),), WRONG_INPUT)
    return EngineError(f"{who} cannot be listed: {code}: {message}", (SEE_URL,), CANNOT_START)


def _region_hint(bucket: Bucket, error: Any) -> str:
    """What to write, where AWS says where the bucket is."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or error.response.get("Error", {}).get("Region") or "REGION"
    return f"PULUMI_BACKEND_URL='s3://{bucket.name}?region={region}'"


def _below(bucket: Bucket, path: str) -> str:
    return f"{bucket.prefix}/{path}" if bucket.prefix else path


def _client(bucket: Bucket, environ: Mapping[str, str]) -> Any:
    import boto3
    from botocore.config import Config

    from corral.inventory.answering import watched

    session = boto3.Session(
        aws_access_key_id=environ.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=environ.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=environ.get("AWS_SESSION_TOKEN"),
        profile_name=bucket.profile or environ.get("AWS_PROFILE"),
    )
    region = bucket.region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    quick = Config(connect_timeout=PATIENCE_S, read_timeout=PATIENCE_S, retries={"total_max_attempts": 2})
    endpoint = bucket.endpoint or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    return watched(session.client("s3", region_name=region, endpoint_url=endpoint, config=quick), quick=False)
