"""The errors of the stand-in provider; the text of each is a sentence for the user.

ProviderError
|- RequestRefused   AWS or the stand-in refuses a call
|- BoxUnreachable   no box answers
|- NotFound         the object does not exist
`- NotReady         the object is not ready in time
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ParamValidationError,
)
from botocore.parsers import ResponseParserError


class ProviderError(Exception):
    """Base of all errors of the stand-in."""


class RequestRefused(ProviderError):
    """AWS or the stand-in refuses a call."""


class BoxUnreachable(ProviderError):
    """The box does not answer, or its URL is not set."""


class NotFound(ProviderError):
    """The object does not exist. For a read or a delete that is a result, not a failure."""


class NotReady(ProviderError):
    """The object exists, but is not ready in time."""


def describe_error(error: Exception) -> str:
    """The error in one line; for a defect of the stand-in, with its file and line instead of a traceback."""
    if isinstance(error, ProviderError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"defect in the stand-in provider at {Path(frame.filename).name}:{frame.lineno}: {error!r}"


@contextmanager
def translate_errors(endpoint: str) -> Iterator[None]:
    """A block that turns botocore's errors into a ProviderError; ClientError into RequestRefused with AWS's code."""
    try:
        yield
    except ClientError as error:
        raise RequestRefused(aws_error_text(error)) from error
    except ParamValidationError as error:
        raise RequestRefused(str(error).replace("\n", " ")) from error
    except (EndpointConnectionError, ConnectionClosedError, HTTPClientError) as error:
        raise BoxUnreachable(f"the box at {endpoint} does not answer - start it with `corral box start`") from error
    except ResponseParserError as error:  # a box that was killed while it answered
        raise BoxUnreachable(
            f"the box at {endpoint} does not answer to the end: {str(error).splitlines()[0]}"
        ) from error
    except BotoCoreError as error:
        raise RequestRefused(str(error)) from error


def aws_error_code(error: ClientError) -> str:
    """AWS's code of the error, such as InvalidVpcID.NotFound."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def is_not_found(error: Exception) -> bool:
    """True if the error says that AWS does not find an object."""
    if isinstance(error, ClientError):
        return aws_error_code(error).endswith(("NotFound", "NotFoundException", "NoSuchEntity"))
    return isinstance(error, NotFound)


def aws_error_text(error: ClientError) -> str:
    """The operation, code and text of the error in one line."""
    message = error.response.get("Error", {}).get("Message", "") or "no text"
    return f"{error.operation_name} {aws_error_code(error)}: {message}"


@contextmanager
def not_found_on(*codes: str) -> Iterator[None]:
    """A block in which these AWS error codes raise NotFound."""
    try:
        yield
    except ClientError as error:
        if aws_error_code(error) in codes:
            raise NotFound(aws_error_text(error)) from error
        raise
