"""What can go wrong between a program and the box, each with the sentence that a person sees."""

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


class ProviderError(Exception):
    """Base of all below; its text is a sentence for a person."""


class Refused(ProviderError):
    """AWS, or the stand-in for it, does not do what was asked."""


class Unreachable(ProviderError):
    """The box does not answer, or none was named."""


class Gone(ProviderError):
    """The object does not exist; a fact and not a failure where something is read or deleted."""


class Unfinished(ProviderError):
    """The object exists, but is not (yet) as asked for."""


def explained(error: Exception) -> str:
    """One line for a person; for a fault of the stand-in itself with its place, but without a traceback."""
    if isinstance(error, ProviderError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"the stand-in has a fault at {Path(frame.filename).name}:{frame.lineno}: {error!r}"


@contextmanager
def told(endpoint: str) -> Iterator[None]:
    """A block whose botocore errors come out as ours; ClientError becomes `Refused` with AWS's code and text."""
    try:
        yield
    except ClientError as error:
        raise Refused(sentence(error)) from error
    except ParamValidationError as error:
        raise Refused(str(error).replace("\n", " ")) from error
    except (EndpointConnectionError, ConnectionClosedError, HTTPClientError) as error:
        raise Unreachable(f"the box at {endpoint} does not answer - corral box start") from error
    except BotoCoreError as error:
        raise Refused(str(error)) from error


def code(error: ClientError) -> str:
    """AWS's code of the error, such as InvalidVpcID.NotFound."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def sentence(error: ClientError) -> str:
    """The operation, code and text of the error in one line."""
    message = error.response.get("Error", {}).get("Message", "") or "no text"
    return f"{error.operation_name} {code(error)}: {message}"


@contextmanager
def absence(*codes: str) -> Iterator[None]:
    """A block in which the given AWS codes mean that the object is `Gone`."""
    try:
        yield
    except ClientError as error:
        if code(error) in codes:
            raise Gone(sentence(error)) from error
        raise
