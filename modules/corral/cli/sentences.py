"""Sentences for what the system, boto3 and AWS refuse: what was refused, why, and what would help."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NO_CREDENTIALS = (
    "no AWS credentials were found - sign in (`aws sso login`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY), or add --box to use the AWS on this machine"
)
BOTOCORE = {
    "botocore.exceptions.NoCredentialsError": NO_CREDENTIALS,
    "botocore.exceptions.CredentialRetrievalError": NO_CREDENTIALS,
    "botocore.exceptions.PartialCredentialsError": "the AWS credentials are incomplete: {error}",
    "botocore.exceptions.ProfileNotFound": "{error} - see AWS_PROFILE and ~/.aws/config",
    "botocore.exceptions.ConfigParseError": "~/.aws/config cannot be read: {error}",
    "botocore.exceptions.NoRegionError": "no AWS region is known - set AWS_REGION",
    "botocore.exceptions.SSOError": "{error} - `aws sso login` signs in again",
    "botocore.exceptions.ConnectionError": "AWS cannot be reached: {error}",
    "botocore.exceptions.HTTPClientError": "AWS cannot be reached: {error}",
    "botocore.parsers.ResponseParserError": "what answers is not AWS, a proxy or portal may be in between: {error}",
    "corral.inventory.answering.NotAws": "{error}",
    "botocore.exceptions.BotoCoreError": "AWS could not be asked: {error}",
}
REFUSALS = {
    "ExpiredToken": "the AWS credentials have expired - sign in again",
    "ExpiredTokenException": "the AWS credentials have expired - sign in again",
    "RequestExpired": "the AWS credentials have expired, or this machine's clock is wrong",
    "AuthFailure": "AWS does not know these credentials",
    "InvalidClientTokenId": "AWS does not know these credentials",
    "UnrecognizedClientException": "AWS does not know these credentials",
    "SignatureDoesNotMatch": "AWS does not accept these credentials: the secret key is wrong",
}


def of(error: BaseException, names: Sequence[str]) -> str | None:
    """The sentence for this error, whose class and base classes have these qualified names; None where unknown."""
    if "botocore.exceptions.ClientError" in names:
        return _refusal(error)
    if _is_of_box(error, names):
        from corral.engine.diagnostics import BOX_GONE

        return "\n  ".join((BOX_GONE.sentence, *BOX_GONE.hints))
    for name in names:
        if name in BOTOCORE:
            return BOTOCORE[name].format(error=" ".join(str(error).split()))
    if isinstance(error, OSError) and error.errno is not None:
        return _system(error)
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return "no home directory is known - set HOME, or name the directory that is meant"
    return None


def _is_of_box(error: BaseException, names: Sequence[str]) -> bool:
    """Whether the box of this process's variables did not answer."""
    url = os.environ.get("AWS_ENDPOINT_URL", "")
    unanswered = {"botocore.exceptions.ConnectionError", "botocore.exceptions.HTTPClientError"} & {*names}
    return bool(unanswered and url and "CORRAL_BOX_DIR" in os.environ and url in str(error))


def _refusal(error: Any) -> str:
    code = error.response.get("Error", {}).get("Code", "unknown")
    message = " ".join(error.response.get("Error", {}).get("Message", "").split())
    if code in REFUSALS:
        return f"{REFUSALS[code]} ({error.operation_name}: {code})"
    if code.startswith(("AccessDenied", "Unauthorized")):
        return f"AWS does not allow these credentials to {error.operation_name}: {message}"
    return f"AWS refused {error.operation_name}: {code}: {message}"


def _room(error: OSError) -> str:
    """How much is free where the file is; nothing where that cannot be told."""
    if not error.filename:
        return ""
    place = Path(os.fsdecode(error.filename)).absolute()
    directory = next(one for one in (place, *place.parents) if one.is_dir())
    return f" of {directory} ({shutil.disk_usage(directory).free >> 10:,} KiB are free)"


def _system(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    match error.errno:
        case errno.ENOSPC:
            full = f"no space is left on the disk{_room(error)}"
            return f"{place or 'output: '}{full} - free some and run the command again"
        case errno.EDQUOT:
            return f"{place or 'output: '}your quota of this disk is used up - free some and run the command again"
        case errno.EACCES | errno.EPERM:
            return f"{place}you may not do that here ({error.strerror}) - choose another place or ask its owner"
        case errno.EROFS:
            return f"{place}the file system is read-only - choose another place"
        case _:
            return f"{place}{error.strerror}"
