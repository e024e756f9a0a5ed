"""Messages for errors of the operating system, boto3 and AWS: what failed, why, and how to fix it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corral.model.access_denials import ADVICE, parse_access_denials

NO_CREDENTIALS = (
    "no AWS credentials were found - sign in (`aws sso login`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY), or add --box to use the local AWS emulator"
)
BOTOCORE = {
    "botocore.exceptions.NoCredentialsError": NO_CREDENTIALS,
    "botocore.exceptions.CredentialRetrievalError": NO_CREDENTIALS,
    "botocore.exceptions.PartialCredentialsError": "the AWS credentials are incomplete: {error}",
    "botocore.exceptions.ProfileNotFound": "{error} - see AWS_PROFILE and ~/.aws/config",
    "botocore.exceptions.ConfigParseError": "~/.aws/config cannot be read: {error}",
    "botocore.exceptions.NoRegionError": "no AWS region is configured - set AWS_REGION",
    "botocore.exceptions.SSOError": "{error} - `aws sso login` signs in again",
    "botocore.exceptions.ConnectionError": "AWS cannot be reached: {error}",
    "botocore.exceptions.HTTPClientError": "AWS cannot be reached: {error}",
    "botocore.parsers.ResponseParserError": "the response is not from AWS but perhaps from a proxy or portal: {error}",
    "corral.inventory.endpoint_check.NotAws": "{error}",
    "botocore.exceptions.BotoCoreError": "the call to AWS failed: {error}",
}
# A region that the account has not enabled answers with these codes, too.
UNKNOWN_CREDENTIALS = (
    "AWS does not know these credentials, or the account has not enabled this region"
    " - `corral check ENV --only identity` shows which"
)
CREDENTIAL_ERRORS = {
    "ExpiredToken": "the AWS credentials have expired - sign in again",
    "ExpiredTokenException": "the AWS credentials have expired - sign in again",
    "RequestExpired": "the AWS credentials have expired, or this machine's clock is wrong",
    "AuthFailure": UNKNOWN_CREDENTIALS,
    "InvalidClientTokenId": UNKNOWN_CREDENTIALS,
    "UnrecognizedClientException": UNKNOWN_CREDENTIALS,
    "SignatureDoesNotMatch": "AWS does not accept these credentials: the secret key is wrong",
}


def message_for(error: BaseException, names: Sequence[str]) -> str | None:
    """The message for an error whose class and bases have these qualified names; None if unknown."""
    if "botocore.exceptions.ClientError" in names:
        return _aws_error(error)
    if _is_of_box(error, names):
        from corral.engine.progress.diagnostics import BOX_DOWN

        return "\n  ".join((BOX_DOWN.sentence, *BOX_DOWN.hints))
    for name in names:
        if name in BOTOCORE:
            return BOTOCORE[name].format(error=" ".join(str(error).split()))
    if isinstance(error, OSError) and error.errno is not None:
        return _system(error)
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return "the home directory is unknown - set HOME"
    return None


def _is_of_box(error: BaseException, names: Sequence[str]) -> bool:
    """Whether the error is a failed connection to the box that this process's variables name."""
    url = os.environ.get("AWS_ENDPOINT_URL", "")
    unanswered = {"botocore.exceptions.ConnectionError", "botocore.exceptions.HTTPClientError"} & {*names}
    return bool(unanswered and url and "CORRAL_BOX_DIR" in os.environ and url in str(error))


def _aws_error(error: Any) -> str:
    code = error.response.get("Error", {}).get("Code", "unknown")
    message = " ".join(error.response.get("Error", {}).get("Message", "").split())
    if code in CREDENTIAL_ERRORS:
        return f"{CREDENTIAL_ERRORS[code]} ({error.operation_name}: {code})"
    if denials := parse_access_denials(message):
        advice = ADVICE[denials[0].policy_type]
        return f"AWS does not allow {error.operation_name}: {denials[0].cause} - {advice}"
    if code.startswith(("AccessDenied", "Unauthorized")):
        return f"AWS does not allow these credentials to {error.operation_name}: {message}"
    return f"AWS refused {error.operation_name}: {code}: {message}"


def _free_space(error: OSError) -> str:
    """The free space of the file's directory; empty if unknown."""
    if not error.filename:
        return ""
    path = Path(os.fsdecode(error.filename)).absolute()
    directory = next(one for one in (path, *path.parents) if one.is_dir())
    return f" of {directory} ({shutil.disk_usage(directory).free >> 10:,} KiB free)"


def _system(error: OSError) -> str:
    file = f"{error.filename}: " if error.filename else ""
    match error.errno:
        case errno.ENOSPC:
            full = f"no space left on the disk{_free_space(error)}"
            return f"{file or 'output: '}{full} - free some space and run the command again"
        case errno.EDQUOT:
            return f"{file or 'output: '}your disk quota is used up - free some space and run the command again"
        case errno.EACCES | errno.EPERM:
            return f"{file}{error.strerror} - choose another path, or ask its owner for access"
        case errno.EROFS:
            return f"{file}the file system is read-only - choose another path"
        case _:
            return f"{file}{error.strerror}"
